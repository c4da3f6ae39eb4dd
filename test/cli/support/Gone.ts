/** Waits for the end of processes that are no children of the test. */
import { spawnSync } from "node:child_process"
import { Effect, Schedule } from "effect"
import { waitingFor } from "../../support/Waiting.ts"

/** Whether the process runs; one that has ended may wait for the system to notice. */
export const runs = (pid: number): boolean => {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" })
  return stdout.trim() !== "" && !stdout.startsWith("Z")
}

/** Completes when the process has ended. Its end cannot be waited for: it is no child. */
export const gone = (pid: number) =>
  Effect.sync(() => runs(pid)).pipe(
    Effect.repeat({ while: (running) => running, schedule: Schedule.spaced("20 millis") }),
    waitingFor(`the end of process ${pid}`)
  )

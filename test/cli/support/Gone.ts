/** Waits for the end of processes that are no children of the test. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { Effect, Schedule } from "effect"
import { waitingFor } from "../../support/Waiting.ts"

/** The letter for the state of the process, as `ps` prints it. A bare Linux has no `ps`. */
const stateOf = (pid: number): string | undefined => {
  if (process.platform !== "linux") {
    return spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim()[0]
  }
  try {
    return /.*\) (\w)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]
  } catch {
    return undefined
  }
}

/** Whether the process runs; one that has ended may wait for the system to notice. */
export const runs = (pid: number): boolean => !["Z", undefined].includes(stateOf(pid))

/** Completes when the process has ended. Its end cannot be waited for: it is no child. */
export const gone = (pid: number) =>
  Effect.sync(() => runs(pid)).pipe(
    Effect.repeat({ while: (running) => running, schedule: Schedule.spaced("20 millis") }),
    waitingFor(`the end of process ${pid}`)
  )

/**
 * Lets the program of a new sandbox begin. It waits stopped until its mounts are checked (`MountTable.ts`), so that nothing
 * untrusted runs in a sandbox that shows too much. Spec: SB-18.
 */
import { readFileSync } from "node:fs"
import { performance } from "node:perf_hooks"
import { Effect } from "effect"
import { type Meant, strayIn, tableOf } from "./MountTable.ts"
import { outsideOf } from "./SandboxWatch.ts"
import { pause } from "./ShellProcess.ts"

/** How long `bwrap` may take to make a sandbox. */
const patienceMillis = 30_000

/** A process's state as a letter; undefined once it is gone. */
const stateOf = (pid: number): string | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    return text.slice(text.lastIndexOf(")") + 2)[0]
  } catch {
    return undefined
  }
}

const proceed = (pid: number) => {
  try {
    process.kill(pid, "SIGCONT")
  } catch {
    // It was killed meanwhile.
  }
}

/**
 * Waits until the sandbox whose `bwrap` has this number is made. Returns why its program must not begin; else the program begins,
 * or `bwrap` has ended, which says why itself.
 */
export const admit = Effect.fn("SandboxGate.admit")(function* (pid: number, meant: ReadonlyArray<Meant>) {
  const end = performance.now() + patienceMillis
  while (performance.now() < end) {
    const program = outsideOf(pid)?.program
    if (program !== undefined && stateOf(program) === "T") {
      const stray = strayIn(tableOf(program) ?? [], tableOf("self") ?? [], meant)
      if (stray === undefined) return proceed(program)
      return `a folder was moved while the sandbox was made, and ${JSON.stringify(stray)} would show something else: try again`
    }
    const state = stateOf(pid)
    if (state === undefined || state === "Z") return undefined
    yield* pause(1)
  }
  return `the sandbox was not made within ${patienceMillis / 1_000} seconds`
})

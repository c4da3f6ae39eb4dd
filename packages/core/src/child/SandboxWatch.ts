/**
 * Bounds what all processes of a sandbox use together. The system's limits count per process, and do not apply to root,
 * so the processes are sampled several times a second while they run. Spec: SB-9.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { pause } from "./ShellProcess.ts"

const lookMillis = 100

const read = (name: string): string => {
  try {
    return readFileSync(name, "utf8")
  } catch {
    // The process ended meanwhile.
    return ""
  }
}

/** A process's threads and its memory that is not backed by a file, from `/proc`. */
const usageOf = (pid: string) => {
  const status = read(`/proc/${pid}/status`)
  const number = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0)
  return { threads: number("Threads"), bytes: (number("RssAnon") + number("RssShmem")) * 1024 }
}

/** The bound that the process tree below `pid` exceeds. Orphans stay in the tree, below the sandbox's first process. */
const passed = (pid: number, limits: { readonly processes: number; readonly bytes: number }) => {
  let [count, bytes] = [0, 0]
  const waiting = [String(pid)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const used = usageOf(next)
    count += used.threads
    bytes += used.bytes
    // Two belong to the sandbox itself.
    if (count > limits.processes + 2) return "processes"
    if (bytes > limits.bytes) return "memory"
    waiting.push(
      ...read(`/proc/${next}/task/${next}/children`)
        .split(" ")
        .filter((child) => child !== "")
    )
  }
  return undefined
}

/** Waits until the process tree exceeds a bound, and returns that bound. */
export const watch = Effect.fn("SandboxWatch.watch")(function* (
  find: () => number | null,
  limits: { readonly processes: number; readonly bytes: number }
) {
  for (;;) {
    yield* pause(lookMillis)
    const pid = find()
    const bound = pid === null ? undefined : passed(pid, limits)
    if (bound !== undefined) return bound
  }
})

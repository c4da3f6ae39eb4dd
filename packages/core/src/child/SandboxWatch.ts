/**
 * Bounds what all processes of a sandbox take together. The system's limits count per process, and not at all for the
 * system's administrator; so the processes are looked at a few times a second, for as long as they run. Spec: SB-9.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { pause } from "../tool/builtin/ShellProcess.ts"

const lookMillis = 100

const read = (name: string): string => {
  try {
    return readFileSync(name, "utf8")
  } catch {
    // It ended meanwhile.
    return ""
  }
}

/** Threads, and bytes that are no copy of a file: what a process of the system's status says. */
const usageOf = (pid: string) => {
  const status = read(`/proc/${pid}/status`)
  const number = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0)
  return { threads: number("Threads"), bytes: (number("RssAnon") + number("RssShmem")) * 1024 }
}

/** Which bound the processes below this one pass; an orphan stays below the sandbox's first process. */
const passed = (pid: number, limits: { readonly processes: number; readonly bytes: number }) => {
  let [count, bytes] = [0, 0]
  const waiting = [String(pid)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const used = usageOf(next)
    count += used.threads
    bytes += used.bytes
    // Two are those of the sandbox itself.
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

/** Comes back with the bound that the processes below this one pass, once there is one. */
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

/**
 * Keeps Ctrl-C working while the event loop, which runs Node's signal handlers, is blocked. A thread detects the blocked
 * loop and starts a shell. The shell also gets the terminal's signals, and kills this process; sessions survive that. A
 * signal that is sent only to this process still waits for the loop. Spec: LM-24.
 */
import { closeSync, openSync } from "node:fs"
import { Duration, Effect, type Scope } from "effect"

interface Options {
  /** How long a command runs before it is watched; short ones need no thread. */
  readonly after?: Duration.DurationInput
  /** How long the loop may be blocked. */
  readonly limit?: Duration.DurationInput
}

/** The thread's program. It checks twice within the limit: a suspended machine is not a blocked loop. */
const watch = `
const { spawn } = require("node:child_process")
const { workerData: { beats, limit, pid, terminal } } = require("node:worker_threads")
const beat = new Int32Array(beats)
const script = 'trap "kill -KILL $1" INT TERM HUP; echo "$2" >&2; while kill -0 $1 2>&-; do sleep 1 & wait $!; done'
const words = "\\ndaybook is busy and does not react; Ctrl-C ends it now"
let [seen, still, guard] = [0, 0, undefined]
setInterval(() => {
  const now = Atomics.load(beat, 0)
  if (now !== seen) {
    guard?.kill("SIGKILL")
    ;[seen, still, guard] = [now, 0, undefined]
  } else if (++still === 2) {
    // The shell itself prints the words, after its trap is set: an earlier Ctrl-C would end only the shell.
    const stdio = ["ignore", "ignore", terminal ? 2 : "ignore"]
    guard = spawn("/bin/sh", ["-c", script, "sh", String(pid), words], { stdio, env: { PATH: "/usr/bin:/bin" } })
    guard.on("error", () => undefined)
  }
}, limit / 2)
`

/** Whether a terminal controls the process. Without one there is no Ctrl-C, and a server saves a thread. */
const hasTerminal = Effect.sync(() => {
  try {
    closeSync(openSync("/dev/tty", "r"))
    return true
  } catch {
    return false
  }
})

/** Watches the loop until the scope closes. */
export const begin = ({ after = "2 seconds", limit = "4 seconds" }: Options = {}): Effect.Effect<
  void,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    // Most commands end sooner, and need no thread.
    yield* Effect.sleep(after)
    if (!(yield* hasTerminal)) return
    const { Worker } = yield* Effect.promise(() => import("node:worker_threads"))
    const limitMillis = Duration.toMillis(limit)
    const beat = new Int32Array(new SharedArrayBuffer(4))
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const timer = setInterval(() => Atomics.add(beat, 0, 1), limitMillis / 4)
        timer.unref()
        const workerData = { beats: beat.buffer, limit: limitMillis, pid: process.pid, terminal: process.stderr.isTTY }
        const worker = new Worker(watch, { eval: true, workerData })
        worker.unref()
        return { timer, worker }
      }),
      ({ timer, worker }) =>
        Effect.promise(() => {
          clearInterval(timer)
          return worker.terminate()
        })
    )
    yield* Effect.never
  }).pipe(Effect.scoped, Effect.forkScoped, Effect.asVoid)

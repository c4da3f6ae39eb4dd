/**
 * One shell command in a process group of its own. When its scope closes, nothing of the group is left: it is asked to
 * end, then killed. Works on `node:child_process`, since the platform's executor waits for ever for a process that
 * ignores the first signal. A process that leaves the group by itself (`setsid`) is not covered. Spec: TO-61..TO-63.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process"
import { existsSync } from "node:fs"
import type { Readable } from "node:stream"
import { NodeStream } from "@effect/platform-node"
import { Deferred, Effect, Stream, type Scope } from "effect"
import { ToolFailure } from "../ToolDefinition.ts"

/** How long a group may take to end before it is killed, and how often it is looked at meanwhile. */
const graceMillis = 2_000
const lookMillis = 20

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

export interface Chunk {
  readonly stream: "stdout" | "stderr"
  readonly bytes: Uint8Array
}

/** What to run, and how. */
export interface Command {
  readonly command: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** A program with its arguments that runs the shell. */
  readonly prefix?: ReadonlyArray<string>
}

export interface ShellProcess {
  /** The number of the process, and of its group. */
  readonly pid: number
  /** Both streams, in the order of arrival; ends when the command and all that hold its streams have ended. */
  readonly output: Stream.Stream<Chunk, ToolFailure>
  /** How the shell itself ended; its children may still run. */
  readonly exit: Effect.Effect<Exit>
  /** Ends the whole group: asks, waits a little, kills. */
  readonly end: Effect.Effect<void>
}

const shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh"

const broken = (what: string, cause: unknown) =>
  new ToolFailure({
    type: "tool.execution",
    message: `the command could not be ${what}: ${cause instanceof Error ? cause.message : "unknown fault"}`
  })

/** Signals the group; false when it has no member left. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Groups that run now. When the host exits without closing its scopes, they are killed with it. */
const running = new Set<number>()
const killRunning = () => running.forEach((pid) => signalGroup(pid, "SIGKILL"))

const track = (pid: number) => {
  if (running.size === 0) process.on("exit", killRunning)
  running.add(pid)
}
const untrack = (pid: number) => {
  running.delete(pid)
  if (running.size === 0) process.off("exit", killRunning)
}

/** A pause of the system's time: it is the processes that need it, whatever clock the program runs on. */
export const pause = (millis: number) =>
  Effect.async<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const turnOfLoop = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

/**
 * Waits for output that is still on its way. After a busy time the event loop runs timers before it reads pipes, so it gets
 * some turns behind the pause: one reads what is there, and the others let it be taken.
 */
export const drain = (millis: number) => Effect.zipRight(pause(millis), Effect.replicateEffect(turnOfLoop, 3))

const endGroup = Effect.fnUntraced(function* (pid: number) {
  if (!signalGroup(pid, "SIGTERM")) return
  for (let waited = 0; waited < graceMillis; waited += lookMillis) {
    yield* pause(lookMillis)
    if (!signalGroup(pid, 0)) return
  }
  signalGroup(pid, "SIGKILL")
})

interface Started {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly pid: number
}

const start = ({ command, cwd, env, prefix = [] }: Command, exit: Deferred.Deferred<Exit>) =>
  Effect.async<Started, ToolFailure>((resume) => {
    try {
      const [file = shell, ...args] = [...prefix, shell, "-c", command]
      const child = spawn(file, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
      child.on("exit", (code, signal) => Deferred.unsafeDone(exit, Effect.succeed({ code, signal })))
      child.on("error", (cause) => resume(broken("started", cause)))
      child.on("spawn", () => {
        if (child.pid === undefined) return
        track(child.pid)
        resume(Effect.succeed({ child, pid: child.pid }))
      })
    } catch (cause) {
      // Some faults, such as a NUL in the command, are thrown instead of reported.
      resume(broken("started", cause))
    }
  })

/** Starts a command with a closed standard input. */
export const runShell = Effect.fn("ShellProcess.run")(function* (
  options: Command
): Effect.fn.Return<ShellProcess, ToolFailure, Scope.Scope> {
  const exit = yield* Deferred.make<Exit>()
  const ended = yield* Deferred.make<void>()
  const endOnce = (pid: number) =>
    Effect.uninterruptible(
      Effect.whenEffect(
        Effect.all([endGroup(pid), Effect.sync(() => untrack(pid)), Deferred.succeed(ended, undefined)]),
        Effect.negate(Deferred.isDone(ended))
      )
    )
  const { child, pid } = yield* Effect.acquireRelease(start(options, exit), (started) =>
    Effect.zipRight(
      endOnce(started.pid),
      Effect.sync(() => {
        started.child.stdout.destroy()
        started.child.stderr.destroy()
      })
    )
  )
  const read = (stream: "stdout" | "stderr") =>
    Stream.map(
      NodeStream.fromReadable<ToolFailure, Uint8Array>(
        () => child[stream],
        (cause) => broken("read", cause)
      ),
      (bytes): Chunk => ({ stream, bytes })
    )
  return {
    pid,
    output: Stream.merge(read("stdout"), read("stderr")),
    exit: Deferred.await(exit),
    end: Effect.asVoid(endOnce(pid))
  }
})

/**
 * Runs a shell command in a process group of its own. When its scope closes, the whole group is terminated: asked to
 * end, then killed. Uses `node:child_process`, because the platform's executor waits forever for a process that
 * ignores the first signal. A process that leaves the group (`setsid`) is not covered. Spec: TO-61..TO-63, TO-545.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { accessSync, constants, existsSync, statSync } from "node:fs"
import { PassThrough, type Readable } from "node:stream"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Context, Deferred, Effect, Stream } from "effect"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { ToolFailure } from "../domain/ToolError.ts"
import { codeOf } from "@daybook/log/support/SystemError"
import * as Guard from "./Guard.ts"

// Says why a program could not be started: the system names the program even if its folder is missing.

/** Why no program can start in a working folder; undefined if one can. */
const folderProblem = (folder: string): string | undefined => {
  try {
    if (!statSync(folder).isDirectory()) return "is not a folder"
    accessSync(folder, constants.X_OK)
    return undefined
  } catch (cause) {
    return codeOf(cause) === "ENOENT" ? "does not exist any more" : `cannot be entered (${String(codeOf(cause))})`
  }
}

/** The reason as part of a sentence. `length`: the bytes of the command, which is passed as an argument. */
export const whyNotStarted = (cause: unknown, cwd: string | undefined, length: number): string => {
  const problem = cwd === undefined ? undefined : folderProblem(cwd)
  if (problem !== undefined) return `the working folder ${JSON.stringify(cwd)} ${problem}`
  switch (codeOf(cause)) {
    case "E2BIG":
      return `it has ${length} bytes, and the system passes fewer to a program; write it to a file, and run that`
    case "EAGAIN":
      return "the system has too many processes for this user; end some, and try again"
    case "EMFILE":
    case "ENFILE":
      return "too many files are open; try again"
    default:
      return cause instanceof Error ? cause.message : "unknown fault"
  }
}

/** Milliseconds that a process has to end after SIGTERM, before SIGKILL. */
export class Grace extends Context.Reference<Grace>()("@daybook/core/Grace", { defaultValue: () => 2_000 }) {}

/** How often a group is checked meanwhile. */
const lookMillis = 20

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

export interface Chunk {
  readonly stream: "stdout" | "stderr"
  readonly bytes: Uint8Array
}

export interface Command {
  readonly command: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly prefix?: ReadonlyArray<string>
}

export interface ShellProcess {
  /** The id of the process and of its group. */
  readonly pid: number
  /**
   * Both streams in the order of arrival. Ends when the command and every process that holds its streams have ended; after
   * `end`, when everything that was printed before is read.
   */
  readonly output: Stream.Stream<Chunk, ToolFailure>
  /** The shell's exit; its children may still run. */
  readonly exit: Effect.Effect<Exit>
  /** Ends the whole group: asks, waits, kills. */
  readonly end: Effect.Effect<void>
}

const shell = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh"

const broken = (what: string, why: string) =>
  new ToolFailure({ type: "tool.execution", message: `the command could not be ${what}: ${why}` })

/** Signals the group; false if it has no member left. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Running groups. If the host exits without closing its scopes, they are killed; if it is killed, by the guard. */
const running = new Set<number>()
const killRunning = () => running.forEach((pid) => signalGroup(pid, "SIGKILL"))

const track = (pid: number) => {
  if (running.size === 0) process.on("exit", killRunning)
  running.add(pid)
  Guard.watch(pid)
}
const untrack = (pid: number) => {
  running.delete(pid)
  Guard.forget(pid)
  if (running.size === 0) process.off("exit", killRunning)
}

/** A pause on the system clock, because it waits for processes, whatever clock the program uses. */
export const pause = (millis: number) =>
  Effect.async<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/**
 * Waits for output that is still in the pipe. A busy event loop runs timers before it reads pipes, so it gets some
 * turns after the pause: one to read the output, the others to consume it.
 */
export const drain = (millis: number) => Effect.zipRight(pause(millis), Effect.replicateEffect(EventLoop.turn, 3))

const endGroup = Effect.fnUntraced(function* (pid: number) {
  const graceMillis = yield* Grace
  if (!signalGroup(pid, "SIGTERM")) return
  for (let waited = 0; waited < graceMillis; waited += lookMillis) {
    yield* pause(lookMillis)
    if (!signalGroup(pid, 0)) return
  }
  signalGroup(pid, "SIGKILL")
})

/** What the system keeps of a stream until it is read is less than this. */
const mostKept = 1024 * 1024

interface Reading {
  readonly output: PassThrough
  /** Ends the output when everything that was printed before is read, even if a process still holds the stream. */
  readonly finish: Effect.Effect<void>
}

/** Reads a stream from its start: Node drops the output of a process that ends before its stream has a reader. */
const readFrom = (source: Readable): Reading => {
  const output = new PassThrough()
  let bytes = 0
  source.on("data", (chunk: Buffer) => (bytes += chunk.length))
  source.on("error", (cause) => output.destroy(cause))
  source.pipe(output)
  const finish = Effect.gen(function* () {
    const start = bytes
    // oxlint-disable-next-line no-unmodified-loop-condition -- the listener above changes it
    for (let before = -1; !output.writableEnded && !output.destroyed && bytes - start < mostKept;) {
      if (before === bytes && !output.writableNeedDrain) break
      before = bytes
      // The loop may have polled before the last output: its second turn polls again.
      yield* output.writableNeedDrain ? pause(lookMillis) : Effect.zipRight(EventLoop.turn, EventLoop.turn)
    }
    source.unpipe(output)
    output.end()
  })
  return { output, finish }
}

interface StartedProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly pid: number
  readonly stdout: Reading
  readonly stderr: Reading
}

const start = ({ command, cwd, env, prefix = [] }: Command, exit: Deferred.Deferred<Exit>) =>
  Effect.async<StartedProcess, ToolFailure>((resume) => {
    const refuse = (cause: unknown) => resume(broken("started", whyNotStarted(cause, cwd, Buffer.byteLength(command))))
    try {
      const [file = shell, ...args] = [...prefix, shell, "-c", command]
      const child = spawn(file, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
      const [stdout, stderr] = [readFrom(child.stdout), readFrom(child.stderr)]
      child.on("exit", (code, signal) => Deferred.unsafeDone(exit, Effect.succeed({ code, signal })))
      child.on("error", refuse)
      child.on("spawn", () => {
        if (child.pid === undefined) return
        track(child.pid)
        resume(Effect.succeed({ child, pid: child.pid, stdout, stderr }))
      })
    } catch (cause) {
      // Some failures, such as a NUL in the command, are thrown instead of emitted.
      refuse(cause)
    }
  })

/** Starts a command with a closed standard input. */
export const runShell = Effect.fn("ShellProcess.run")(function* (options: Command) {
  const exit = yield* Deferred.make<Exit>()
  const ended = yield* Deferred.make<void>()
  const endOnce = (pid: number) =>
    Effect.uninterruptible(
      Effect.whenEffect(
        Effect.all([endGroup(pid), Effect.sync(() => untrack(pid)), Deferred.succeed(ended, undefined)]),
        Effect.negate(Deferred.isDone(ended))
      )
    )
  const started = yield* Effect.acquireRelease(start(options, exit), ({ child, pid, stderr, stdout }) =>
    Effect.zipRight(
      endOnce(pid),
      Effect.sync(() => {
        for (const stream of [child.stdout, child.stderr, stdout.output, stderr.output]) stream.destroy()
      })
    )
  )
  yield* Effect.forkScoped(
    Effect.zipRight(Deferred.await(ended), Effect.all([started.stdout.finish, started.stderr.finish]))
  )
  const read = (stream: "stdout" | "stderr") =>
    Stream.map(
      NodeStream.fromReadable<ToolFailure, Uint8Array>(
        () => started[stream].output,
        (cause) => broken("read", cause instanceof Error ? cause.message : "unknown fault")
      ),
      (bytes): Chunk => ({ stream, bytes })
    )
  return {
    pid: started.pid,
    output: Stream.merge(read("stdout"), read("stderr")),
    exit: Deferred.await(exit),
    end: Effect.asVoid(endOnce(started.pid))
  }
})

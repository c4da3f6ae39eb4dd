/**
 * A program with separate streams that a transport runs: a local process, a channel of an SSH connection, or a program in
 * a container. `session/` builds live shells from programs and knows no transport. Spec: SL-80..SL-83, SL-603 in
 * specs/shell.md.
 */
import type { Readable, Writable } from "node:stream"
import { Deferred, Effect, Exit as Outcome, FiberId, type Scope } from "effect"
import type { Breach, Limits, Outside } from "@daybook/core/child/SandboxWatch"
import type { TransportFailed } from "../domain/ShellError.ts"

export type StreamName = "stdout" | "stderr"

/** How a program ended. Both fields are null if the connection broke before its end was known. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  /** Why its sandbox was ended. */
  readonly breach?: Breach
}

export type Listener = (stream: StreamName, bytes: Uint8Array) => void

export interface Program {
  /** Gives every chunk to the listener, and chunks that came before. Called once. */
  readonly listen: (listener: Listener) => void
  /** Stops reading: the program waits when it prints more. */
  readonly pause: () => void
  readonly resume: () => void
  /** Sends bytes to standard input. Completes when the transport has taken them; ignored after the end. */
  readonly write: (bytes: string | Uint8Array) => Effect.Effect<void>
  /** As `write`, without waiting. */
  readonly send: (bytes: string | Uint8Array) => void
  readonly endInput: Effect.Effect<void>
  readonly exit: Effect.Effect<Exit>
  /** Only in a sandbox: the program's number for programs outside of it. Undefined once it has ended. */
  readonly outside?: () => Outside | undefined
}

/** Runs programs in one place. The scope of the transport holds what they share, such as the connection. */
export interface Transport {
  readonly name: "local" | "ssh" | "docker"
  /** Runs a script with `sh -c`, outside of a shell's sandbox. The scope's end closes the streams. */
  readonly run: (script: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
  /** Runs the script that becomes the shell: in the sandbox, if there is one; else as `run`. */
  readonly runShell: (script: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
  readonly sandbox?: ShellSandbox
}

interface ShellSandbox {
  readonly cwd: string
  readonly limits: Limits
  /** What the sandbox allows, to explain a failure. */
  readonly summary: string
  /** Runs a script that reaches what the shell reaches, and also writes this folder. */
  readonly run: (script: string, folder: string) => Effect.Effect<Program, TransportFailed, Scope.Scope>
}

// A `Program` on Node streams: those of a process, or of a channel of an SSH connection.

export interface Parts {
  readonly input: Writable
  readonly stdout: Readable
  readonly stderr: Readable
}

export interface Ending {
  readonly program: Program
  /** Records how the program ended. Only the first call counts. */
  readonly end: (exit: Exit) => void
  /** Ends the program's part on this side: the listener gets nothing more. */
  readonly detach: () => void
}

/** The end of a program whose connection broke. */
export const lostExit: Exit = { code: null, signal: null }

/** Bytes that are handed on in one turn of the event loop. A stream alone would hand on as many as the system has. */
const portion = 262_144

export const makeProgram = ({ input, stderr, stdout }: Parts): Ending => {
  const outputs = [["stdout", stdout] as const, ["stderr", stderr] as const]
  const exit = Deferred.unsafeMake<Exit>(FiberId.none)
  /** Writes that wait until the stream takes more. A channel that closes never calls them back. */
  const waiting = new Set<() => void>()
  let over = false
  // A broken pipe is no failure of its own: the program's end says what happened.
  for (const stream of [input, ...outputs.map(([, stream]) => stream)]) stream.on("error", () => undefined)

  const end = (result: Exit) => {
    over = true
    Deferred.unsafeDone(exit, Outcome.succeed(result))
    for (const done of waiting) done()
  }
  let isPaused = false
  let isDetached = false
  let given = 0
  const flow = (flows: boolean) => {
    for (const [, stream] of outputs) {
      if (flows) stream.resume()
      else stream.pause()
    }
  }
  /** Gives way to whatever waits, such as calls in other shells. */
  const giveWay = (bytes: number) => {
    const isFull = given < portion && given + bytes >= portion
    given += bytes
    if (!isFull) return
    flow(false)
    setImmediate(() => {
      given = 0
      if (!isPaused && !isDetached) flow(true)
    })
  }
  let listener: Listener | undefined
  const early: Array<readonly [StreamName, Uint8Array]> = []
  // Read from the start: Node drops the output of a process that ends before its streams have a reader.
  for (const [name, stream] of outputs) {
    stream.on("data", (bytes: Uint8Array) => {
      if (listener !== undefined) {
        listener(name, bytes)
        return giveWay(bytes.length)
      }
      early.push([name, bytes])
      stream.pause()
    })
  }
  const takesInput = () => !over && !input.destroyed && !input.writableEnded
  const write = (bytes: string | Uint8Array) =>
    Effect.async<void>((resume) => {
      const done = () => {
        waiting.delete(done)
        resume(Effect.void)
      }
      if (!takesInput() || input.write(bytes, done)) return done()
      waiting.add(done)
      return Effect.sync(() => waiting.delete(done))
    })
  const program: Program = {
    listen: (to) => {
      listener = to
      for (const [name, bytes] of early.splice(0)) to(name, bytes)
      flow(true)
    },
    pause: () => {
      isPaused = true
      flow(false)
    },
    resume: () => {
      isPaused = false
      flow(true)
    },
    write,
    send: (bytes) => {
      if (takesInput()) input.write(bytes)
    },
    endInput: Effect.sync(() => {
      if (takesInput()) input.end()
    }),
    exit: Deferred.await(exit)
  }
  const detach = () => {
    isDetached = true
    for (const [, stream] of outputs) stream.removeAllListeners("data").pause()
    end(lostExit)
  }
  return { program, end, detach }
}

/** What the programs of a transport share, such as a connection, and the news that it is gone. */
export interface Shared {
  readonly isLost: () => boolean
  readonly lose: () => void
  /** Calls back when it is lost, at once if it is. Returns what takes the call back. */
  readonly onLost: (call: () => void) => () => void
}

export const makeShared = (): Shared => {
  const calls = new Set<() => void>()
  let isLost = false
  return {
    isLost: () => isLost,
    lose: () => {
      isLost = true
      for (const call of calls) call()
    },
    onLost: (call) => {
      if (isLost) call()
      else calls.add(call)
      return () => void calls.delete(call)
    }
  }
}

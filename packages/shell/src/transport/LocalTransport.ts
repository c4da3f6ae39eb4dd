/**
 * Programs on this machine. Each is a process in a session and group of its own, started with the environment of other
 * children of the runtime. Uses `node:child_process`: a control stream needs a fourth pipe. Spec: SL-80..SL-83 in specs/shell.md.
 */
import { spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { Effect, type Scope } from "effect"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { TransportFailed } from "../domain/ShellError.ts"
import { type Ending, make as makeProgram } from "./NodeProgram.ts"
import type { Program, StreamName, Transport } from "./Program.ts"

export interface LocalSettings {
  /** The environment of the shell; harmless variables of this process by default. */
  readonly env?: Readonly<Record<string, string>>
}

/** How a program is started. */
export interface Launch {
  readonly env: Readonly<Record<string, string>>
  /** A program with arguments that runs the script. */
  readonly prefix: ReadonlyArray<string>
  /** This process's folder by default. */
  readonly cwd?: string
  /** Whether the program has a third stream. */
  readonly control: boolean
}

const failed = (cause: unknown) =>
  new TransportFailed({
    transport: "local",
    reason: "no shell",
    details: `sh could not be started: ${cause instanceof Error ? cause.message : "unknown fault"}`
  })

const killGroup = (pid: number) => {
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // The group has ended.
  }
}

interface Started extends Ending {
  readonly pid: number
  readonly streams: ReadonlyArray<Readable | Writable>
}

/** The streams of a process, from descriptor 1. */
const names: ReadonlyArray<StreamName> = ["stdout", "stderr", "control"]

const isReadable = (stream: Readable | Writable | null | undefined): stream is Readable =>
  stream !== null && stream !== undefined && "read" in stream

const start = ({ control, cwd, env, prefix }: Launch, script: string) =>
  Effect.async<Started, TransportFailed>((resume) => {
    try {
      const [file = "sh", ...args] = [...prefix, "sh", "-c", script]
      const child = spawn(file, args, {
        env,
        ...(cwd === undefined ? {} : { cwd }),
        detached: true,
        stdio: ["pipe", "pipe", "pipe", control ? "pipe" : "ignore"]
      })
      const { pid, stdin, stdio } = child
      if (pid === undefined || stdin === null) return void child.on("error", (cause) => resume(failed(cause)))
      const outputs = names.flatMap((name, index): ReadonlyArray<readonly [StreamName, Readable]> => {
        const stream = stdio[index + 1]
        return isReadable(stream) ? [[name, stream]] : []
      })
      const ending = makeProgram({ input: stdin, outputs })
      child.on("exit", (code, signal) => ending.end({ code, signal }))
      child.on("error", (cause) => resume(failed(cause)))
      const streams = [stdin, ...outputs.map(([, stream]) => stream)]
      child.on("spawn", () => resume(Effect.succeed({ ...ending, pid, streams })))
    } catch (cause) {
      // Some failures, such as a NUL in the script, are thrown instead of emitted.
      resume(failed(cause))
    }
  })

export interface Launched {
  readonly program: Program
  readonly pid: number
  /** Kills its process group. */
  readonly end: () => void
}

/** Runs a script. The scope's end kills its process group. */
export const launch = Effect.fn("LocalTransport.run")(function* (
  options: Launch,
  script: string
): Effect.fn.Return<Launched, TransportFailed, Scope.Scope> {
  const { pid, program } = yield* Effect.acquireRelease(start(options, script), ({ detach, pid: started, streams }) =>
    Effect.sync(() => {
      detach()
      killGroup(started)
      for (const stream of streams) stream.destroy()
    })
  )
  return { program, pid, end: () => killGroup(pid) }
})

export const make = (settings: LocalSettings = {}): Transport => {
  const env = settings.env ?? childEnvironment(process.env)
  const run = (control: boolean) => (script: string) =>
    Effect.map(launch({ env, prefix: [], control }, script), ({ program }) => program)
  return { name: "local", run: run(false), runControlled: run(true), controlled: true }
}

/**
 * Programs on this machine. Each is a process in a session and group of its own, started with the environment of other
 * children of the runtime. Spec: SL-80..SL-83 in specs/shell.md.
 */
import { spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { Effect, type Scope } from "effect"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { whyNotStarted } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import { type Ending, make as makeProgram } from "./NodeProgram.ts"
import type { Program, Transport } from "./Program.ts"

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
}

const failed = (cause: unknown, cwd: string | undefined, length: number) =>
  new TransportFailed({
    transport: "local",
    reason: "no shell",
    details: `sh could not be started: ${whyNotStarted(cause, cwd, length)}`
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

const start = ({ cwd, env, prefix }: Launch, script: string) =>
  Effect.async<Started, TransportFailed>((resume) => {
    const refuse = (cause: unknown) => resume(failed(cause, cwd, Buffer.byteLength(script)))
    try {
      const [file = "sh", ...args] = [...prefix, "sh", "-c", script]
      const child = spawn(file, args, {
        env,
        ...(cwd === undefined ? {} : { cwd }),
        detached: true,
        stdio: ["pipe", "pipe", "pipe"]
      })
      const { pid, stderr, stdin, stdout } = child
      if (pid === undefined) return void child.on("error", refuse)
      const ending = makeProgram({
        input: stdin,
        outputs: [
          ["stdout", stdout],
          ["stderr", stderr]
        ]
      })
      child.on("exit", (code, signal) => ending.end({ code, signal }))
      child.on("error", refuse)
      const streams = [stdin, stdout, stderr]
      child.on("spawn", () => resume(Effect.succeed({ ...ending, pid, streams })))
    } catch (cause) {
      // Some failures, such as a NUL in the script, are thrown instead of emitted.
      refuse(cause)
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
  const run = (script: string) => Effect.map(launch({ env, prefix: [] }, script), ({ program }) => program)
  return { name: "local", run, runShell: run }
}

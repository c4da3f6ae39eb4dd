/**
 * Programs on this machine. Each is a process in a session and group of its own, started with the environment of other
 * children of the runtime. Spec: SL-80..SL-83, SL-200..SL-210 in specs/shell.md.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import * as path from "node:path"
import type { Readable, Writable } from "node:stream"
import { Effect, type Scope } from "effect"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { bounded, type Breach, makeRest, outsideOf, watch } from "@daybook/core/child/SandboxWatch"
import { real } from "@daybook/core/child/Mounts"
import {
  type Confined,
  type Launch,
  type Sandboxes,
  type SandboxRefused,
  start,
  type SandboxRequest
} from "@daybook/core/child/Sandbox"
import { whyNotStarted } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import type { LocalTarget } from "../domain/Target.ts"
import { type Ending, makeProgram, type Program, type Transport } from "./Program.ts"

export interface LocalSettings {
  /** The environment of the shell; harmless variables of this process by default. */
  readonly env?: Readonly<Record<string, string>>
}

/** How a program is started. */
interface LocalLaunch {
  readonly env: Readonly<Record<string, string>>
  /** A program with arguments that runs the script. */
  readonly prefix: ReadonlyArray<string>
  /** This process's folder by default. */
  readonly cwd?: string
}

const startFailed = (cause: unknown, cwd: string | undefined, length: number) =>
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

interface LocalProcess extends Ending {
  readonly pid: number
  readonly streams: ReadonlyArray<Readable | Writable>
}

const startProcess = ({ cwd, env, prefix }: LocalLaunch, script: string) =>
  Effect.async<LocalProcess, TransportFailed>((resume) => {
    const refuse = (cause: unknown) => resume(startFailed(cause, cwd, Buffer.byteLength(script)))
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
      const ending = makeProgram({ input: stdin, stdout, stderr })
      child.on("exit", (code, signal) => ending.end({ code, signal }))
      child.on("error", refuse)
      const streams = [stdin, stdout, stderr]
      child.on("spawn", () => resume(Effect.succeed({ ...ending, pid, streams })))
    } catch (cause) {
      // Some failures, such as a NUL in the script, are thrown instead of emitted.
      refuse(cause)
    }
  })

interface Launched {
  readonly program: Program
  readonly pid: number
  /** Kills its process group. */
  readonly end: () => void
}

/** Runs a script. The scope's end kills its process group. */
const launchProcess = Effect.fn("LocalTransport.run")(function* (
  options: LocalLaunch,
  script: string
): Effect.fn.Return<Launched, TransportFailed, Scope.Scope> {
  const { pid, program } = yield* Effect.acquireRelease(
    startProcess(options, script),
    ({ detach, pid: started, streams }) =>
      Effect.sync(() => {
        detach()
        killGroup(started)
        for (const stream of streams) stream.destroy()
      })
  )
  return { program, pid, end: () => killGroup(pid) }
})

export const makeUnconfined = (settings: LocalSettings = {}): Transport => {
  const env = settings.env ?? childEnvironment(process.env)
  const run = (script: string) => Effect.map(launchProcess({ env, prefix: [] }, script), ({ program }) => program)
  return { name: "local", run, runShell: run }
}

// Programs on this machine, with the shell in the runtime's sandbox. The keeper and the writer of the shell's input are
// outside, where they can end the sandbox; they take no program from a folder that the shell can write.

export interface LocalOptions extends LocalSettings {
  /** Creates the sandbox of the shell, if its settings say so. */
  readonly sandbox?: Sandboxes
  /** Folders that a sandboxed shell may write, besides those of the settings; this process's folder by default. */
  readonly writable?: ReadonlyArray<string>
  /** Paths that the sandbox hides, besides those of the settings. */
  readonly hidden?: ReadonlyArray<string>
}

const failed = (reason: TransportFailed["reason"], details: string) =>
  new TransportFailed({ transport: "local", reason, details })

const refused = ({ message }: SandboxRefused) => failed("sandbox.denied", message)

/** Starts a program in a sandbox. */
const begin = <R>(
  launch: Launch,
  use: (prefix: ReadonlyArray<string>) => Effect.Effect<Launched, TransportFailed, R>
) => Effect.catchTag(start(launch, use), "SandboxRefused", refused)

/** Folders of programs that no sandboxed shell can write. */
const systemPath = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"

/** A folder of the host that the sandbox shows as read-only: what is created in it, such as a fifo, reaches the shell. */
const shownFolder = Effect.acquireRelease(
  Effect.try({
    try: () => mkdtempSync(path.join(real(tmpdir()) ?? tmpdir(), "daybook-shell-")),
    catch: () => failed("no shell", `the folder ${tmpdir()} cannot be written`)
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The sandbox. A shell in a folder of the settings does not need the host's own, which may hold the home folder. */
const confine = (sandbox: Sandboxes, wanted: SandboxRequest) =>
  sandbox.confine(wanted).pipe(
    Effect.catchTag("SandboxRefused", (first) =>
      Effect.mapError(sandbox.confine({ ...wanted, writable: [] }), () => first)
    ),
    Effect.mapError(({ _tag, message }) =>
      failed(_tag === "SandboxRefused" ? "sandbox.denied" : "sandbox.unavailable", message)
    ),
    Effect.flatMap(Effect.orDie)
  )

/** Runs the shell's script in the sandbox, and ends it when it exceeds a bound or protects no longer what it did. */
const runConfined = ({ env, isProtected, launch, limits }: Confined): Transport["runShell"] =>
  Effect.fnUntraced(function* (script) {
    const bounds = yield* bounded(limits)
    const { end, pid, program } = yield* begin(launch, (prefix) =>
      launchProcess({ env, prefix: [...bounds, ...prefix], cwd: "/" }, script)
    )
    const rest = makeRest()
    let breach: Breach | undefined
    const stop = (found: Breach) => {
      breach ??= found
      end()
    }
    /** Whether input reaches the shell. In a sandbox that does not protect, no command begins. */
    const takes = () => {
      const safe = isProtected()
      if (safe) rest.end()
      else stop("unprotected")
      return safe
    }
    yield* Effect.forkScoped(
      Effect.map(
        watch(() => pid, limits, { also: () => (isProtected() ? undefined : ("unprotected" as const)), rest }),
        stop
      )
    )
    return {
      ...program,
      write: (bytes) => Effect.suspend(() => (takes() ? program.write(bytes) : Effect.void)),
      send: (bytes) => {
        if (takes()) program.send(bytes)
      },
      exit: Effect.map(program.exit, (exit) => (breach === undefined ? exit : { ...exit, breach })),
      outside: () => outsideOf(pid)
    }
  })

/** Opens the way to this machine. Fails before anything starts if a sandbox is asked for and cannot be made as asked. */
export const make = Effect.fn("SandboxedTransport.make")(function* (
  target: LocalTarget,
  { env = childEnvironment(process.env), hidden = [], sandbox, writable = [process.cwd()] }: LocalOptions
): Effect.fn.Return<Transport, TransportFailed, Scope.Scope> {
  if (sandbox?.settings.mode !== "on") return makeUnconfined({ env })
  const asked = target.cwd ?? writable[0] ?? process.cwd()
  const cwd = real(asked)
  if (cwd === undefined) return yield* failed("no shell", `the shell cannot start in ${asked}: there is no such folder`)
  const shown = yield* shownFolder
  const confined = yield* confine(sandbox, {
    cwd,
    writable: writable.flatMap((name) => real(name) ?? []),
    readable: [shown],
    env,
    own: { hidden: [...(sandbox.settings.hidden ?? []), ...hidden] }
  })
  const run = (options: Pick<LocalLaunch, "env" | "prefix">, script: string) =>
    launchProcess({ ...options, cwd: "/" }, script)
  const programOf = Effect.map(({ program }: { readonly program: Program }) => program)
  const outside = { env: { PATH: systemPath, HOME: confined.env["HOME"] ?? homedir(), TMPDIR: shown }, prefix: [] }
  return {
    name: "local",
    run: (script) => programOf(run(outside, script)),
    runShell: runConfined(confined),
    sandbox: {
      cwd,
      limits: confined.limits,
      summary: confined.summary,
      run: (script, folder) =>
        programOf(
          begin(confined.beside([folder]), (prefix) =>
            run({ env: { ...confined.env, PATH: systemPath }, prefix }, script)
          )
        )
    }
  }
})

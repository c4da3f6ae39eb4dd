/**
 * Confines commands and MCP servers with bubblewrap, in separate process, network and mount namespaces. Owns the
 * settings and the command line; `Mounts.ts` decides what is visible, `SandboxWatch.ts` bounds a running sandbox. Spec:
 * SB-1..SB-18 in specs/security.md.
 */
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import * as path from "node:path"
import { performance } from "node:perf_hooks"
import { Context, Effect, Layer, Option, Schema, Scope, Stream } from "effect"
import { isWithin } from "../support/TextFile.ts"
import {
  guardsWithin,
  keeping,
  type Meant,
  meantBy,
  type Mount,
  mountArguments,
  mountsOf,
  real,
  remaining,
  type MountOptions,
  strayIn,
  tableOf
} from "./Mounts.ts"
import { outsideOf } from "./SandboxWatch.ts"
import { pause, runShell } from "./ShellProcess.ts"

// Lets the program of a new sandbox begin once its mounts are checked.

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

/** Waits until the sandbox of this `bwrap` is made. Returns why its program must not begin, if it must not. */
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

// Builds the seccomp filter of a sandbox: system calls that reach past its namespaces, or that sandboxed programs
// never need, fail as if the kernel lacked them. Pure. Spec: SB-17 in specs/security.md.

interface Calls {
  /** The kernel's number of the architecture; calls of any other one, such as 32-bit ones, fail. */
  readonly architecture: number
  readonly socket: number
  readonly denied: ReadonlyArray<number>
}

const byArchitecture: Readonly<Record<string, Calls>> = {
  // add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, io_uring_setup, _enter, _register
  x64: { architecture: 0xc000003e, socket: 41, denied: [248, 249, 250, 298, 321, 323, 425, 426, 427] },
  arm64: { architecture: 0xc00000b7, socket: 198, denied: [217, 218, 219, 241, 280, 282, 425, 426, 427] }
}

/** Numbers from here on are x32's numbers on x64: the same calls under other numbers. */
const x32 = 0x4000_0000
/** Addresses of virtual machines and their host: no network namespace contains them. */
const vsock = 40

const errors = { noSuchCall: 38, noSuchFamily: 97 }

/** The offsets of what a filter reads: the call's number, the architecture, and the first argument. */
const fields = { number: 0, architecture: 4, firstArgument: 16 }

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number]

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
/** Skips as many instructions when the loaded number differs. */
const unlessEqual = (value: number, skip: number): Instruction => [0x15, 0, skip, value]
const unlessAtLeast = (value: number, skip: number): Instruction => [0x35, 0, skip, value]
const fail = (error: number): Instruction => [0x06, 0, 0, 0x0005_0000 | error]
const allow: Instruction = [0x06, 0, 0, 0x7fff_0000]

const instructionsFor = ({ architecture, denied, socket }: Calls): ReadonlyArray<Instruction> => [
  load(fields.architecture),
  [0x15, 1, 0, architecture],
  fail(errors.noSuchCall),
  load(fields.number),
  unlessAtLeast(x32, 1),
  fail(errors.noSuchCall),
  ...denied.flatMap((call) => [unlessEqual(call, 1), fail(errors.noSuchCall)]),
  unlessEqual(socket, 3),
  load(fields.firstArgument),
  unlessEqual(vsock, 1),
  fail(errors.noSuchFamily),
  allow
]

/** The filter as bytes for `bwrap --seccomp`; undefined for architectures that are not known. */
export const filterFor = (architecture: string): Uint8Array | undefined => {
  const calls = byArchitecture[architecture]
  if (calls === undefined) return undefined
  const instructions = instructionsFor(calls)
  const bytes = Buffer.alloc(instructions.length * 8)
  for (const [at, [code, whenTrue, whenFalse, value]] of instructions.entries()) {
    bytes.writeUInt16LE(code, at * 8)
    bytes.writeUInt8(whenTrue, at * 8 + 2)
    bytes.writeUInt8(whenFalse, at * 8 + 3)
    bytes.writeUInt32LE(value, at * 8 + 4)
  }
  return bytes
}

/** How commands and servers are confined. Paths are absolute; paths that do not exist are ignored. */
export interface SandboxSettings {
  /** `off` by default. */
  readonly mode?: "off" | "on"
  /** `off` (the default): an empty network namespace. `on`: the host's network. */
  readonly network?: "off" | "on"
  /** Additional folders and files that may be written. */
  readonly writable?: ReadonlyArray<string>
  /** Additional folders and files that may be read. */
  readonly readable?: ReadonlyArray<string>
  /** Paths that are hidden even inside the folders above. */
  readonly hidden?: ReadonlyArray<string>
  /** Folders that are the whole file system of programs inside them, besides the system folders. Set by the host. */
  readonly worlds?: ReadonlyArray<string>
  /** Whether a sandboxed command that would need a question runs without one; false by default. */
  readonly autoAllow?: boolean
  /** Maximum of processes and threads at the same time; 1,024 by default. */
  readonly processes?: number
  /** Maximum memory of all processes together, in MiB; 4,096 by default. */
  readonly memory?: number
  /** Path of `bwrap`; searched in the system's folders by default. */
  readonly program?: string
}

/** A sandbox is configured and cannot be created on this machine. */
export class SandboxUnavailable extends Schema.TaggedError<SandboxUnavailable>("@daybook/core/SandboxUnavailable")(
  "SandboxUnavailable",
  { reason: Schema.Literal("missing", "broken"), details: Schema.String }
) {
  override get message() {
    return this.reason === "missing"
      ? `the configuration asks for a sandbox, and bubblewrap is missing (${this.details}). Install it: ` +
          `"apt-get install bubblewrap", "dnf install bubblewrap" or "apk add bubblewrap"; or set sandbox.mode to off`
      : `the configuration asks for a sandbox, and bubblewrap cannot make one here: ${this.details}. Allow user ` +
          `namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or set sandbox.mode to off`
  }
}

/** The requested folders cannot be shown in a sandbox. */
export class SandboxRefused extends Schema.TaggedError<SandboxRefused>("@daybook/core/SandboxRefused")(
  "SandboxRefused",
  { details: Schema.String }
) {
  override get message() {
    return this.details
  }
}

export interface Launch {
  /** The command line before the program and its arguments. */
  readonly prefix: ReadonlyArray<string>
  /** Lets the program of this process begin once its sandbox is checked. If it fails, the caller ends the process. */
  readonly admit: (pid: number) => Effect.Effect<void, SandboxRefused>
}

/** Starts a program in a sandbox, and returns when it begins or has ended. */
export const start = <A extends { readonly pid: number }, E, R>(
  { admit: begin, prefix }: Launch,
  use: (prefix: ReadonlyArray<string>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | SandboxRefused, R> => Effect.tap(use(prefix), ({ pid }) => begin(pid))

export interface Confined {
  readonly launch: Launch
  /**
   * Another sandbox that shows the same, with the protection of the first, and these folders as writable: for programs of the
   * runtime beside the sandboxed one, which must not reach more.
   */
  readonly beside: (writable: ReadonlyArray<string>) => Launch
  /** False once a protected path was replaced from outside: a sandbox that runs does not protect the new one. */
  readonly isProtected: () => boolean
  readonly env: Readonly<Record<string, string>>
  readonly limits: { readonly processes: number; readonly bytes: number }
  /** What the sandbox allows, to explain a failure. */
  readonly summary: string
}

export interface SandboxRequest {
  /** The working folder; the sandbox must show it. */
  readonly cwd: string
  /** Folders that may be written or read, besides the configured ones. */
  readonly writable: ReadonlyArray<string>
  readonly readable?: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly own?: SandboxSettings
}

const places = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"]

const mebibyte = 1024 * 1024
const defaults = { processes: 1_024, memory: 4_096 }

/** Shells other than bash can close only descriptors of one digit. */
const limiterShell = existsSync("/bin/bash")
  ? { path: "/bin/bash", highest: 1_048_576 }
  : { path: "/bin/sh", highest: 9 }

/** Closes inherited descriptors, sets limits, waits to be let begin, then runs the program. */
const limiter =
  `for fd in /proc/self/fd/*; do fd=\${fd##*/}; [ "$fd" -gt 2 ] && [ "$fd" -le ${limiterShell.highest} ] && eval "exec $fd>&-"; done; ` +
  'ulimit -c 0; ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null; ulimit -d "$2" 2>/dev/null; [ "$3" = go ] || kill -STOP $$; shift 3; exec "$@"'

/** New namespaces, no capabilities, no nested user namespaces, killed when this process dies. */
const isolation = (network: boolean): ReadonlyArray<string> => [
  ..."--unshare-user --disable-userns --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
  ...(network ? [] : ["--unshare-net"]),
  ..."--cap-drop ALL --die-with-parent --new-session --hostname sandbox".split(" ")
]

const worldOf = ({ worlds = [] }: SandboxSettings, { cwd }: SandboxRequest): string | undefined =>
  worlds.flatMap((name) => real(name) ?? []).find((world) => isWithin(world, cwd))

const givenBy = (
  settings: SandboxSettings,
  { cwd, readable = [], writable }: SandboxRequest,
  world: string | undefined
): Effect.Effect<Array<Mount>, SandboxRefused> =>
  Effect.gen(function* () {
    const mounts = (names: ReadonlyArray<string>, access: Mount["access"]) =>
      names.flatMap((name): ReadonlyArray<Mount> => {
        const found = real(name)
        return found === undefined ? [] : [{ path: found, access }]
      })
    const given = [
      ...mounts([...(settings.readable ?? []), ...readable], "read"),
      ...mounts([...(settings.writable ?? []), ...writable, ...(world === undefined ? [] : [world])], "write")
    ]
    const homes = [homedir(), process.env["HOME"] ?? homedir()].map((home) => real(home) ?? home)
    const wide = given.find((mount) => homes.some((home) => isWithin(mount.path, home)))
    if (wide !== undefined) {
      const details = `a sandbox hides the home folder, and ${JSON.stringify(wide.path)} holds it: work in a folder below`
      return yield* new SandboxRefused({ details })
    }
    if (cwd !== "/tmp" && !given.some((mount) => isWithin(mount.path, cwd))) {
      const details = `${JSON.stringify(cwd)} is outside the sandbox; sandbox.writable or sandbox.readable can name it`
      return yield* new SandboxRefused({ details })
    }
    return given
  })

const summaryOf = (given: ReadonlyArray<Mount>, network: boolean) => {
  const writable = given.filter(({ access }) => access === "write").map((mount) => mount.path)
  return (
    `It ran in a sandbox: only ${[...writable, "/tmp"].join(", ")} may be written, except .git and other protected paths; ` +
    `the home folder and files with secrets are hidden${network ? "" : "; there is no network"}. If that is why it failed, ` +
    "continue without it or tell the person what it needs."
  )
}

/** `bwrap`, and the path of the system call filter if the architecture has one. */
type Program = { readonly program: string; readonly filter: string | undefined }

export interface Sandboxes {
  readonly settings: SandboxSettings
  /** Fails unless the sandbox shows the working folder. None if no sandbox is configured. */
  readonly confine: (
    wanted: SandboxRequest
  ) => Effect.Effect<Option.Option<Confined>, SandboxUnavailable | SandboxRefused>
}

/** Starts `bwrap` through a shell that opens the filter, because `bwrap` reads it from a descriptor. */
const filtered = (filter: string | undefined, program: string): ReadonlyArray<string> =>
  filter === undefined ? [program] : ["/bin/sh", "-c", 'exec 9<"$0" "$@"', filter, program, "--seccomp", "9"]

const confine = Effect.fnUntraced(function* (
  { filter, program }: Program,
  settings: SandboxSettings,
  wanted: SandboxRequest
) {
  const network = settings.network === "on"
  const { memory, processes } = { ...defaults, ...settings }
  const bytes = memory * mebibyte
  const world = worldOf(settings, wanted)
  const given = yield* givenBy(settings, wanted, world)
  const { TMPDIR: _, HOME: written = homedir(), ...rest } = wanted.env
  const home = path.isAbsolute(written) && written !== "/" ? written : "/tmp"
  const env = { ...rest, HOME: home }
  const shown: MountOptions = { given, home, hidden: settings.hidden ?? [], bytes: Math.ceil(bytes / 4), world }
  const guards = guardsWithin(shown)
  const launch = (all: MountOptions, kept: ReadonlyArray<Mount>): Launch => {
    const mounts = mountsOf(all, kept)
    return {
      prefix: [
        ...filtered(filter, program),
        ...isolation(network),
        ...mountArguments(all, mounts),
        "--chdir",
        wanted.cwd,
        "--",
        limiterShell.path,
        "-c",
        limiter,
        "sandbox",
        String(processes),
        String(Math.ceil(bytes / 1024)),
        "wait"
      ],
      admit: (pid) =>
        Effect.flatMap(admit(pid, meantBy(mounts)), (details) =>
          details === undefined ? Effect.void : Effect.fail(new SandboxRefused({ details }))
        )
    }
  }
  return {
    launch: launch(shown, guards),
    beside: (writable) => {
      const more = writable.map((name): Mount => ({ path: name, access: "write" }))
      return launch({ ...shown, given: [...given, ...more] }, remaining(guards))
    },
    isProtected: keeping(guards),
    env,
    limits: { processes, bytes },
    summary: summaryOf(given, network)
  } satisfies Confined
})

/** Runs an empty command in a sandbox, to learn whether one can be created. */
const probe = Effect.fn("Sandbox.probe")(function* (program: Program) {
  const env = { PATH: "/usr/bin:/bin" }
  const { launch } = yield* confine(program, {}, { cwd: "/tmp", writable: [], env })
  let said = ""
  const { code } = yield* Effect.scoped(
    Effect.gen(function* () {
      const shell = yield* start(launch, (prefix) => runShell({ command: "exit 0", cwd: "/", env, prefix }))
      yield* Stream.runForEach(shell.output, ({ bytes }) => Effect.sync(() => (said += Buffer.from(bytes).toString())))
      return yield* shell.exit
    })
  )
  if (code !== 0) return yield* new SandboxUnavailable({ reason: "broken", details: said.trim().slice(0, 500) })
})

/** Finds `bwrap`; fails with `SandboxUnavailable` unless it exists and works. */
export const findProgram = Effect.fn("Sandbox.find")(function* ({ program }: SandboxSettings, filter?: string) {
  const looked = program === undefined ? places : [program]
  const found = looked.find((place) => path.isAbsolute(place) && existsSync(place))
  if (found === undefined) {
    const details = process.platform === "linux" ? `not at ${looked.join(", ")}` : `it needs Linux`
    return yield* new SandboxUnavailable({ reason: "missing", details })
  }
  yield* Effect.mapError(probe({ program: found, filter }), (error) =>
    error._tag === "SandboxUnavailable" ? error : new SandboxUnavailable({ reason: "broken", details: error.message })
  )
  return found
})

/** Writes the filter to a file without a name and returns its descriptor: no other program can remove or replace it. */
const openNameless = (filter: Uint8Array): number => {
  const folder = mkdtempSync(path.join(tmpdir(), "daybook-sandbox-"))
  try {
    const file = path.join(folder, "filter")
    writeFileSync(file, filter, { mode: 0o600 })
    return openSync(file, "r")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The path of the system call filter, valid until the scope closes. */
const filterPath = Effect.gen(function* () {
  const filter = filterFor(process.arch)
  if (filter === undefined || process.platform !== "linux") return undefined
  const descriptor = yield* Effect.acquireRelease(
    Effect.sync(() => openNameless(filter)),
    (opened) => Effect.sync(() => closeSync(opened))
  )
  return `/proc/${process.pid}/fd/${descriptor}`
})

const make = Effect.fnUntraced(function* (settings: SandboxSettings) {
  const scope = yield* Effect.scope
  const filter = yield* Effect.cached(Scope.extend(filterPath, scope))
  // A success is cached for the life of the host; a failure is not.
  const known = new Map<string, Program>()
  const found = Effect.fnUntraced(function* (asked: SandboxSettings) {
    const key = asked.program ?? ""
    const before = known.get(key)
    if (before !== undefined) return before
    const file = yield* filter
    const program: Program = { program: yield* findProgram(asked, file), filter: file }
    known.set(key, program)
    return program
  })
  return {
    settings,
    confine: Effect.fn("Sandbox.confine")(function* (wanted: SandboxRequest) {
      const asked = { ...settings, ...wanted.own }
      if (asked.mode !== "on") return Option.none()
      return Option.some(yield* confine(yield* found(asked), asked, wanted))
    })
  } satisfies Sandboxes
})

/** The host's sandboxes; none by default. */
export class Sandbox extends Context.Reference<Sandbox>()("@daybook/core/Sandbox", {
  defaultValue: (): Sandboxes => ({ settings: {}, confine: () => Effect.succeed(Option.none()) })
}) {}

export const layer = (settings: SandboxSettings = {}): Layer.Layer<never> => Layer.scoped(Sandbox, make(settings))

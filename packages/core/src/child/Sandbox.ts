/**
 * The sandbox of commands and MCP servers: bubblewrap, with namespaces of its own for processes, network and mounts.
 * Owns the settings and the command line; what is shown is in `Mounts.ts`, what bounds a running one in
 * `SandboxWatch.ts`. Spec: SB-1..SB-12 in specs/sandbox.md.
 */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import * as path from "node:path"
import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { isWithin } from "../config/TextFile.ts"
import { runShell } from "../tool/builtin/ShellProcess.ts"
import { mountArguments, real, type Mount } from "./Mounts.ts"

/** How commands and servers are confined. Paths are absolute; those that do not exist are left out. */
export interface SandboxSettings {
  /** `off` by default. */
  readonly mode?: "off" | "on"
  /** `off` by default: a network of its own, in which nobody else is. `on`: that of the host. */
  readonly network?: "off" | "on"
  /** Further folders and files that may be written. */
  readonly writable?: ReadonlyArray<string>
  /** Further folders and files that may be read. */
  readonly readable?: ReadonlyArray<string>
  /** What is hidden also where it lies in the folders above. */
  readonly hidden?: ReadonlyArray<string>
  /** Folders that are the whole file system of what works in them, besides the system's own; the host names them. */
  readonly worlds?: ReadonlyArray<string>
  /** Whether a command that would be asked about runs without a question; false by default. */
  readonly autoAllow?: boolean
  /** Processes and threads at a time; 1,024 by default. */
  readonly processes?: number
  /** MiB of memory, together; 4,096 by default. */
  readonly memory?: number
  /** The program `bwrap`; looked for in the system's folders by default. */
  readonly program?: string
}

/** A sandbox was asked for and cannot be made here. */
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

/** What was asked for does not fit into a sandbox. */
export class SandboxRefused extends Schema.TaggedError<SandboxRefused>("@daybook/core/SandboxRefused")(
  "SandboxRefused",
  { details: Schema.String }
) {
  override get message() {
    return this.details
  }
}

/** What runs in a sandbox. */
export interface Confined {
  /** Comes before the program and its arguments. */
  readonly prefix: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly limits: { readonly processes: number; readonly bytes: number }
  /** What a program may do, for whoever reads that it failed. */
  readonly summary: string
}

/** What a sandbox is made for. */
export interface Wanted {
  /** Where the program starts: a folder that the sandbox shows. */
  readonly cwd: string
  /** Folders that may be written or read, besides the configured ones. */
  readonly writable: ReadonlyArray<string>
  readonly readable?: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  /** Settings that come before the host's. */
  readonly own?: SandboxSettings
}

const places = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"]

const mebibyte = 1024 * 1024
const defaults = { processes: 1_024, memory: 4_096 }

/** Limits of each process, then the program. Shells name the number of processes differently. */
const limiter =
  'ulimit -c 0; ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null; ulimit -d "$2" 2>/dev/null; shift 2; exec "$@"'

/** Namespaces of its own, no capability, no way to further user namespaces, and no life without this process. */
const isolation = (network: boolean): ReadonlyArray<string> => [
  ..."--unshare-user --disable-userns --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try".split(" "),
  ...(network ? [] : ["--unshare-net"]),
  ..."--cap-drop ALL --die-with-parent --new-session --hostname sandbox".split(" ")
]

/** The world that the program works in. */
const worldOf = ({ worlds = [] }: SandboxSettings, { cwd }: Wanted): string | undefined =>
  worlds.flatMap((name) => real(name) ?? []).find((world) => isWithin(world, cwd))

const givenBy = (
  settings: SandboxSettings,
  { cwd, readable = [], writable }: Wanted,
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
    "go on without it or tell the person what it needs."
  )
}

/** Makes sandboxes by the settings of a host. */
export interface Sandboxes {
  readonly settings: SandboxSettings
  /** Fails unless the folder can be worked in. Nothing where no sandbox is asked for. */
  readonly confine: (wanted: Wanted) => Effect.Effect<Option.Option<Confined>, SandboxUnavailable | SandboxRefused>
}

const confine = Effect.fnUntraced(function* (program: string, settings: SandboxSettings, wanted: Wanted) {
  const network = settings.network === "on"
  const { memory, processes } = { ...defaults, ...settings }
  const bytes = memory * mebibyte
  const world = worldOf(settings, wanted)
  const given = yield* givenBy(settings, wanted, world)
  const { TMPDIR: _, HOME: written = homedir(), ...rest } = wanted.env
  const home = path.isAbsolute(written) && written !== "/" ? written : "/tmp"
  const env = { ...rest, HOME: home }
  const mounts = mountArguments({ given, home, hidden: settings.hidden ?? [], bytes: Math.ceil(bytes / 4), world })
  return {
    prefix: [
      program,
      ...isolation(network),
      ...mounts,
      "--chdir",
      wanted.cwd,
      "--",
      "/bin/sh",
      "-c",
      limiter,
      "sandbox",
      String(processes),
      String(Math.ceil(bytes / 1024))
    ],
    env,
    limits: { processes, bytes },
    summary: summaryOf(given, network)
  } satisfies Confined
})

/** Runs nothing in a sandbox, to learn whether one can be made. */
const probe = Effect.fn("Sandbox.probe")(function* (program: string) {
  const env = { PATH: "/usr/bin:/bin" }
  const { prefix } = yield* confine(program, {}, { cwd: "/tmp", writable: [], env })
  let said = ""
  const { code } = yield* Effect.scoped(
    Effect.gen(function* () {
      const shell = yield* runShell({ command: "exit 0", cwd: "/", env, prefix })
      yield* Stream.runForEach(shell.output, ({ bytes }) => Effect.sync(() => (said += Buffer.from(bytes).toString())))
      return yield* shell.exit
    })
  )
  if (code !== 0) return yield* new SandboxUnavailable({ reason: "broken", details: said.trim().slice(0, 500) })
})

/** The program that makes sandboxes; fails unless it is there and works. */
export const findProgram = Effect.fn("Sandbox.find")(function* ({ program }: SandboxSettings) {
  const looked = program === undefined ? places : [program]
  const found = looked.find((place) => path.isAbsolute(place) && existsSync(place))
  if (found === undefined) {
    const details = process.platform === "linux" ? `not at ${looked.join(", ")}` : `it needs Linux`
    return yield* new SandboxUnavailable({ reason: "missing", details })
  }
  yield* Effect.mapError(probe(found), (error) =>
    error._tag === "SandboxUnavailable" ? error : new SandboxUnavailable({ reason: "broken", details: error.message })
  )
  return found
})

const make = Effect.fnUntraced(function* (settings: SandboxSettings) {
  // What was found out holds for as long as the host runs; a failure does not.
  const known = new Map<string, string>()
  const found = Effect.fnUntraced(function* (asked: SandboxSettings) {
    const key = asked.program ?? ""
    const before = known.get(key)
    if (before !== undefined) return before
    const program = yield* findProgram(asked)
    known.set(key, program)
    return program
  })
  return {
    settings,
    confine: Effect.fn("Sandbox.confine")(function* (wanted: Wanted) {
      const asked = { ...settings, ...wanted.own }
      if (asked.mode !== "on") return Option.none()
      return Option.some(yield* confine(yield* found(asked), asked, wanted))
    })
  } satisfies Sandboxes
})

/** No sandbox, unless the host asks for one. */
export class Sandbox extends Context.Reference<Sandbox>()("@daybook/core/Sandbox", {
  defaultValue: (): Sandboxes => ({ settings: {}, confine: () => Effect.succeed(Option.none()) })
}) {}

/** The sandbox of a host. */
export const layer = (settings: SandboxSettings = {}): Layer.Layer<never> => Layer.effect(Sandbox, make(settings))

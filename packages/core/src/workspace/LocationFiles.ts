/**
 * Resolves and opens the files of one Location: turns a path from a model into a canonical one. Uses `node:fs`, because
 * the checks need open flags and descriptors. `Permission.ts` decides who may do what.
 *
 * Checks use the real path, so a symbolic link out of the Location is refused. An opened file is checked again by its
 * descriptor, so a link created between check and opening is refused too. Outside Linux, where a descriptor's path is
 * not available, file numbers are compared. Not covered: a folder swapped for a link and back while it is listed;
 * outside Linux, also between the last check and a write; hard links. Spec: TO-13, TO-31..TO-33, PX-20.
 */
import { constants, type Stats } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/KeyedLock.ts"
import { type Held, holdFolder, type MakeFolder, reachFolder } from "./HeldFolder.ts"
import { parseReferenced, type Reference, type ReferencedPath, referenceRoot, References } from "./References.ts"
import { referencePrefix, ToolOutputStore } from "./ToolOutputStore.ts"

/** A path inside the Location, or a named reference. */
export interface Target {
  /** Absolute, without symbolic links. */
  readonly real: string
  /** Its name for permissions and people: relative to the Location, `.` for the Location itself. */
  readonly resource: string
  /** The requested path, relative to the same folder, before links were followed. */
  readonly spelled: string
  /** The canonical folder that it must stay in, if not the Location. */
  readonly root?: string
}

/** The call's spelling of its targets, for `Permission`. */
export const spellings = (targets: ReadonlyArray<Target>): ReadonlyMap<string, string> =>
  new Map(targets.map(({ resource, spelled }) => [resource, spelled]))

/** A path that may not exist yet. */
export interface WritableTarget extends Target {
  /** The existing file; undefined if there is none. */
  readonly stats: Stats | undefined
  /** Whether the given path ends in a symbolic link to it. */
  readonly link: boolean
}

export interface OpenFile {
  readonly handle: fs.FileHandle
  readonly stats: Stats
}

export class LocationFiles extends Context.Tag("@daybook/core/LocationFiles")<
  LocationFiles,
  {
    /** Resolves an existing path in the Location, `<reference>:<path>`, or `tool-output:<name>`. */
    readonly resolve: (sessionID: SessionID, name: string) => Effect.Effect<Target, ToolFailure>
    /** Resolves a file to write; its parents need not exist. Refuses a broken symbolic link, a folder or a device. */
    readonly resolveWritable: (name: string) => Effect.Effect<WritableTarget, ToolFailure>
    /** Resolves any folder of the machine, for an `external_directory` check; `inside`: it is in the Location. */
    readonly resolveFolder: (name: string) => Effect.Effect<Target & { readonly inside: boolean }, ToolFailure>
    /** Makes a glob that begins with an absolute path relative to the folder that it leads into. */
    readonly relativeGlob: (folder: Target, pattern: string) => Effect.Effect<string, ToolFailure>
    /** Opens a regular file or a folder for reading. Never blocks; refuses anything else. */
    readonly open: (target: Target) => Effect.Effect<OpenFile, ToolFailure, Scope.Scope>
    /**
     * Holds open the canonical folder to write to, so that nothing can replace it (TO-90). Creates it if it is missing.
     */
    readonly hold: (folder: string, name: string, make?: MakeFolder) => Effect.Effect<Held, ToolFailure, Scope.Scope>
    /** Serializes changes of one file. */
    readonly exclusively: (real: string) => <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Fails if the path is no longer canonical, or no longer in the Location (or in `root`). */
    readonly recheck: (real: string, root?: string) => Effect.Effect<void, ToolFailure>
  }
>() {}

const refuse = (type: string, message: string) => new ToolFailure({ type, message })

const quoted = (name: string) => JSON.stringify(name.length > 300 ? `${name.slice(0, 300)}...` : name)

/** The system's code of a file error, such as `ENOENT`. */
export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unknown"

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "a part of its path is not a folder",
  EACCES: "its permissions do not allow it",
  EPERM: "its permissions do not allow it",
  ELOOP: "it leads through a loop of symbolic links",
  ENAMETOOLONG: "its name is too long",
  EISDIR: "it is a folder",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EMFILE: "too many files are open",
  EEXIST: "it already exists",
  EIO: "the disk failed"
}

/** A file system error as a sentence for the model. */
export const fileFailure = (verb: string, name: string, cause: unknown): ToolFailure => {
  const code = codeOf(cause)
  return refuse(
    code === "ENOENT" ? "file.missing" : "file.access",
    `cannot ${verb} ${quoted(name)}: ${reasons[code] ?? "the system refused it"} (${code})`
  )
}

/** Runs a file operation and converts its error to a failure that names the file. */
export const tryFile = <A>(verb: string, name: string, run: () => Promise<A>): Effect.Effect<A, ToolFailure> =>
  Effect.tryPromise({ try: run, catch: (cause) => fileFailure(verb, name, cause) })

const isWithin = (root: string, real: string) =>
  real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

const special = (name: string) =>
  refuse(
    "file.special",
    `${quoted(name)} is neither a regular file nor a folder; devices, pipes and sockets are refused`
  )

/** The system's path of an open file; none if the system does not provide it. */
const descriptorPath = (handle: fs.FileHandle) =>
  Effect.option(Effect.tryPromise(() => fs.readlink(`/proc/self/fd/${handle.fd}`)))

/** The dependencies of a Location's files. */
export interface Sources {
  /** Canonical. */
  readonly directory: string
  readonly locate: ToolOutputStore["Type"]["locate"]
  readonly references: ReadonlyMap<string, Reference>
}

/** Resolves the files of a given folder, for code outside a Location. */
export const makeLocationFiles = (location: Sources): LocationFiles["Type"] => {
  const rootOf = tryFile("use", location.directory, () => fs.realpath(location.directory))

  const resourceOf = (root: string, real: string) => path.relative(root, real).split(path.sep).join("/") || "."

  const outside = (name: string) =>
    refuse("path.outside", `${quoted(name)} leads out of the Location; only files inside it can be used`)

  /**
   * Rewrites an absolute path to lie below the canonical root. A link may give the Location other spellings: the first
   * ancestor that really lies in the Location decides, so that later checks handle links inside it. The error does not
   * reveal anything about paths outside.
   */
  const localize = Effect.fnUntraced(function* (root: string, name: string) {
    if (isWithin(root, name)) return name
    const parts = name.split("/")
    for (let count = 2; count <= parts.length; count++) {
      const real = yield* Effect.option(Effect.tryPromise(() => fs.realpath(parts.slice(0, count).join("/"))))
      if (Option.isNone(real)) break
      if (isWithin(root, real.value)) return [real.value, ...parts.slice(count)].join("/")
    }
    return yield* outside(name)
  })

  const fromUrl = (url: string) =>
    Effect.try({
      try: () => fileURLToPath(url),
      catch: () => refuse("path.invalid", `${quoted(url)} is not the URL of a file`)
    })

  /** Checks the text of a path, before any lookup in the Location. */
  const lexical = Effect.fnUntraced(function* (root: string, given: string) {
    const name = URL.canParse(given) && /^file:\/\/\//i.test(given) ? yield* fromUrl(given) : given
    if (name === "") return yield* refuse("path.invalid", `the path is empty; "." is the Location itself`)
    if (name.includes("\0")) return yield* refuse("path.invalid", `${quoted(name)} holds a NUL character`)
    if (path.isAbsolute(name)) return yield* localize(root, path.resolve(name))
    if (path.win32.isAbsolute(name)) {
      return yield* refuse("path.invalid", `${quoted(name)} is a Windows path; give one relative to the Location`)
    }
    const full = path.resolve(root, name)
    return isWithin(root, full) ? full : yield* outside(name)
  })

  /** Resolves a path inside a configured reference; the reference itself is `name:.`. */
  const resolveReferenced = Effect.fnUntraced(function* ({ name, reference, rest }: ReferencedPath) {
    const given = `${name}:${rest}`
    const found = yield* referenceRoot(reference, location.directory)
    if (Option.isNone(found)) {
      return yield* refuse("file.missing", `the folder or file of reference ${quoted(name)} does not exist`)
    }
    const root = found.value
    const beyond = refuse("path.outside", `${quoted(given)} leads out of the reference`)
    if (rest.includes("\0")) return yield* refuse("path.invalid", `${quoted(given)} holds a NUL character`)
    if (path.isAbsolute(rest) || path.win32.isAbsolute(rest)) {
      return yield* refuse("path.invalid", `${quoted(given)}: the path in a reference is relative to it`)
    }
    const full = path.resolve(root, rest)
    if (!isWithin(root, full)) return yield* beyond
    const real = yield* tryFile("read", given, () => fs.realpath(full))
    if (!isWithin(root, real)) return yield* beyond
    return { real, resource: `${name}:${resourceOf(root, real)}`, spelled: `${name}:${resourceOf(root, full)}`, root }
  })

  /** Converts the absolute path of a kept output, as a truncated result names it, to its reference. */
  const keptReference = (sessionID: SessionID, name: string) => {
    const reference = `${referencePrefix}${path.basename(name).slice(sessionID.length + 1)}`
    const kept = path.isAbsolute(name) ? location.locate(sessionID, reference) : Option.none()
    return Option.contains(kept, name) ? reference : name
  }

  const resolve: LocationFiles["Type"]["resolve"] = Effect.fn("LocationFiles.resolve")(function* (sessionID, given) {
    const name = keptReference(sessionID, given)
    if (name.startsWith(referencePrefix)) {
      const kept = location.locate(sessionID, name)
      if (Option.isNone(kept)) return yield* refuse("path.invalid", `${quoted(name)} is not a kept tool output`)
      return { real: yield* tryFile("read", name, () => fs.realpath(kept.value)), resource: name, spelled: name }
    }
    const referenced = parseReferenced(location.references, name)
    if (Option.isSome(referenced)) return yield* resolveReferenced(referenced.value)
    const root = yield* rootOf
    const full = yield* lexical(root, name)
    const real = yield* tryFile("read", name, () => fs.realpath(full))
    if (!isWithin(root, real)) return yield* outside(name)
    return { real, resource: resourceOf(root, real), spelled: resourceOf(root, full) }
  })

  /** The real path of the existing part of `full`, and the rest. */
  const existing = (name: string, full: string): Effect.Effect<{ real: string; rest: string }, ToolFailure> =>
    Effect.tryPromise({ try: () => fs.realpath(full), catch: (cause) => cause }).pipe(
      Effect.map((real) => ({ real, rest: "" })),
      Effect.catchAll((cause) =>
        codeOf(cause) !== "ENOENT"
          ? fileFailure("write", name, cause)
          : Effect.flatMap(Effect.option(Effect.tryPromise(() => fs.lstat(full))), (link) =>
              Option.isSome(link)
                ? refuse("path.invalid", `${quoted(name)} leads through a broken symbolic link`)
                : Effect.map(existing(name, path.dirname(full)), ({ real, rest }) => ({
                    real,
                    rest: path.join(rest, path.basename(full))
                  }))
            )
      )
    )

  const resolveWritable: LocationFiles["Type"]["resolveWritable"] = Effect.fn("LocationFiles.resolveWritable")(
    function* (name) {
      if (Option.isSome(parseReferenced(location.references, name))) {
        return yield* refuse("path.invalid", `${quoted(name)} is in a reference; references can only be read`)
      }
      const root = yield* rootOf
      const full = yield* lexical(root, name)
      const { real: base, rest } = yield* existing(name, full)
      const real = path.join(base, rest)
      if (!isWithin(root, base)) return yield* outside(name)
      const target = { real, resource: resourceOf(root, real), spelled: resourceOf(root, full) }
      if (rest !== "") return { ...target, stats: undefined, link: false }
      const stats = yield* tryFile("write", name, () => fs.lstat(real))
      if (stats.isDirectory()) return yield* refuse("file.access", `cannot write ${quoted(name)}: it is a folder`)
      if (!stats.isFile()) return yield* special(name)
      yield* tryFile("write", name, () => fs.access(real, constants.W_OK))
      const last = yield* tryFile("write", name, () => fs.lstat(full))
      return { ...target, stats, link: last.isSymbolicLink() }
    }
  )

  const resolveFolder: LocationFiles["Type"]["resolveFolder"] = Effect.fn("LocationFiles.resolveFolder")(
    function* (name) {
      const root = yield* rootOf
      if (name.includes("\0")) return yield* refuse("path.invalid", `${quoted(name)} holds a NUL character`)
      const real = yield* tryFile("use", name, () => fs.realpath(path.resolve(root, name)))
      const stats = yield* tryFile("use", name, () => fs.stat(real))
      if (!stats.isDirectory()) return yield* refuse("file.access", `cannot use ${quoted(name)}: it is not a folder`)
      const inside = isWithin(root, real)
      const resource = inside ? resourceOf(root, real) : real
      return { real, resource, spelled: resource, inside }
    }
  )

  const open: LocationFiles["Type"]["open"] = Effect.fn("LocationFiles.open")(function* (target) {
    const name = target.resource
    const changed = refuse("path.outside", `${quoted(name)} was replaced while it was opened; nothing was read`)
    const before = yield* tryFile("read", name, () => fs.lstat(target.real))
    if (!before.isFile() && !before.isDirectory()) return yield* before.isSymbolicLink() ? changed : special(name)
    // Does not follow a link or wait for a writer, if the file has become a link or a pipe meanwhile.
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)
    const handle = yield* Effect.acquireRelease(
      tryFile("read", name, () => fs.open(target.real, flags)),
      (file) => Effect.promise(() => file.close())
    )
    const stats = yield* tryFile("read", name, () => handle.stat())
    if (!stats.isFile() && !stats.isDirectory()) return yield* special(name)
    const actual = yield* descriptorPath(handle)
    const same = Option.isSome(actual)
      ? actual.value === target.real
      : stats.ino === before.ino && stats.dev === before.dev
    return same ? { handle, stats } : yield* changed
  })

  const relativeGlob: LocationFiles["Type"]["relativeGlob"] = Effect.fn("LocationFiles.relativeGlob")(
    function* (folder, pattern) {
      if (!path.isAbsolute(pattern)) return pattern
      const full = yield* localize(folder.root ?? (yield* rootOf), pattern.replaceAll(/\/+/g, "/"))
      if (full === folder.real) return "**/*"
      if (isWithin(folder.real, full)) return path.relative(folder.real, full)
      return yield* refuse("tool.input", `the glob ${quoted(pattern)} leads out of ${quoted(folder.resource)}`)
    }
  )

  const recheck: LocationFiles["Type"]["recheck"] = Effect.fn("LocationFiles.recheck")(function* (real, within) {
    const root = within ?? (yield* rootOf)
    const now = yield* tryFile("use", real, () => fs.realpath(real))
    if (now !== real || !isWithin(root, now)) return yield* outside(resourceOf(root, real))
  })

  const hold: LocationFiles["Type"]["hold"] = Effect.fn("LocationFiles.hold")(function* (folder, name, make) {
    const root = yield* rootOf
    if (!isWithin(root, folder)) return yield* outside(name)
    if (process.platform !== "linux") {
      const reached = yield* tryFile("write", name, () => reachFolder(folder, make))
      yield* recheck(folder)
      return reached
    }
    return yield* Effect.mapError(holdFolder(root, folder, make), (cause) =>
      codeOf(cause) === "ELOOP" || codeOf(cause) === "ENOTDIR"
        ? refuse("path.outside", `a folder of ${quoted(name)} was replaced meanwhile; nothing was written`)
        : fileFailure("write", name, cause)
    )
  })

  return LocationFiles.of({
    resolve,
    relativeGlob,
    resolveWritable,
    resolveFolder,
    open,
    hold,
    exclusively: makeKeyedLock<string>(),
    recheck
  })
}

const make = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const { locate } = yield* ToolOutputStore
  return makeLocationFiles({ directory, locate, references: yield* References })
})

export const layer: Layer.Layer<LocationFiles, never, CurrentLocation | ToolOutputStore> = Layer.effect(
  LocationFiles,
  make
)

/**
 * Resolves and opens the files of one Location: turns a path from a model into a canonical one. Uses `node:fs`, because
 * the checks need open flags and descriptors. `Permission.ts` decides who may do what.
 *
 * Checks use the real path, so a symbolic link out of the Location is refused. An opened file is checked again by its
 * descriptor, so a link created between check and opening is refused too. Outside Linux, where a descriptor's path is
 * not available, file numbers are compared. Not covered: a folder swapped for a link and back while it is listed;
 * outside Linux, also between the last check and a write; hard links. Spec: TO-13, TO-31..TO-33 in specs/tools.md,
 * PX-20..PX-22 in specs/context.md.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { homedir } from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { CurrentLocation } from "@daybook/log/domain/Values"
import { codeOf } from "@daybook/log/support/SystemError"
import { namePattern } from "../definition/Yaml.ts"
import type { ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/Keyed.ts"
import { projectRoot } from "../trust/ProjectTrust.ts"
import {
  fileFailure,
  type OpenFile,
  quoted,
  refuse,
  special,
  type Target,
  tryFile,
  type WritableTarget
} from "./FileFailure.ts"
import { type PathInFolder, holdFolder, type MakeFolder, reachFolder } from "./HeldFolder.ts"
import { referencePrefix, ToolOutputStore } from "./ToolOutputStore.ts"

// Resolves configured references: files outside the Location that prompts and `read` name as `name:path`.

/** A configured folder or file outside the Location. */
export interface Reference {
  /** Absolute, below the home folder (`~/`), or relative to the project's root. */
  readonly path: string
  readonly description?: string
}

/** References by name; none by default. */
export class References extends Context.Reference<References>()("@daybook/core/References", {
  defaultValue: (): ReadonlyMap<string, Reference> => new Map()
}) {}

export type WrittenReferences = Readonly<Record<string, string | Reference>>

const reserved = "tool-output"

/** Provides the host's references. A name that cannot be mentioned is ignored, with a warning. */
export const layerReferences = (written: WrittenReferences = {}): Layer.Layer<never> =>
  Layer.effect(
    References,
    Effect.gen(function* () {
      const references = new Map<string, Reference>()
      for (const [name, value] of Object.entries(written)) {
        if (namePattern.test(name) && name !== reserved) {
          references.set(name, typeof value === "string" ? { path: value } : value)
        } else {
          yield* Effect.logWarning(`reference ${JSON.stringify(name)} is left out: such a name cannot be mentioned`)
        }
      }
      return references
    })
  )

/** A path inside a reference: `name:path`. */
interface ReferencedPath {
  readonly name: string
  readonly reference: Reference
  /** Empty: the reference itself. */
  readonly rest: string
}

/** The reference that a path begins with; none if no reference has that name. */
export const parseReferenced = (
  references: ReadonlyMap<string, Reference>,
  given: string
): Option.Option<ReferencedPath> => {
  const colon = given.indexOf(":")
  const name = given.slice(0, Math.max(colon, 0))
  return Option.map(Option.fromNullable(references.get(name)), (reference) => ({
    name,
    reference,
    rest: given.slice(colon + 1)
  }))
}

/** The canonical path of a reference, relative to the project of a canonical folder; none if it does not exist. */
const referenceRoot = (reference: Reference, directory: string): Effect.Effect<Option.Option<string>> =>
  Effect.gen(function* () {
    const written = reference.path.startsWith("~/") ? path.join(homedir(), reference.path.slice(2)) : reference.path
    const full = path.isAbsolute(written) ? written : path.resolve(yield* projectRoot(directory), written)
    return yield* Effect.option(Effect.tryPromise(() => fs.realpath(full)))
  })

// Checks the text of a path, and makes it absolute in a folder.

/** Whether an absolute path is the folder or below it. */
const isWithin = (root: string, real: string) =>
  real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

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

// Opens the files of a Location, and holds folders open for writing, against links that appear meanwhile.

/** The system's path of an open file; none if the system does not provide it. */
const descriptorPath = (handle: fs.FileHandle) =>
  Effect.option(Effect.tryPromise(() => fs.readlink(`/proc/self/fd/${handle.fd}`)))

/** Opens a regular file or a folder for reading. */
const open = Effect.fn("LocationFiles.open")(function* (target: Target) {
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

/** Holds open the canonical folder to write to. */
const hold = Effect.fn("LocationFiles.hold")(function* (
  files: Sources,
  folder: string,
  name: string,
  make?: MakeFolder
) {
  const root = yield* rootOf(files)
  if (!isWithin(root, folder)) return yield* outside(name)
  if (process.platform !== "linux") {
    const reached = yield* tryFile("write", name, () => reachFolder(folder, make))
    yield* recheck(files, folder)
    return reached
  }
  return yield* Effect.mapError(holdFolder(root, folder, make), (cause) =>
    codeOf(cause) === "ELOOP" || codeOf(cause) === "ENOTDIR"
      ? refuse("path.outside", `a folder of ${quoted(name)} was replaced meanwhile; nothing was written`)
      : fileFailure("write", name, cause)
  )
})

// Resolves a path from a model in a Location: checks its text, follows its links, and refuses a target outside.

interface Sources {
  /** Canonical. */
  readonly directory: string
  readonly locate: ToolOutputStore["Type"]["locate"]
  readonly references: ReadonlyMap<string, Reference>
}

const isThere = (full: string): Promise<boolean> =>
  fs.lstat(full).then(
    () => true,
    () => false
  )

/**
 * The path as the disk has it. A name that does not exist is tried in Unicode's composed and decomposed forms too: keyboards
 * and models write one form, and a file that another system made may have the other (TO-560).
 */
const onDisk = async (full: string): Promise<string> => {
  const forms = [full, full.normalize("NFC"), full.normalize("NFD")]
  if (new Set(forms).size === 1) return full
  for (const form of forms) if (await isThere(form)) return form
  return full
}

const formOf = (full: string) => Effect.promise(() => onDisk(full))

/** The canonical folder of the Location. */
const rootOf = ({ directory }: Sources) => tryFile("use", directory, () => fs.realpath(directory))

/** Resolves a path inside a configured reference; the reference itself is `name:.`. */
const resolveReferenced = Effect.fnUntraced(function* (
  { directory }: Sources,
  { name, reference, rest }: ReferencedPath
) {
  const given = `${name}:${rest}`
  const found = yield* referenceRoot(reference, directory)
  if (Option.isNone(found)) {
    return yield* refuse("file.missing", `the folder or file of reference ${quoted(name)} does not exist`)
  }
  const root = found.value
  const beyond = refuse("path.outside", `${quoted(given)} leads out of the reference`)
  if (rest.includes("\0")) return yield* refuse("path.invalid", `${quoted(given)} holds a NUL character`)
  if (path.isAbsolute(rest) || path.win32.isAbsolute(rest)) {
    return yield* refuse("path.invalid", `${quoted(given)}: the path in a reference is relative to it`)
  }
  const full = yield* formOf(path.resolve(root, rest))
  if (!isWithin(root, full)) return yield* beyond
  const real = yield* tryFile("read", given, () => fs.realpath(full))
  if (!isWithin(root, real)) return yield* beyond
  return { real, resource: `${name}:${resourceOf(root, real)}`, spelled: `${name}:${resourceOf(root, full)}`, root }
})

/** Converts the absolute path of a kept output, as a truncated result names it, to its reference. */
const keptReference = ({ locate }: Sources, sessionID: SessionID, name: string) => {
  const reference = `${referencePrefix}${path.basename(name).slice(sessionID.length + 1)}`
  const kept = path.isAbsolute(name) ? locate(sessionID, reference) : Option.none()
  return Option.contains(kept, name) ? reference : name
}

const outputGone = (name: string) =>
  refuse(
    "file.missing",
    `${quoted(name)} is gone: outputs are kept for some days, on the machine where the tool ran; run the tool again if you need it`
  )

/** Resolves an existing path in the Location, in a reference, or of a kept output. */
const resolve = Effect.fn("LocationFiles.resolve")(function* (files: Sources, sessionID: SessionID, given: string) {
  const name = keptReference(files, sessionID, given)
  if (name.startsWith(referencePrefix)) {
    const kept = files.locate(sessionID, name)
    if (Option.isNone(kept)) return yield* refuse("path.invalid", `${quoted(name)} is not a kept tool output`)
    const real = yield* Effect.mapError(
      tryFile("read", name, () => fs.realpath(kept.value)),
      (error) => (error.type === "file.missing" ? outputGone(name) : error)
    )
    return { real, resource: name, spelled: name }
  }
  const referenced = parseReferenced(files.references, name)
  if (Option.isSome(referenced)) return yield* resolveReferenced(files, referenced.value)
  const root = yield* rootOf(files)
  const full = yield* formOf(yield* lexical(root, name))
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

/** Resolves a file to write; its parents need not exist. */
const resolveWritable = Effect.fn("LocationFiles.resolveWritable")(function* (files: Sources, name: string) {
  if (Option.isSome(parseReferenced(files.references, name))) {
    return yield* refuse("path.invalid", `${quoted(name)} is in a reference; references can only be read`)
  }
  const root = yield* rootOf(files)
  const full = yield* formOf(yield* lexical(root, name))
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
})

const resolveFolder = Effect.fn("LocationFiles.resolveFolder")(function* (files: Sources, name: string) {
  const root = yield* rootOf(files)
  if (name.includes("\0")) return yield* refuse("path.invalid", `${quoted(name)} holds a NUL character`)
  const full = yield* formOf(path.resolve(root, name))
  const real = yield* tryFile("use", name, () => fs.realpath(full))
  const stats = yield* tryFile("use", name, () => fs.stat(real))
  if (!stats.isDirectory()) return yield* refuse("file.access", `cannot use ${quoted(name)}: it is not a folder`)
  const inside = isWithin(root, real)
  const resource = inside ? resourceOf(root, real) : real
  return { real, resource, spelled: resource, inside }
})

const relativeGlob = Effect.fn("LocationFiles.relativeGlob")(function* (
  files: Sources,
  folder: Target,
  pattern: string
) {
  if (!path.isAbsolute(pattern)) return pattern
  const full = yield* localize(folder.root ?? (yield* rootOf(files)), pattern.replaceAll(/\/+/g, "/"))
  if (full === folder.real) return "**/*"
  if (isWithin(folder.real, full)) return path.relative(folder.real, full)
  return yield* refuse("tool.input", `the glob ${quoted(pattern)} leads out of ${quoted(folder.resource)}`)
})

/** Fails if the path is no longer canonical, or no longer in the folder `within`, the Location by default. */
const recheck = Effect.fn("LocationFiles.recheck")(function* (files: Sources, real: string, within?: string) {
  const root = within ?? (yield* rootOf(files))
  const now = yield* tryFile("use", real, () => fs.realpath(real))
  if (now !== real || !isWithin(root, now)) return yield* outside(resourceOf(root, real))
})

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
    /** Holds open the canonical folder to write to, so that nothing replaces it (TO-90). Creates it if missing. */
    readonly hold: (
      folder: string,
      name: string,
      make?: MakeFolder
    ) => Effect.Effect<PathInFolder, ToolFailure, Scope.Scope>
    readonly exclusively: (real: string) => <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Fails if the path is no longer canonical, or no longer in the Location (or in `root`). */
    readonly recheck: (real: string, root?: string) => Effect.Effect<void, ToolFailure>
  }
>() {}

/** The files of a given folder, for code outside a Location. */
export const makeLocationFiles = (files: Sources): LocationFiles["Type"] => ({
  resolve: (sessionID, name) => resolve(files, sessionID, name),
  resolveWritable: (name) => resolveWritable(files, name),
  resolveFolder: (name) => resolveFolder(files, name),
  relativeGlob: (folder, pattern) => relativeGlob(files, folder, pattern),
  open: open,
  hold: (folder, name, make) => hold(files, folder, name, make),
  exclusively: makeKeyedLock<string>(),
  recheck: (real, root) => recheck(files, real, root)
})

const make = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const { locate } = yield* ToolOutputStore
  return makeLocationFiles({ directory, locate, references: yield* References })
})

export const layer: Layer.Layer<LocationFiles, never, CurrentLocation | ToolOutputStore> = Layer.effect(
  LocationFiles,
  make
)

/**
 * Resolves a path from a model in a Location: checks its text, follows its links, and refuses a target outside. Spec:
 * TO-13, TO-31..TO-33, PX-20.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, Option } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ToolFailure } from "../domain/ToolError.ts"
import { codeOf, fileFailure, quoted, refuse, special, tryFile } from "./FileFailure.ts"
import { isWithin, lexical, localize, outside, resourceOf } from "./PathText.ts"
import { parseReferenced, type Reference, type ReferencedPath, referenceRoot } from "./References.ts"
import type { Target } from "./Target.ts"
import { referencePrefix, type ToolOutputStore } from "./ToolOutputStore.ts"

/** Where the files of a Location come from. */
export interface Sources {
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
export const rootOf = ({ directory }: Sources) => tryFile("use", directory, () => fs.realpath(directory))

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

/** Resolves an existing path in the Location, in a reference, or of a kept output. */
export const resolve = Effect.fn("LocationFiles.resolve")(function* (
  files: Sources,
  sessionID: SessionID,
  given: string
) {
  const name = keptReference(files, sessionID, given)
  if (name.startsWith(referencePrefix)) {
    const kept = files.locate(sessionID, name)
    if (Option.isNone(kept)) return yield* refuse("path.invalid", `${quoted(name)} is not a kept tool output`)
    return { real: yield* tryFile("read", name, () => fs.realpath(kept.value)), resource: name, spelled: name }
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
export const resolveWritable = Effect.fn("LocationFiles.resolveWritable")(function* (files: Sources, name: string) {
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

/** Resolves any folder of the machine. */
export const resolveFolder = Effect.fn("LocationFiles.resolveFolder")(function* (files: Sources, name: string) {
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

/** Makes a glob that begins with an absolute path relative to the folder that it leads into. */
export const relativeGlob = Effect.fn("LocationFiles.relativeGlob")(function* (
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
export const recheck = Effect.fn("LocationFiles.recheck")(function* (files: Sources, real: string, within?: string) {
  const root = within ?? (yield* rootOf(files))
  const now = yield* tryFile("use", real, () => fs.realpath(real))
  if (now !== real || !isWithin(root, now)) return yield* outside(resourceOf(root, real))
})

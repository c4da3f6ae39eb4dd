/**
 * Creates the folders of sockets and of agents' files below the root, without following links. Only their user can
 * enter them, except in shared spaces and at the first level of a common root. Spec: SO-71, SO-80 in specs/socket.md
 * (SC-3).
 */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { isCommon, modesOf, type SharedSpaces } from "@daybook/files/layout/Layout"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"

/** A folder cannot be created or used; the message says why and what to do. */
export class FolderUnusable extends Schema.TaggedError<FolderUnusable>()("FolderUnusable", {
  path: Schema.String,
  message: Schema.String
}) {}

const unusable = (path: string, why: string) => new FolderUnusable({ path, message: `${path}: ${why}` })

const io = <A>(path: string, verb: string, run: () => Promise<A>): Effect.Effect<A, FolderUnusable> =>
  Effect.tryPromise({ try: run, catch: (cause) => unusable(path, `cannot ${verb} (${codeOf(cause)})`) })

const ownUid = process.getuid?.()

interface FolderModes {
  readonly mode: number
  readonly group: number | undefined
  /** Other users create folders in it too, so it may belong to any user. */
  readonly common: boolean
}

const makeOne = Effect.fnUntraced(function* (folder: string, { common, group, mode }: FolderModes) {
  yield* io(folder, "make the folder", () =>
    fs.mkdir(folder, { mode: mode & 0o777 }).catch((cause: unknown) => {
      if (codeOf(cause) !== "EEXIST") throw cause
    })
  )
  const found = yield* io(folder, "look at it", () => fs.lstat(folder))
  if (!found.isDirectory()) {
    return yield* unusable(folder, "it has to be a folder, not a symbolic link. Move it away.")
  }
  if (ownUid !== undefined && found.uid !== ownUid) {
    if (common && isCommon(found.mode)) return
    return yield* unusable(folder, `the folder belongs to user ${found.uid}. Choose a root of your own.`)
  }
  if (group !== undefined && found.gid !== group) {
    yield* io(folder, `give the folder to group ${group}`, () => fs.chown(folder, found.uid, group))
  }
  if ((found.mode & 0o7777) !== mode || (group !== undefined && found.gid !== group)) {
    yield* io(folder, "set the permissions of the folder", () => fs.chmod(folder, mode))
  }
})

/**
 * Creates the root if absent; returns its mode. Others may look into the root if spaces are shared, and write into it
 * only if it is common: the sticky bit then protects what is not theirs.
 */
const makeRoot = Effect.fnUntraced(function* (root: string) {
  yield* io(root, "make the folder", () => makeFolders(root, 0o700))
  const found = yield* io(root, "look at it", () => fs.stat(root))
  if (isCommon(found.mode)) return found.mode & 0o7777
  if (ownUid !== undefined && found.uid !== ownUid) {
    return yield* unusable(
      root,
      "the folder belongs to another user. Choose a root of your own, or let its owner make it common (chmod 1777)."
    )
  }
  if ((found.mode & 0o022) !== 0) {
    return yield* unusable(root, "others may write into it. Choose another root, or run chmod go-w on it.")
  }
  return found.mode & 0o7777
})

/** Whether several users share the root. A new root is private to its user. */
export const isCommonRoot = (root: string) => Effect.map(makeRoot(root), isCommon)

/**
 * Creates the root and the folders below it, one in the other, with the modes of their scope; returns the host path.
 * Without `shared`, everything but the first level of a common root is private to this user.
 */
export const makeFolder = Effect.fnUntraced(function* (
  root: string,
  segments: ReadonlyArray<string>,
  shared: SharedSpaces = {}
) {
  const path = join(root, ...segments)
  const plain = segments.every((segment) => !["", ".", ".."].includes(segment) && !/[/\0]/.test(segment))
  if (!root.startsWith("/") || !plain) {
    return yield* unusable(path, "the root has to be an absolute path, and the path below it must hold plain names.")
  }
  const mode = yield* makeRoot(root)
  const modes = modesOf(shared, mode)
  for (let depth = 1; depth <= segments.length; depth++) {
    const name = segments.slice(0, depth).join("/")
    const wanted = { mode: modes.folder(name), group: modes.group(name), common: depth === 1 && isCommon(mode) }
    yield* makeOne(join(root, name), wanted)
  }
  return path
})

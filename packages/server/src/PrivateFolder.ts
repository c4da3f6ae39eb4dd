/**
 * Folders that only their owner can enter, made without following links. Spec: SO-71 in specs/socket.md (SC-3).
 */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"

/** A folder cannot be had; the message says why and what to do. */
export class FolderUnusable extends Schema.TaggedError<FolderUnusable>()("FolderUnusable", {
  path: Schema.String,
  message: Schema.String
}) {}

/** The system's code for a file fault, such as `ENOENT`. */
export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unknown"

const unusable = (path: string, why: string) => new FolderUnusable({ path, message: `${path}: ${why}` })

const io = <A>(path: string, verb: string, run: () => Promise<A>): Effect.Effect<A, FolderUnusable> =>
  Effect.tryPromise({ try: run, catch: (cause) => unusable(path, `cannot ${verb} (${codeOf(cause)})`) })

const ownUid = process.getuid?.()

const makeOne = Effect.fnUntraced(function* (folder: string) {
  yield* io(folder, "make the folder", () =>
    fs.mkdir(folder, { mode: 0o700 }).catch((cause: unknown) => {
      if (codeOf(cause) !== "EEXIST") throw cause
    })
  )
  const found = yield* io(folder, "look at it", () => fs.lstat(folder))
  if (!found.isDirectory()) {
    return yield* unusable(folder, "it has to be a folder, and no symbolic link. Move it away.")
  }
  if (ownUid !== undefined && found.uid !== ownUid) {
    return yield* unusable(folder, "the folder belongs to another user. Choose a root of your own.")
  }
  if ((found.mode & 0o777) !== 0o700) yield* io(folder, "make the folder private", () => fs.chmod(folder, 0o700))
})

/** Makes the root, when it is absent. Others may look into it, where spaces are shared, but never change it. */
const makeRoot = Effect.fnUntraced(function* (root: string) {
  yield* io(root, "make the folder", () => fs.mkdir(root, { recursive: true, mode: 0o700 }))
  const found = yield* io(root, "look at it", () => fs.stat(root))
  if (ownUid !== undefined && found.uid !== ownUid) {
    return yield* unusable(root, "the folder belongs to another user. Choose a root of your own.")
  }
  if ((found.mode & 0o022) !== 0) {
    return yield* unusable(root, "others may write into it. Choose another root, or run chmod go-w on it.")
  }
})

/** Makes the root and the folders below it, one in the other, with mode 0700; their host path. */
export const makePrivateFolder = Effect.fnUntraced(function* (root: string, segments: ReadonlyArray<string>) {
  const path = join(root, ...segments)
  const plain = segments.every((segment) => !["", ".", ".."].includes(segment) && !/[/\0]/.test(segment))
  if (!root.startsWith("/") || !plain) {
    return yield* unusable(path, "the root has to be an absolute path, and what lies below it a plain one.")
  }
  yield* makeRoot(root)
  for (let depth = 1; depth <= segments.length; depth++) yield* makeOne(join(root, ...segments.slice(0, depth)))
  return path
})

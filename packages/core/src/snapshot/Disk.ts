/**
 * Looks at and changes single files of a work tree. A folder on the way that is a link, or becomes one, is never passed:
 * nothing outside of the work tree is read or written. A file is replaced whole or not at all. Spec: UN-24, UN-25.
 */
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Data, Effect, type Scope } from "effect"
import { codeOf } from "../workspace/FileFailure.ts"
import { type Held, holdFolder, reachFolder } from "../workspace/HeldFolder.ts"
import { isSame, type State } from "./Change.ts"
import { temporaryPrefix } from "./StoreFolder.ts"

/** Why a path stays as it is. */
export class Left extends Data.TaggedError("Left")<{ readonly reason: string }> {}

const left = (reason: string) => new Left({ reason })

/** git's id of a file's content. */
export const idOf = (content: Buffer): string =>
  createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex")

/** A path on the disk: a state that a snapshot can hold, or what else is there. */
export type Found = { readonly state: State } | { readonly other: "folder" | "special" | "large" }

const missing = (cause: unknown) => ["ENOENT", "ENOTDIR"].includes(String(codeOf(cause)))

const find = async (name: string, limit: number): Promise<Found> => {
  const stats = await fs.lstat(name).catch((cause: unknown) => {
    if (missing(cause)) return undefined
    throw cause
  })
  if (stats === undefined) return { state: undefined }
  if (stats.isSymbolicLink()) {
    return { state: { mode: "120000", id: idOf(await fs.readlink(name, { encoding: "buffer" })) } }
  }
  if (!stats.isFile()) return { other: stats.isDirectory() ? "folder" : "special" }
  if (stats.size > limit) return { other: "large" }
  const handle = await fs.open(name, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const mode = (stats.mode & 0o100) === 0 ? "100644" : "100755"
    return { state: { mode, id: idOf(await handle.readFile()) } }
  } finally {
    await handle.close()
  }
}

const failure = (cause: unknown): Left =>
  codeOf(cause) === "ELOOP" || codeOf(cause) === "ENOTDIR"
    ? left("a folder on its way is a link or a file")
    : left(cause instanceof Error ? cause.message : String(cause))

const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, Left> => Effect.tryPromise({ try: work, catch: failure })

/** The state of every folder on the way to a file. */
const way = async (root: string, folder: string): Promise<"there" | "missing" | "file" | "link"> => {
  let at = root
  for (const name of path.relative(root, folder).split(path.sep).filter(Boolean)) {
    at = path.join(at, name)
    const stats = await fs.lstat(at).catch((cause: unknown) => {
      if (missing(cause)) return undefined
      throw cause
    })
    if (stats === undefined) return "missing"
    if (stats.isSymbolicLink()) return "link"
    if (!stats.isDirectory()) return "file"
  }
  return "there"
}

/** What is at a path of the work tree. A path behind a link has no file of its own. */
export const look = (root: string, name: string, limit: number): Effect.Effect<Found, Left> =>
  Effect.flatMap(
    attempt(() => way(root, path.dirname(path.join(root, name)))),
    (folder) =>
      folder === "link"
        ? Effect.fail(left("a folder on its way is a link"))
        : folder === "there"
          ? attempt(() => find(path.join(root, name), limit))
          : Effect.succeed<Found>({ state: undefined })
  )

const exists = (folder: string) =>
  attempt(() =>
    fs.lstat(folder).then(
      () => true,
      () => false
    )
  )

/** Holds the folder of a file against links that appear meanwhile; creates it if needed. */
const hold = (root: string, folder: string): Effect.Effect<Held, Left, Scope.Scope> =>
  process.platform === "linux"
    ? Effect.mapError(holdFolder(root, folder), failure)
    : Effect.zipRight(
        Effect.filterOrFail(
          attempt(() => way(root, folder)),
          (found) => found === "there" || found === "missing",
          () => left("a folder on its way is a link or a file")
        ),
        attempt(() => reachFolder(folder))
      )

/** Fails unless the file still is as it was seen: others may have written meanwhile. */
const unchanged = (name: string, seen: State, limit: number) =>
  Effect.filterOrFail(
    attempt(() => find(name, limit)),
    (now) => ("state" in now ? isSame(now.state, seen) : now.other === "folder" && seen === undefined),
    () => left("it changed meanwhile")
  )

/** Read permission becomes permission to execute, or none is left; the other bits stay. */
const withExecution = (mode: number, executable: boolean) => (executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111)

const create = async (temporary: string, target: string, { mode }: NonNullable<State>, bytes: Buffer) => {
  await fs.rm(temporary, { force: true })
  if (mode === "120000") return fs.symlink(bytes, temporary)
  const before = await fs.lstat(target).catch(() => undefined)
  const handle = await fs.open(temporary, "wx", 0o666)
  try {
    await handle.writeFile(bytes)
    const base = before?.isFile() === true ? before.mode & 0o7777 : (await handle.stat()).mode & 0o7777
    await handle.chmod(withExecution(base, mode === "100755"))
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** An empty folder gives way to a file. */
const yieldFolder = (target: string) =>
  fs.rmdir(target).catch((cause: unknown) => {
    if (codeOf(cause) === "ENOTEMPTY" || codeOf(cause) === "EEXIST") throw new Error("a folder with files is there")
    if (!missing(cause)) throw cause
  })

/**
 * Puts a file in place: into a temporary file beside it, then by a rename. The temporary name depends on the path alone,
 * so that the next run replaces what a killed one left.
 */
export const put = (root: string, name: string, state: NonNullable<State>, bytes: Buffer, seen: State, limit: number) =>
  Effect.gen(function* () {
    const full = path.join(root, name)
    const at = yield* hold(root, path.dirname(full))
    const target = at(path.basename(full))
    const temporary = at(`${temporaryPrefix}${idOf(Buffer.from(name)).slice(0, 16)}`)
    yield* Effect.gen(function* () {
      yield* attempt(() => create(temporary, target, state, bytes))
      yield* unchanged(target, seen, limit)
      yield* attempt(async () => {
        const stats = await fs.lstat(target).catch(() => undefined)
        if (stats?.isDirectory() === true) await yieldFolder(target)
        await fs.rename(temporary, target)
      })
    }).pipe(Effect.ensuring(Effect.promise(() => fs.rm(temporary, { force: true }).catch(() => undefined))))
  }).pipe(Effect.scoped, Effect.uninterruptible)

/** Removes the empty folders from one up to `top`. */
const removeEmpty = (folder: string, top: string) =>
  attempt(async () => {
    for (let empty = folder; empty !== top && empty.startsWith(top); empty = path.dirname(empty)) {
      const removed = await fs.rmdir(empty).then(
        () => true,
        () => false
      )
      if (!removed) return
    }
  })

/** Removes a file, then the folders up to `top` that it leaves empty. */
export const remove = (root: string, top: string, name: string, seen: State, limit: number) =>
  Effect.gen(function* () {
    const full = path.join(root, name)
    const folder = path.dirname(full)
    if (!(yield* exists(folder))) return
    const at = yield* hold(root, folder)
    yield* unchanged(at(path.basename(full)), seen, limit)
    yield* attempt(() => fs.rm(at(path.basename(full)), { force: true }))
    yield* removeEmpty(folder, top)
  }).pipe(Effect.scoped, Effect.uninterruptible)

/** Removes the folders that a removed file left empty, if the removal was cut off before. */
export const finishRemoval = (root: string, top: string, name: string) =>
  Effect.gen(function* () {
    const folder = path.dirname(path.join(root, name))
    if (!(yield* exists(folder))) return
    yield* hold(root, folder)
    yield* removeEmpty(folder, top)
  }).pipe(Effect.scoped, Effect.ignore)

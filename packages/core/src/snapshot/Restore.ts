/**
 * Takes back what turns did to the files of a Location. A path goes back only if it still is as the last of these turns
 * left it; any other path is a conflict and stays. Running an interrupted restore again finishes it. Spec: UN-20..UN-26
 * in specs/sessions.md.
 */
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Data, Effect, type Scope } from "effect"
import { codeOf, isAbsent, messageOf } from "@daybook/log/support/SystemError"
import { type PathInFolder, holdFolder, reachFolder } from "../workspace/HeldFolder.ts"
import * as Change from "./Change.ts"
import { isSame, type State } from "./Change.ts"
import * as SnapshotStore from "./SnapshotStore.ts"
import { type StoreOptions, temporaryPrefix } from "./StoreFolder.ts"
import type { WorkTree } from "./Candidates.ts"

// Looks at and changes single files of a work tree: follows no link, and replaces a file whole or not at all.

/** Why a path stays as it is. */
class PathStays extends Data.TaggedError("PathStays")<{ readonly reason: string }> {}

const left = (reason: string) => new PathStays({ reason })

/** git's id of a file's content. */
export const idOf = (content: Buffer): string =>
  createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex")

/** A path on the disk: a state that a snapshot can hold, or what else is there. */
type DiskEntry = { readonly state: State } | { readonly other: "folder" | "special" | "large" }

const find = async (name: string, limit: number): Promise<DiskEntry> => {
  const stats = await fs.lstat(name).catch((cause: unknown) => {
    if (isAbsent(cause)) return undefined
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

const failure = (cause: unknown): PathStays =>
  codeOf(cause) === "ELOOP" || codeOf(cause) === "ENOTDIR"
    ? left("a folder on its way is a link or a file")
    : left(messageOf(cause))

const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, PathStays> =>
  Effect.tryPromise({ try: work, catch: failure })

/** The state of every folder on the way to a file. */
const way = async (root: string, folder: string): Promise<"there" | "missing" | "file" | "link"> => {
  let at = root
  for (const name of path.relative(root, folder).split(path.sep).filter(Boolean)) {
    at = path.join(at, name)
    const stats = await fs.lstat(at).catch((cause: unknown) => {
      if (isAbsent(cause)) return undefined
      throw cause
    })
    if (stats === undefined) return "missing"
    if (stats.isSymbolicLink()) return "link"
    if (!stats.isDirectory()) return "file"
  }
  return "there"
}

/** What is at a path of the work tree. A path behind a link has no file of its own. */
const look = (root: string, name: string, limit: number): Effect.Effect<DiskEntry, PathStays> =>
  Effect.flatMap(
    attempt(() => way(root, path.dirname(path.join(root, name)))),
    (folder) =>
      folder === "link"
        ? Effect.fail(left("a folder on its way is a link"))
        : folder === "there"
          ? attempt(() => find(path.join(root, name), limit))
          : Effect.succeed<DiskEntry>({ state: undefined })
  )

const exists = (folder: string) =>
  attempt(() =>
    fs.lstat(folder).then(
      () => true,
      () => false
    )
  )

/** Holds the folder of a file against links that appear meanwhile; creates it if needed. */
const hold = (root: string, folder: string): Effect.Effect<PathInFolder, PathStays, Scope.Scope> =>
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
    if (!isAbsent(cause)) throw cause
  })

/** Replaces a file by a rename. The temporary name depends on the path alone, so a later run replaces a leftover. */
const put = (root: string, name: string, state: NonNullable<State>, bytes: Buffer, seen: State, limit: number) =>
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
const remove = (root: string, top: string, name: string, seen: State, limit: number) =>
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
const finishRemoval = (root: string, top: string, name: string) =>
  Effect.gen(function* () {
    const folder = path.dirname(path.join(root, name))
    if (!(yield* exists(folder))) return
    yield* hold(root, folder)
    yield* removeEmpty(folder, top)
  }).pipe(Effect.scoped, Effect.ignore)

/** What happens to a path: `restored` had another content or mode, `recreated` was gone, `deleted` was new. */
export type Action = "restored" | "recreated" | "deleted"

/** A path that a restore looked at. */
export interface Outcome {
  readonly path: string
  readonly action: Action | "already" | "conflict"
  /** Why it is a conflict. */
  readonly reason?: string
}

type Step = { readonly change: Change.Joined; readonly seen: Change.State; readonly outcome: Outcome }

const conflict = (path: string, reason: string): Outcome => ({ path, action: "conflict", reason })

const actionOf = (seen: Change.State, wanted: Change.State): Action =>
  wanted === undefined ? "deleted" : seen === undefined ? "recreated" : "restored"

const others = { folder: "a folder is there", special: "it is not a regular file", large: "it is too large" } as const

/** Decides about one path from what is there now. */
const decide = (change: Change.Joined, found: DiskEntry, force: boolean): Step => {
  const { after, before, foreign, path } = change
  if ("other" in found) {
    // A folder may be gone when its files are deleted; else the write refuses.
    return found.other === "folder" && after === undefined && before !== undefined
      ? { change, seen: undefined, outcome: { path, action: "recreated" } }
      : { change, seen: undefined, outcome: conflict(path, others[found.other]) }
  }
  const { state: seen } = found
  if (Change.isSame(seen, before)) return { change, seen, outcome: { path, action: "already" } }
  const outcome: Outcome = { path, action: actionOf(seen, before) }
  if (force) return { change, seen, outcome }
  if (!Change.isSame(seen, after)) return { change, seen, outcome: conflict(path, "it changed since the turn") }
  if (foreign) return { change, seen, outcome: conflict(path, "it changed between the turns") }
  return { change, seen, outcome }
}

/** What a restore would do with each path. Changes nothing. */
export const plan = ({ limits }: StoreOptions, tree: WorkTree, changes: ReadonlyArray<Change.Joined>, force: boolean) =>
  Effect.forEach(changes, (change) =>
    look(tree.root, change.path, limits.fileBytes).pipe(
      Effect.map((found) => decide(change, found, force)),
      Effect.catchTag("PathStays", ({ reason }) =>
        Effect.succeed<Step>({ change, seen: undefined, outcome: conflict(change.path, reason) })
      )
    )
  )

export type Plan = Effect.Effect.Success<ReturnType<typeof plan>>

const isDeletion = ({ outcome }: Step) => outcome.action === "deleted"

type Contents = ReturnType<typeof SnapshotStore.contents>

/** Carries out one step; a path that cannot be changed stays and is named. */
const carryOut = ({ limits }: StoreOptions, tree: WorkTree, contents: Contents, { change, outcome, seen }: Step) => {
  const { before, path } = change
  const limit = limits.fileBytes
  if (outcome.action === "already" && before === undefined) {
    return Effect.as(finishRemoval(tree.root, tree.directory, path), outcome)
  }
  if (outcome.action === "already" || outcome.action === "conflict") return Effect.succeed(outcome)
  const work =
    before === undefined
      ? remove(tree.root, tree.directory, path, seen, limit)
      : Effect.flatMap(
          Effect.flatMap(contents, (read) => read(before.id)),
          (bytes) => put(tree.root, path, before, bytes, seen, limit)
        )
  return work.pipe(
    Effect.as(outcome),
    Effect.catchTag("PathStays", ({ reason }) => Effect.succeed(conflict(path, reason)))
  )
}

/** Carries out a plan: deletions first, the deepest first, so that a file can take the place of a folder. */
export const apply = Effect.fn("Restore.apply")(function* (options: StoreOptions, tree: WorkTree, steps: Plan) {
  const contents = yield* Effect.cached(SnapshotStore.contents(options, tree))
  const deletions = steps.filter(isDeletion).toSorted((a, b) => b.change.path.length - a.change.path.length)
  const writes = steps.filter((step) => !isDeletion(step))
  const outcomes = yield* Effect.forEach([...deletions, ...writes], (step) => carryOut(options, tree, contents, step))
  return outcomes.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}, Effect.scoped)

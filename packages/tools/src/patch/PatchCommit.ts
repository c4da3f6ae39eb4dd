/**
 * Changes several files, all or none. New contents and originals are kept beside the targets until every file has its
 * new state. On a failure the steps are undone in reverse. If that fails too, the error reports each file's state and
 * where its original is. The caller plans the changes and holds the locks.
 *
 * A reader sees a replaced file's old or new content, never a part. If the process is killed in between, some files are
 * changed and some are not, and the originals remain beside them as `.daybook-*.orig`. Spec: TO-75, TO-76, TO-116,
 * TO-117.
 */
import { randomUUID } from "node:crypto"
import { constants, type Stats } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { fileFailure, type Target } from "@daybook/core/workspace/FileFailure"
import type { PathInFolder } from "@daybook/core/workspace/HeldFolder"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { codeOf } from "@daybook/log/support/SystemError"

// Defines the file operations of a commit; tests replace them to make a disk fail at any step.

export interface FileOperations {
  /** The stats of a path, without following a final link. */
  readonly stat: (path: string) => Promise<Stats>
  /** Creates a folder; fails if the path exists. */
  readonly makeFolder: (path: string) => Promise<void>
  /** Removes an empty folder; fails if it is not empty. */
  readonly removeFolder: (path: string) => Promise<void>
  /** Creates a file and flushes it; fails if the path exists. Without `mode`, the file gets the usual permissions. */
  readonly write: (path: string, content: string | Uint8Array, mode: number | undefined) => Promise<void>
  /** Creates a hard link; fails if `to` exists. */
  readonly link: (from: string, to: string) => Promise<void>
  /** Copies a file with its mode and flushes the copy; fails if `to` exists. */
  readonly copy: (from: string, to: string) => Promise<void>
  /** Moves a file, and replaces an existing one. */
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file. */
  readonly remove: (path: string) => Promise<void>
}

export const nodeFileOperations: FileOperations = {
  stat: (path) => fs.lstat(path),
  makeFolder: (path) => fs.mkdir(path),
  removeFolder: (path) => fs.rmdir(path),
  write: async (path, content, mode) => {
    const handle = await fs.open(path, "wx", 0o666)
    try {
      await handle.writeFile(content)
      // Not passed to `open`, because the umask would remove bits.
      if (mode !== undefined) await handle.chmod(mode & 0o7777)
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  link: (from, to) => fs.link(from, to),
  copy: async (from, to) => {
    await fs.copyFile(from, to, constants.COPYFILE_EXCL)
    const handle = await fs.open(to, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.unlink(path)
}

// Defines the steps of a commit: how one is prepared beside its target, performed, and undone.

/** A step at one path. The steps of one `change` (a move has two) are undone together. */
export type Step = { readonly change: number; readonly target: Target } & (
  | { readonly kind: "create"; readonly content: string | Uint8Array; readonly mode: number | undefined }
  /** Gives the file at `source` this path too, whatever its content. */
  | { readonly kind: "createFrom"; readonly source: Target }
  /** `stats` belong to the file that was read; only that file is replaced or removed. */
  | { readonly kind: "replace"; readonly content: Uint8Array; readonly stats: Stats }
  | { readonly kind: "remove"; readonly stats: Stats }
)

/** A step with the paths of its file and of its temporary files, through their folder's descriptor. */
export type PreparedStep = Step & { readonly real: string; readonly temporary: string; readonly original: string }

type CommitOptions = { readonly io: FileOperations; readonly hold: LocationFiles["Type"]["hold"] }

/** A commit in progress, and what it has created so far. */
export interface Commit extends CommitOptions {
  /** Makes the names of its temporary files unique. */
  readonly token: string
  readonly folders: Map<string, string>
  /** Created files beside targets, with their display names. */
  readonly spare: Map<string, string>
  readonly held: Map<string, PathInFolder>
}

/** Error codes for files or file systems without hard links; a copy is made instead. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"])

/** A name in a message. */
const quoted = (name: string) => JSON.stringify(name)

const unchanged = (before: Stats, now: Stats) =>
  now.isFile() &&
  before.ino === now.ino &&
  before.dev === now.dev &&
  before.size === now.size &&
  before.mtimeMs === now.mtimeMs

const near = ({ real, resource }: Target, file: string) =>
  path.posix.join(path.posix.dirname(resource), path.relative(path.dirname(real), file).split(path.sep).join("/"))

/** Runs a file operation; fails with its error. */
const attempt = (run: () => Promise<void>) => Effect.tryPromise({ try: run, catch: (cause) => cause })

const named = (verb: string, { resource }: Target, run: () => Promise<void>) =>
  Effect.mapError(attempt(run), (cause) => fileFailure(verb, resource, cause))

/** Holds open a file's folder until the end; creates missing folders. */
const holdFolderOf = Effect.fnUntraced(function* ({ folders, held, hold, io }: Commit, target: Target) {
  const folder = path.dirname(target.real)
  const before = held.get(folder)
  if (before !== undefined) return before
  const at = yield* hold(folder, target.resource, (place, real) =>
    io.makeFolder(place).then(() => void folders.set(place, near(target, real)))
  )
  held.set(folder, at)
  return at
})

/** Records a file beside the target. */
const note = ({ spare }: Commit, target: Target, file: string) =>
  spare.set(file, near(target, path.join(path.dirname(target.real), path.basename(file))))

/** Creates a hard link to a file beside the target, or a copy if links are not supported. */
const linkOrCopy = async (commit: Commit, target: Target, from: string, to: string) => {
  try {
    await commit.io.link(from, to)
    note(commit, target, to)
  } catch (cause) {
    if (!noLinks.has(codeOf(cause))) throw cause
    // A failed copy may leave a part behind.
    note(commit, target, to)
    await commit.io.copy(from, to)
  }
}

const writeBeside = (
  commit: Commit,
  target: Target,
  file: string,
  content: string | Uint8Array,
  mode: number | undefined
) => {
  note(commit, target, file)
  return commit.io.write(file, content, mode)
}

/** Writes a step's new file, and keeps its original, beside the target. */
const prepare = Effect.fnUntraced(function* (commit: Commit, step: Step, index: number) {
  const { target } = step
  const at = yield* holdFolderOf(commit, target)
  const real = at(path.basename(target.real))
  const temporary = at(`.daybook-${commit.token}-${index}.tmp`)
  const original = at(`.daybook-${commit.token}-${index}.orig`)
  switch (step.kind) {
    case "create":
      yield* named("write", target, () => writeBeside(commit, target, temporary, step.content, step.mode))
      break
    case "createFrom": {
      const from = (yield* holdFolderOf(commit, step.source))(path.basename(step.source.real))
      yield* named("write", target, () => linkOrCopy(commit, target, from, temporary))
      break
    }
    case "replace":
      yield* named("write", target, () => writeBeside(commit, target, temporary, step.content, step.stats.mode))
      yield* named("keep the original of", target, () => linkOrCopy(commit, target, real, original))
      break
    case "remove":
  }
  return { ...step, real, temporary, original } satisfies PreparedStep
})

/** Puts a file at a free path. A hard link never replaces a file; without links, the path is checked first. */
const place = async ({ io, spare }: Commit, from: string, to: string) => {
  try {
    await io.link(from, to)
  } catch (cause) {
    if (!noLinks.has(codeOf(cause))) throw cause
    const there = await io.stat(to).then(
      () => true,
      () => false
    )
    if (there) throw Object.assign(new Error("there is a file"), { code: "EEXIST" })
    await io.rename(from, to)
    spare.delete(from)
  }
}

/** Gives a prepared file its new state, unless another program changed it. */
const perform = Effect.fnUntraced(function* (commit: Commit, step: PreparedStep) {
  const { io, spare } = commit
  const { original, real, target, temporary } = step
  const { resource } = target
  if (step.kind === "create" || step.kind === "createFrom") {
    return yield* named("create", target, () => place(commit, temporary, real))
  }
  const now = yield* Effect.tryPromise({
    try: () => io.stat(real),
    catch: (cause) => fileFailure(step.kind, resource, cause)
  })
  if (!unchanged(step.stats, now)) {
    const message = `${quoted(resource)} was changed by another program meanwhile; read it again`
    return yield* new ToolFailure({ type: "edit.refused", message })
  }
  if (step.kind === "replace") {
    yield* named("replace", target, () => io.rename(temporary, real))
    spare.delete(temporary)
  } else {
    yield* named("remove", target, () => io.rename(real, original))
    note(commit, target, original)
  }
})

/** Restores the file's earlier state. */
const undo = ({ io, spare }: Commit, step: PreparedStep) =>
  attempt(async () => {
    if (step.kind === "create" || step.kind === "createFrom") return io.remove(step.real)
    await io.rename(step.original, step.real)
    spare.delete(step.original)
  })

/** Removes the files beside the targets; returns the files that may remain. */
const clear = Effect.fnUntraced(function* ({ io, spare }: Commit, kept: ReadonlySet<string>) {
  const left: Array<string> = []
  for (const [file, name] of spare) {
    if (kept.has(file)) continue
    yield* Effect.catchAll(
      attempt(() => io.remove(file)),
      // A file that was never written does not exist.
      (cause) => Effect.sync(() => codeOf(cause) !== "ENOENT" && left.push(name))
    )
  }
  return left
})

// Undoes a commit that failed, and reports the state of each file if that fails too.

/** Error codes for a folder that is no longer empty, which stays, or that is gone. */
const stays: ReadonlySet<string> = new Set(["ENOTEMPTY", "EEXIST", "ENOENT"])

/** Undoes steps in reverse; returns the ones that could not be undone. */
const undoAll = Effect.fnUntraced(function* (commit: Commit, done: ReadonlyArray<PreparedStep>) {
  const stuck: Array<PreparedStep> = []
  const stuckChanges = new Set<number>()
  for (const step of done.toReversed()) {
    // A moved file is removed from its new path only after it is restored at the old one.
    const isUndone =
      !stuckChanges.has(step.change) &&
      (yield* Effect.match(undo(commit, step), { onFailure: () => false, onSuccess: () => true }))
    if (isUndone) continue
    stuck.push(step)
    stuckChanges.add(step.change)
  }
  return stuck
})

/** Removes the created folders that are empty; returns the ones that could not be removed. */
const removeFolders = Effect.fnUntraced(function* ({ folders, io }: Commit) {
  const left: Array<string> = []
  for (const [folder, name] of [...folders].toReversed()) {
    yield* Effect.catchAll(
      attempt(() => io.removeFolder(folder)),
      (fault) => Effect.sync(() => !stays.has(codeOf(fault)) && left.push(name))
    )
  }
  return left
})

const states = { create: "created", createFrom: "created", replace: "changed", remove: "removed" } as const

/** The state of each file, one line each: first the changed ones, with their originals. */
const stateLines = (
  steps: ReadonlyArray<Step>,
  done: ReadonlyArray<PreparedStep>,
  stuck: ReadonlyArray<PreparedStep>,
  spare: ReadonlyMap<string, string>
): ReadonlyArray<string> => {
  const stuckAt = (step: Step) => stuck.find(({ target }) => target === step.target)
  const applied = steps.flatMap((step) => {
    const at = stuckAt(step)
    if (at === undefined) return []
    const kept = spare.get(at.original)
    const original = kept === undefined ? "" : `; its original is ${quoted(kept)}`
    return [`- applied: ${quoted(step.target.resource)} is ${states[step.kind]}${original}`]
  })
  const unchanged = steps.flatMap((step) => {
    if (stuckAt(step) !== undefined) return []
    const wasDone = done.some(({ target }) => target === step.target)
    return [`- ${wasDone ? "rolled back" : "not touched"}: ${quoted(step.target.resource)}`]
  })
  return [...applied, ...unchanged]
}

/** Undoes the done steps, then fails with the cause, or with `patch.partial` and the state of each file. */
const rollBack = Effect.fnUntraced(function* (
  commit: Commit,
  steps: ReadonlyArray<Step>,
  done: ReadonlyArray<PreparedStep>,
  cause: ToolFailure
) {
  const stuck = yield* undoAll(commit, done)
  const left = [
    ...(yield* clear(commit, new Set(stuck.map(({ original }) => original)))),
    ...(yield* removeFolders(commit))
  ]
  const remains = left.length === 0 ? "" : ` May be left behind: ${left.map(quoted).join(", ")}.`
  if (stuck.length === 0) {
    return yield* new ToolFailure({ type: cause.type, message: `${cause.message}. No file was changed.${remains}` })
  }
  const message =
    `the patch was applied in part: ${cause.message}, and not everything could be undone. State of the files:\n` +
    `${stateLines(steps, done, stuck, commit.spare).join("\n")}${remains === "" ? "" : `\n${remains.trim()}`}`
  yield* Effect.logError(message)
  return yield* new ToolFailure({ type: "patch.partial", message })
})

/**
 * Performs all steps, or none. Uninterruptible. Returns the temporary files that could not be removed. The failure has
 * its cause's type if nothing was changed, and is `patch.partial` if something remains changed.
 */
export const commit = Effect.fn("PatchCommit.commit")(
  function* (steps: ReadonlyArray<Step>, options: CommitOptions) {
    const token = randomUUID().slice(0, 8)
    const state: Commit = { ...options, token, folders: new Map(), spare: new Map(), held: new Map() }
    const done: Array<PreparedStep> = []
    return yield* Effect.gen(function* () {
      const prepared = yield* Effect.forEach(steps, (step, index) => prepare(state, step, index))
      for (const step of prepared) {
        yield* perform(state, step)
        done.push(step)
      }
    }).pipe(
      Effect.matchEffect({
        onFailure: (cause) => rollBack(state, steps, done, cause),
        onSuccess: () => clear(state, new Set())
      })
    )
  },
  Effect.scoped,
  Effect.uninterruptible
)

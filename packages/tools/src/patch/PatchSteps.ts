/**
 * Defines the steps of a commit: how one is prepared beside its target, performed, and undone. Spec: TO-75, TO-76.
 */
import type { Stats } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { codeOf, fileFailure, type Target } from "@daybook/core/workspace/FileFailure"
import type { Held } from "@daybook/core/workspace/HeldFolder"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import type { FileOperations } from "./FileOperations.ts"

/** A step at one path. The steps of one `change` (a move has two) are undone together. */
export type Step = { readonly change: number; readonly target: Target } & (
  | { readonly kind: "create"; readonly content: string | Uint8Array; readonly mode: number | undefined }
  /** Gives the file at `source` this path too, whatever its content. */
  | { readonly kind: "createFrom"; readonly source: Target }
  /** `stats` are those of the file that was read; only that file is replaced or removed. */
  | { readonly kind: "replace"; readonly content: Uint8Array; readonly stats: Stats }
  | { readonly kind: "remove"; readonly stats: Stats }
)

/** A step with the paths of its file and of its temporary files, through their folder's descriptor. */
export type Prepared = Step & { readonly real: string; readonly temporary: string; readonly original: string }

export interface CommitOptions {
  readonly io: FileOperations
  readonly hold: LocationFiles["Type"]["hold"]
}

/** A commit in progress, and what it has created so far. */
export interface Commit extends CommitOptions {
  /** Makes the names of its temporary files unique. */
  readonly token: string
  /** Created folders, outermost first, with their display names. */
  readonly folders: Map<string, string>
  /** Created files beside targets, with their display names. */
  readonly spare: Map<string, string>
  /** The folders that are held open. */
  readonly held: Map<string, Held>
}

/** Error codes for files or file systems without hard links; a copy is made instead. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"])

/** A name in a message. */
export const quoted = (name: string) => JSON.stringify(name)

const unchanged = (before: Stats, now: Stats) =>
  now.isFile() &&
  before.ino === now.ino &&
  before.dev === now.dev &&
  before.size === now.size &&
  before.mtimeMs === now.mtimeMs

/** The model's name of a file or folder near a target. */
const near = ({ real, resource }: Target, file: string) =>
  path.posix.join(path.posix.dirname(resource), path.relative(path.dirname(real), file).split(path.sep).join("/"))

/** Runs a file operation; fails with its error. */
export const attempt = (run: () => Promise<void>) => Effect.tryPromise({ try: run, catch: (cause) => cause })

/** Runs a file operation; its failure names the target. */
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
export const prepare = Effect.fnUntraced(function* (commit: Commit, step: Step, index: number) {
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
  return { ...step, real, temporary, original } satisfies Prepared
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
export const perform = Effect.fnUntraced(function* (commit: Commit, step: Prepared) {
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
export const undo = ({ io, spare }: Commit, step: Prepared) =>
  attempt(async () => {
    if (step.kind === "create" || step.kind === "createFrom") return io.remove(step.real)
    await io.rename(step.original, step.real)
    spare.delete(step.original)
  })

/** Removes the files beside the targets; returns those that may remain. */
export const clear = Effect.fnUntraced(function* ({ io, spare }: Commit, kept: ReadonlySet<string>) {
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

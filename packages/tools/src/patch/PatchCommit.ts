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
import type { Stats } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { codeOf, fileFailure } from "@daybook/core/workspace/FileFailure"
import type { Held } from "@daybook/core/workspace/HeldFolder"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import type { Target } from "@daybook/core/workspace/Target"
import type { FileOperations } from "./FileOperations.ts"

/** A step at one path. The steps of one `change` (a move has two) are undone together. */
export type Step = { readonly change: number; readonly target: Target } & (
  | { readonly kind: "create"; readonly content: string; readonly mode: number | undefined }
  /** Gives the file at `source` this path too, whatever its content. */
  | { readonly kind: "createFrom"; readonly source: Target }
  /** `stats` are those of the file that was read; only that file is replaced or removed. */
  | { readonly kind: "replace"; readonly content: string; readonly stats: Stats }
  | { readonly kind: "remove"; readonly stats: Stats }
)

/** A step with the paths of its file and of its temporary files, through their folder's descriptor. */
type Prepared = Step & { readonly real: string; readonly temporary: string; readonly original: string }

export interface CommitOptions {
  readonly io: FileOperations
  readonly hold: LocationFiles["Type"]["hold"]
}

/** Error codes for files or file systems without hard links; a copy is made instead. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"])

const quoted = (name: string) => JSON.stringify(name)

const unchanged = (before: Stats, now: Stats) =>
  now.isFile() &&
  before.ino === now.ino &&
  before.dev === now.dev &&
  before.size === now.size &&
  before.mtimeMs === now.mtimeMs

/** The model's name of a file or folder near a target. */
const near = ({ real, resource }: Target, file: string) =>
  path.posix.join(path.posix.dirname(resource), path.relative(path.dirname(real), file).split(path.sep).join("/"))

/**
 * Performs all steps, or none. Uninterruptible. Returns the temporary files that could not be removed. The failure has
 * its cause's type if nothing was changed, and is `patch.partial` if something remains changed.
 */
export const commit = Effect.fn("PatchCommit.commit")(
  function* (steps: ReadonlyArray<Step>, options: CommitOptions) {
    const { hold, io } = options
    const token = randomUUID().slice(0, 8)
    /** Created folders, outermost first, and files beside targets, with their display names. */
    const folders = new Map<string, string>()
    const spare = new Map<string, string>()
    const held = new Map<string, Held>()
    const done: Array<Prepared> = []

    const attempt = (run: () => Promise<void>) => Effect.tryPromise({ try: run, catch: (cause) => cause })
    const named = (verb: string, { resource }: Target, run: () => Promise<void>) =>
      Effect.mapError(attempt(run), (cause) => fileFailure(verb, resource, cause))

    /** Holds open a file's folder until the end; creates missing folders. */
    const holdFolderOf = Effect.fnUntraced(function* (target: Target) {
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
    const note = (target: Target, file: string) =>
      spare.set(file, near(target, path.join(path.dirname(target.real), path.basename(file))))

    /** Creates a hard link to a file beside the target, or a copy if links are not supported. */
    const linkOrCopy = async (target: Target, from: string, to: string) => {
      try {
        await io.link(from, to)
        note(target, to)
      } catch (cause) {
        if (!noLinks.has(codeOf(cause))) throw cause
        // A failed copy may leave a part behind.
        note(target, to)
        await io.copy(from, to)
      }
    }

    const writeBeside = (target: Target, file: string, content: string, mode: number | undefined) => {
      note(target, file)
      return io.write(file, content, mode)
    }

    const prepare = Effect.fnUntraced(function* (step: Step, index: number) {
      const { target } = step
      const at = yield* holdFolderOf(target)
      const real = at(path.basename(target.real))
      const temporary = at(`.daybook-${token}-${index}.tmp`)
      const original = at(`.daybook-${token}-${index}.orig`)
      switch (step.kind) {
        case "create":
          yield* named("write", target, () => writeBeside(target, temporary, step.content, step.mode))
          break
        case "createFrom": {
          const from = (yield* holdFolderOf(step.source))(path.basename(step.source.real))
          yield* named("write", target, () => linkOrCopy(target, from, temporary))
          break
        }
        case "replace":
          yield* named("write", target, () => writeBeside(target, temporary, step.content, step.stats.mode))
          yield* named("keep the original of", target, () => linkOrCopy(target, real, original))
          break
        case "remove":
      }
      return { ...step, real, temporary, original }
    })

    /** Puts a file at a free path. A hard link never replaces a file; without links, the path is checked first. */
    const place = async (from: string, to: string) => {
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

    const perform = Effect.fnUntraced(function* (step: Prepared) {
      const { original, real, target, temporary } = step
      const { resource } = target
      if (step.kind === "create" || step.kind === "createFrom") {
        return yield* named("create", target, () => place(temporary, real))
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
        note(target, original)
      }
    })

    const undo = (step: Prepared) =>
      attempt(async () => {
        if (step.kind === "create" || step.kind === "createFrom") return io.remove(step.real)
        await io.rename(step.original, step.real)
        spare.delete(step.original)
      })

    /** Removes the files beside the targets; returns those that may remain. */
    const clear = Effect.fnUntraced(function* (kept: ReadonlySet<string>) {
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

    const rollBack = Effect.fnUntraced(function* (cause: ToolFailure) {
      const stuck = new Map<Prepared, unknown>()
      const stuckChanges = new Set<number>()
      for (const step of done.toReversed()) {
        // A moved file is removed from its new path only after it is restored at the old one.
        const undone = stuckChanges.has(step.change) ? new Error("kept") : yield* Effect.merge(undo(step))
        if (undone === undefined) continue
        stuck.set(step, undone)
        stuckChanges.add(step.change)
      }
      const left = yield* clear(new Set([...stuck.keys()].map(({ original }) => original)))
      for (const [folder, name] of [...folders].toReversed()) {
        yield* Effect.catchAll(
          attempt(() => io.removeFolder(folder)),
          (fault) =>
            // A folder that is no longer empty stays.
            Effect.sync(() => !["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(fault)) && left.push(name))
        )
      }
      const remains = left.length === 0 ? "" : ` May be left behind: ${left.map(quoted).join(", ")}.`
      if (stuck.size === 0) {
        return yield* new ToolFailure({ type: cause.type, message: `${cause.message}. No file was changed.${remains}` })
      }
      const lines = [
        ...steps.flatMap((step) => {
          const at = [...stuck.keys()].find(({ target }) => target === step.target)
          if (at === undefined) return []
          const kept = spare.get(at.original)
          const state = step.kind === "remove" ? "removed" : step.kind === "replace" ? "changed" : "created"
          return [
            `- applied: ${quoted(step.target.resource)} is ${state}` +
              (kept === undefined ? "" : `; its original is ${quoted(kept)}`)
          ]
        }),
        ...steps.flatMap((step) => {
          if ([...stuck.keys()].some(({ target }) => target === step.target)) return []
          const wasDone = done.some(({ target }) => target === step.target)
          return [`- ${wasDone ? "rolled back" : "not touched"}: ${quoted(step.target.resource)}`]
        })
      ]
      const message =
        `the patch was applied in part: ${cause.message}, and not everything could be undone. State of the files:\n` +
        `${lines.join("\n")}${remains === "" ? "" : `\n${remains.trim()}`}`
      yield* Effect.logError(message)
      return yield* new ToolFailure({ type: "patch.partial", message })
    })

    return yield* Effect.gen(function* () {
      const prepared = yield* Effect.forEach(steps, prepare)
      for (const step of prepared) {
        yield* perform(step)
        done.push(step)
      }
    }).pipe(Effect.matchEffect({ onFailure: rollBack, onSuccess: () => clear(new Set()) }))
  },
  Effect.scoped,
  Effect.uninterruptible
)

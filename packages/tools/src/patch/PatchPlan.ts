/**
 * Plans the steps of a patch: resolves its files before the question, and computes their new contents after permission
 * and under the files' locks. Writes nothing. Spec: TO-14, TO-72.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { fileFailure, type WritableTarget } from "@daybook/core/workspace/FileFailure"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { codeOf } from "@daybook/log/support/SystemError"
import { refuse, confirm, encodeWholeText, readWholeText, refuseRedacted } from "../FileText.ts"
import { applyHunks } from "./ApplyHunks.ts"
import type { FileChange } from "./Patch.ts"
import type { Step } from "./PatchCommit.ts"

export interface ResolvedChange {
  readonly change: FileChange
  readonly target: WritableTarget
  readonly destination: WritableTarget | undefined
}

/** Maximum total size of all files that a patch updates, before the change. */
const maximumTotalBytes = 64 * 1024 * 1024

const quoted = (name: string) => JSON.stringify(name)

const checkPresence = Effect.fnUntraced(function* ({ change, destination, target }: ResolvedChange) {
  const name = quoted(target.resource)
  const where = `(line ${change.line} of the patch)`
  if (change._tag === "Add") {
    if (target.stats === undefined) return
    return yield* refuse(`${name} already exists ${where}; change it with "*** Update File"`)
  }
  if (target.stats === undefined) {
    const message = `${name} does not exist ${where}; a new file is made with "*** Add File"`
    return yield* new ToolFailure({ type: "file.missing", message })
  }
  // The link's target would be removed, and the link would remain.
  if (target.link && (change._tag === "Delete" || change.movedTo !== undefined)) {
    return yield* refuse(`${quoted(change.path)} is a symbolic link ${where}; name the file itself, ${name}`)
  }
  if (destination?.stats !== undefined && destination.real !== target.real) {
    return yield* refuse(`${quoted(destination.resource)} already exists, so nothing can be moved there ${where}`)
  }
})

/** Refuses a file that is named twice, or that is a parent folder of another. */
const checkDistinct = Effect.fnUntraced(function* (changes: ReadonlyArray<ResolvedChange>) {
  const seen = new Map<string, number>()
  const named = changes.flatMap(({ change, destination, target }) => [
    { target, line: change.line },
    ...(destination === undefined ? [] : [{ target: destination, line: change.line }])
  ])
  for (const { line, target } of named) {
    const before = seen.get(target.real)
    if (before !== undefined) {
      return yield* refuse(
        `${quoted(target.resource)} is named twice (lines ${before} and ${line} of the patch); a patch names a file ` +
          `once: put all its hunks below one "*** Update File", with "*** Move to" only for another path`
      )
    }
    seen.set(target.real, line)
  }
  for (const { line, target } of named) {
    for (let folder = path.dirname(target.real); folder !== path.dirname(folder); folder = path.dirname(folder)) {
      const other = seen.get(folder)
      if (other === undefined) continue
      return yield* refuse(
        `${quoted(target.resource)} (line ${line} of the patch) would lie below another file of the patch (line ${other})`
      )
    }
  }
})

/** Resolves the files of all changes, and refuses what is wrong without reading them. */
export const resolveChanges = Effect.fn("PatchPlan.resolve")(function* (
  files: LocationFiles["Type"],
  changes: ReadonlyArray<FileChange>
) {
  const resolved = yield* Effect.forEach(changes, (change) =>
    Effect.gen(function* () {
      const target = yield* files.resolveWritable(change.path)
      const movedTo = change._tag === "Update" ? change.movedTo : undefined
      const destination = movedTo === undefined ? undefined : yield* files.resolveWritable(movedTo)
      return { change, target, destination }
    })
  )
  yield* checkDistinct(resolved)
  yield* Effect.forEach(resolved, checkPresence, { discard: true })
  return resolved
})

/** Checks that the folder of a file, or its nearest existing ancestor, is writable. */
const checkFolder = (target: WritableTarget): Effect.Effect<void, ToolFailure> => {
  const check = async (folder: string): Promise<void> => {
    try {
      await fs.access(folder, constants.W_OK | constants.X_OK)
    } catch (cause) {
      if (codeOf(cause) !== "ENOENT") throw cause
      await check(path.dirname(folder))
    }
  }
  return Effect.tryPromise({
    try: () => check(path.dirname(target.real)),
    catch: (cause) => fileFailure("change the folder of", target.resource, cause)
  })
}

const stepsOf = Effect.fnUntraced(function* (
  files: LocationFiles["Type"],
  asked: ResolvedChange,
  index: number,
  budget: { bytes: number },
  near: Array<number>
) {
  const { change } = asked
  const target = yield* confirm(files, asked.target)
  const destination = asked.destination === undefined ? undefined : yield* confirm(files, asked.destination)
  yield* checkPresence({ change, target, destination })
  yield* checkFolder(target)
  if (destination !== undefined) yield* checkFolder(destination)
  const at = { change: index, target }
  if (change._tag === "Add") {
    yield* refuseRedacted(target.resource, "", change.content)
    return [{ ...at, kind: "create", content: change.content, mode: undefined } satisfies Step]
  }
  const before = asked.target.stats
  const { stats } = target
  if (stats === undefined || before === undefined) {
    return yield* Effect.dieMessage("the presence of a file was checked before")
  }
  if (change._tag === "Delete" || change.hunks.length === 0) {
    // Only the stats show whether it is still the intended file.
    if (stats.ino !== before.ino || stats.size !== before.size || stats.mtimeMs !== before.mtimeMs) {
      return yield* refuse(`${quoted(target.resource)} was changed meanwhile; read it again. No file was changed.`)
    }
    const remove: Step = { ...at, kind: "remove", stats }
    return destination === undefined
      ? [remove]
      : [{ change: index, target: destination, kind: "createFrom", source: target } satisfies Step, remove]
  }
  budget.bytes -= stats.size
  if (budget.bytes < 0) {
    return yield* refuse(`the files to update have more than ${maximumTotalBytes} bytes together; patch them in parts`)
  }
  const read = yield* readWholeText(files, target)
  const applied = yield* Effect.mapError(applyHunks(read.text, change.hunks), (error) =>
    refuse(`${quoted(target.resource)}: ${error.message}\nNo file was changed.`)
  )
  yield* refuseRedacted(target.resource, read.text, applied.content)
  near.push(...applied.near)
  const content = yield* encodeWholeText(target.resource, read.encoding, applied.content)
  if (destination === undefined) {
    if (applied.content !== read.text) return [{ ...at, kind: "replace", content, stats: read.stats } satisfies Step]
    return yield* refuse(
      `the hunks of ${quoted(target.resource)} (line ${change.line} of the patch) change nothing: they add what they remove`
    )
  }
  return [
    { change: index, target: destination, kind: "create", content, mode: read.stats.mode } satisfies Step,
    { ...at, kind: "remove", stats: read.stats } satisfies Step
  ]
})

/**
 * The steps of all changes, after every hunk fits, and the lines of the patch where the hunks begin that are only near the
 * lines of their file. The caller holds the files' locks.
 */
export const planSteps = Effect.fn("PatchPlan.steps")(function* (
  files: LocationFiles["Type"],
  changes: ReadonlyArray<ResolvedChange>
) {
  const budget = { bytes: maximumTotalBytes }
  const steps: Array<Step> = []
  const near: Array<number> = []
  for (const [index, change] of changes.entries()) steps.push(...(yield* stepsOf(files, change, index, budget, near)))
  return { steps, near }
})

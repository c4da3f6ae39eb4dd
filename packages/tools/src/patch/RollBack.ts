/** Undoes a commit that failed, and reports the state of each file if that fails too. Spec: TO-75, TO-76. */
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { codeOf } from "@daybook/core/workspace/FileFailure"
import { attempt, clear, type Commit, type Prepared, quoted, type Step, undo } from "./PatchSteps.ts"

/** Error codes for a folder that is no longer empty, which stays, or that is gone. */
const stays: ReadonlySet<string> = new Set(["ENOTEMPTY", "EEXIST", "ENOENT"])

/** Undoes steps in reverse; returns the ones that could not be undone. */
const undoAll = Effect.fnUntraced(function* (commit: Commit, done: ReadonlyArray<Prepared>) {
  const stuck: Array<Prepared> = []
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
  done: ReadonlyArray<Prepared>,
  stuck: ReadonlyArray<Prepared>,
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

/**
 * Undoes the steps that were done, then fails: with the type of the cause if no file is changed, else with
 * `patch.partial` and the state of each file.
 */
export const rollBack = Effect.fnUntraced(function* (
  commit: Commit,
  steps: ReadonlyArray<Step>,
  done: ReadonlyArray<Prepared>,
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

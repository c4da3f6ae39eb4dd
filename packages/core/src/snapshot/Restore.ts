/**
 * Takes back what turns did to the files of a Location. A path goes back only if it still is as the last of these turns
 * left it; any other path is a conflict and stays. Running an interrupted restore again finishes it. Spec: UN-20..UN-26.
 */
import { Effect, type Scope } from "effect"
import * as Change from "./Change.ts"
import * as Disk from "./Disk.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"
import * as SnapshotStore from "./SnapshotStore.ts"
import type { StoreOptions } from "./StoreFolder.ts"
import type { WorkTree } from "./WorkTree.ts"

/** What happens to a path: `restored` had another content or mode, `recreated` was gone, `deleted` was new. */
export type Action = "restored" | "recreated" | "deleted"

/** A path that a restore looked at. */
export interface Outcome {
  readonly path: string
  readonly action: Action | "already" | "conflict"
  /** Why it is a conflict. */
  readonly reason?: string
}

interface Step {
  readonly change: Change.Joined
  readonly seen: Change.State
  readonly outcome: Outcome
}

const conflict = (path: string, reason: string): Outcome => ({ path, action: "conflict", reason })

const actionOf = (seen: Change.State, wanted: Change.State): Action =>
  wanted === undefined ? "deleted" : seen === undefined ? "recreated" : "restored"

const others = { folder: "a folder is there", special: "it is not a regular file", large: "it is too large" } as const

/** Decides about one path from what is there now. */
const decide = (change: Change.Joined, found: Disk.Found, force: boolean): Step => {
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
    Disk.look(tree.root, change.path, limits.fileBytes).pipe(
      Effect.map((found) => decide(change, found, force)),
      Effect.catchTag("Left", ({ reason }) =>
        Effect.succeed<Step>({ change, seen: undefined, outcome: conflict(change.path, reason) })
      )
    )
  )

export type Plan = Effect.Effect.Success<ReturnType<typeof plan>>

const isDeletion = ({ outcome }: Step) => outcome.action === "deleted"

type Contents = ReturnType<typeof SnapshotStore.contents>

/** Carries out one step; a path that cannot be changed stays and is named. */
const carryOut = (
  { limits }: StoreOptions,
  tree: WorkTree,
  contents: Contents,
  { change, outcome, seen }: Step
): Effect.Effect<Outcome, SnapshotUnavailable, Scope.Scope> => {
  const { before, path } = change
  const limit = limits.fileBytes
  if (outcome.action === "already" && before === undefined) {
    return Effect.as(Disk.finishRemoval(tree.root, tree.directory, path), outcome)
  }
  if (outcome.action === "already" || outcome.action === "conflict") return Effect.succeed(outcome)
  const work =
    before === undefined
      ? Disk.remove(tree.root, tree.directory, path, seen, limit)
      : Effect.flatMap(
          Effect.flatMap(contents, (read) => read(before.id)),
          (bytes) => Disk.put(tree.root, path, before, bytes, seen, limit)
        )
  return work.pipe(
    Effect.as(outcome),
    Effect.catchTag("Left", ({ reason }) => Effect.succeed(conflict(path, reason)))
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

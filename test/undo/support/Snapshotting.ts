/** Snapshots and restores of a folder, without a runtime. */
import { Effect } from "effect"
import { join } from "../../../packages/core/src/snapshot/Change.ts"
import * as Restore from "../../../packages/core/src/snapshot/Restore.ts"
import * as SnapshotStore from "../../../packages/core/src/snapshot/SnapshotStore.ts"
import type { StoreOptions } from "../../../packages/core/src/snapshot/StoreFolder.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { workTree } from "./Repository.ts"

export const session = SessionID.make("ses_a..b.lock")

export const take = (given: StoreOptions, folder: string, sessionID = session) =>
  Effect.flatMap(workTree(folder), (tree) => SnapshotStore.take(given, tree, sessionID))

/** A snapshot before some work, and one after it: a turn. */
export const turn = (given: StoreOptions, folder: string, work: () => void) =>
  Effect.gen(function* () {
    const { tree: before } = yield* take(given, folder)
    work()
    const { tree: after } = yield* take(given, folder)
    return { before, after }
  })

/** What differs between the snapshots of a turn. */
export const changesOf = (
  given: StoreOptions,
  folder: string,
  pair: { readonly before: string; readonly after: string }
) =>
  Effect.gen(function* () {
    const all = yield* SnapshotStore.changes(given, yield* workTree(folder), [pair])
    return all.flat().toSorted((a, b) => (a.path < b.path ? -1 : 1))
  })

export const changedPaths = (...given: Parameters<typeof changesOf>) =>
  Effect.map(changesOf(...given), (changes) => changes.map(({ path }) => path))

/** Takes turns back, and says what it did with each path. */
export const undo = (
  given: StoreOptions,
  folder: string,
  turns: ReadonlyArray<{ readonly before: string; readonly after: string }>,
  force = false
) =>
  Effect.gen(function* () {
    const tree = yield* workTree(folder)
    const changes = yield* SnapshotStore.changes(given, tree, turns)
    const steps = yield* Restore.plan(given, tree, join(changes), force)
    const outcomes = yield* Restore.apply(given, tree, steps)
    return outcomes.map(({ action, path }) => `${action} ${path}`)
  })

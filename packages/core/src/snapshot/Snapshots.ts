/**
 * Snapshots of the files that sessions work on, and their restoration. `SnapshotStore.ts` keeps them, `Restore.ts` takes
 * changes back; a variant keeps nothing. Process-global. Spec: specs/undo.md.
 */
import { realpathSync } from "node:fs"
import * as path from "node:path"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { defaultLimits, type SnapshotLimits } from "./Candidates.ts"
import { type Change, join } from "./Change.ts"
import * as Restore from "./Restore.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"
import * as SnapshotStore from "./SnapshotStore.ts"
import { type WorkTree, workTreeOf } from "./WorkTree.ts"

/** The snapshots around one turn. */
export interface Turn {
  readonly before: string
  readonly after: string
}

export interface RestoreRequest {
  readonly sessionID: SessionID
  readonly directory: string
  /** The turns to take back, oldest first. */
  readonly turns: ReadonlyArray<Turn>
  /** Restores paths that others changed too. */
  readonly force: boolean
  /** Decides only. */
  readonly dryRun: boolean
}

export interface Restored {
  readonly outcomes: ReadonlyArray<Restore.Outcome>
  /** The files just before; undefined if nothing had to change. */
  readonly before: string | undefined
}

export class Snapshots extends Context.Tag("@daybook/core/Snapshots")<
  Snapshots,
  {
    /** Stores the files of a Location for a session; undefined if no snapshots are taken there. */
    readonly take: (
      sessionID: SessionID,
      directory: string
    ) => Effect.Effect<SnapshotStore.Snapshot | undefined, SnapshotUnavailable>
    /** The files that differ between two snapshots of a Location. */
    readonly changes: (directory: string, turn: Turn) => Effect.Effect<ReadonlyArray<Change>, SnapshotUnavailable>
    /** Takes back what turns changed, after a snapshot of the files as they are. */
    readonly restore: (request: RestoreRequest) => Effect.Effect<Restored, SnapshotUnavailable>
    /** Erases the snapshots of a removed session. A failure is logged. */
    readonly forget: (sessionID: SessionID) => Effect.Effect<void>
  }
>() {}

export interface SnapshotOptions {
  /** The folder of the stores. */
  readonly folder: string
  /** Folders outside of git work trees whose files are snapshotted. */
  readonly folders?: ReadonlyArray<string>
  /** The runtime's own files. */
  readonly hidden?: ReadonlyArray<string>
  readonly limits?: Partial<SnapshotLimits>
  /** How long one snapshot may take. Default: 30 seconds. */
  readonly patience?: Duration.DurationInput
}

/** After a snapshot that took too long or was too large, the next one is tried this much later. */
const pause = Duration.toMillis("10 minutes")

const canonical = (folder: string): string => {
  try {
    return realpathSync(folder)
  } catch {
    return path.resolve(folder)
  }
}

/** Tries again at once, except after a snapshot that cost much and failed. */
const pausing = () => {
  const failed = new Map<string, { readonly until: number; readonly error: SnapshotUnavailable }>()
  return <A>(key: string, work: Effect.Effect<A, SnapshotUnavailable>) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const last = failed.get(key)
      if (last !== undefined && now < last.until) return Effect.fail(last.error)
      failed.delete(key)
      return Effect.tapError(work, (error) =>
        Effect.sync(() => {
          if (error.reason === "timeout" || error.reason === "too-large") failed.set(key, { until: now + pause, error })
        })
      )
    })
}

const make = ({ folders = [], limits, patience = "30 seconds", ...options }: SnapshotOptions): Snapshots["Type"] => {
  const folder = canonical(options.folder)
  const store: SnapshotStore.StoreOptions = {
    folder,
    hidden: [folder, ...(options.hidden ?? []).map(canonical)],
    limits: { ...defaultLimits, ...limits },
    patience: Duration.decode(patience)
  }
  const configured = folders.map(canonical)
  const unlessPaused = pausing()
  const treeOf = (directory: string) => workTreeOf(directory, configured)
  const known = (directory: string): Effect.Effect<WorkTree, SnapshotUnavailable> =>
    Effect.flatMap(treeOf(directory), (tree) =>
      tree === undefined ? unavailable("missing", "no snapshots are taken in this folder") : Effect.succeed(tree)
    )

  const take: Snapshots["Type"]["take"] = Effect.fn("Snapshots.take")(function* (sessionID, directory) {
    const tree = yield* treeOf(directory)
    if (tree === undefined) return undefined
    return yield* unlessPaused(tree.directory, SnapshotStore.take(store, tree, sessionID))
  })

  const restore: Snapshots["Type"]["restore"] = Effect.fn("Snapshots.restore")(function* (request) {
    const { directory, dryRun, force, sessionID, turns } = request
    const tree = yield* known(directory)
    const changed = yield* Effect.forEach(turns, ({ after, before }) =>
      SnapshotStore.changes(store, tree, before, after)
    )
    const steps = yield* Restore.plan(store, tree, join(changed), force)
    const planned = steps.map(({ outcome }) => outcome)
    const toDo = planned.some(({ action }) => action !== "already" && action !== "conflict")
    if (dryRun || !toDo) return { outcomes: planned, before: undefined }
    // What the restore replaces stays in the store.
    const { tree: before } = yield* SnapshotStore.take(store, tree, sessionID)
    return { outcomes: yield* Restore.apply(store, tree, steps), before }
  })

  return Snapshots.of({
    take,
    restore,
    changes: (directory, { after, before }) =>
      Effect.flatMap(known(directory), (tree) => SnapshotStore.changes(store, tree, before, after)),
    forget: (sessionID) =>
      Effect.catchAll(SnapshotStore.forget(store, sessionID), (error) =>
        error.reason === "no-git"
          ? Effect.void
          : Effect.logWarning("snapshots of a removed session could not be erased", error)
      )
  })
}

/** Snapshots in stores below a folder, which is created when first needed. */
export const layer = (options: SnapshotOptions): Layer.Layer<Snapshots> => Layer.sync(Snapshots, () => make(options))

/** Takes no snapshots. */
export const layerNothing: Layer.Layer<Snapshots> = Layer.succeed(Snapshots, {
  take: () => Effect.succeed(undefined),
  changes: () => unavailable("missing", "no snapshots are taken"),
  restore: () => unavailable("missing", "no snapshots are taken"),
  forget: () => Effect.void
})

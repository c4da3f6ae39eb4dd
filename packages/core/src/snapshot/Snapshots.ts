/**
 * Snapshots of the files that sessions work on, and their restoration. `SnapshotStore.ts` keeps them, `Restore.ts` takes
 * changes back; a variant keeps nothing. Process-global. Spec: specs/sessions.md.
 */
import { realpathSync } from "node:fs"
import * as path from "node:path"
import { Clock, Context, Duration, Effect, Layer, Option, Queue } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { defaultLimits, type SnapshotLimits, type WorkTree, workTreeOf } from "./Candidates.ts"
import { type Change, join, type Pair } from "./Change.ts"
import * as References from "./References.ts"
import * as Restore from "./Restore.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"
import * as SnapshotStore from "./SnapshotStore.ts"
import { type StoreOptions, stores } from "./StoreFolder.ts"
import * as Upkeep from "./Upkeep.ts"

export type Turn = Pair

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

export interface RestoreAccount {
  readonly outcomes: ReadonlyArray<Restore.Outcome>
  /** The files just before; undefined if nothing had to change. */
  readonly before: string | undefined
  /** The files just after; undefined if nothing had to change, or if no snapshot of them could be taken. */
  readonly after: string | undefined
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
    readonly restore: (request: RestoreRequest) => Effect.Effect<RestoreAccount, SnapshotUnavailable>
    /** Erases the snapshots of a removed session. A failure is logged; the next start tries again. */
    readonly forget: (sessionID: SessionID) => Effect.Effect<void>
    /** Whether a session has snapshots. False without stores, and if they cannot be read. */
    readonly kept: Effect.Effect<Option.Option<(sessionID: SessionID) => boolean>>
    /** Erases the snapshots of sessions that were last used up to a time. Returns their number. */
    readonly forgetUntil: (times: ReadonlyMap<SessionID, number>) => Effect.Effect<number, SnapshotUnavailable>
    /** Finishes erasures, packs, and drops the oldest snapshots above the size. Runs by itself after snapshots. */
    readonly upkeep: Effect.Effect<Upkeep.Bounded, SnapshotUnavailable>
  }
>() {}

export interface SnapshotOptions {
  readonly folder: string
  readonly folders?: ReadonlyArray<string>
  /** The runtime's own files. */
  readonly hidden?: ReadonlyArray<string>
  readonly limits?: Partial<SnapshotLimits>
  /** Bytes of all stores together; the oldest snapshots go first. Default: 1 GB. */
  readonly maxBytes?: number
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

export const folderBeside = (filename: string): string => path.join(path.dirname(filename), "snapshots")

/** Bytes of all stores, unless the options say otherwise. */
const defaultBytes = 1_000_000_000

/** Snapshots of this process between two runs of the upkeep, at most. */
const between = 500

/** Signals after the first snapshot, then after many of them or a tenth of the size. */
const makeBell = (maxBytes: number) =>
  Effect.map(Queue.sliding<void>(1), (queue) => {
    let [count, bytes] = [between, 0]
    return {
      wait: Queue.take(queue),
      ring: Queue.offer(queue, undefined),
      stored: ({ stored }: SnapshotStore.Snapshot) =>
        Effect.suspend(() => {
          count += 1
          bytes += stored
          if (count <= between && bytes <= maxBytes / 10) return Effect.void
          count = bytes = 0
          return Queue.offer(queue, undefined)
        })
    }
  })

const make = Effect.fnUntraced(function* ({
  folders = [],
  limits,
  maxBytes = defaultBytes,
  patience = "30 seconds",
  ...options
}: SnapshotOptions) {
  const folder = canonical(options.folder)
  const store: StoreOptions = {
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

  const upkeep = Upkeep.run(folder, maxBytes)
  const bell = yield* makeBell(maxBytes)
  // An earlier process may have ended within an erasure.
  const left = yield* Effect.orElseSucceed(stores(folder), () => [])
  if (left.some(Upkeep.isPending)) yield* bell.ring
  yield* Effect.forkScoped(Effect.forever(Effect.zipRight(bell.wait, Effect.ignoreLogged(upkeep))))

  const take: Snapshots["Type"]["take"] = Effect.fn("Snapshots.take")(function* (sessionID, directory) {
    const tree = yield* treeOf(directory)
    if (tree === undefined) return undefined
    const work = Effect.tap(SnapshotStore.take(store, tree, sessionID), bell.stored)
    return yield* unlessPaused(tree.directory, work)
  })

  const restore: Snapshots["Type"]["restore"] = Effect.fn("Snapshots.restore")(function* (request) {
    const { directory, dryRun, force, sessionID, turns } = request
    const tree = yield* known(directory)
    const steps = yield* Restore.plan(store, tree, join(yield* SnapshotStore.changes(store, tree, turns)), force)
    const planned = steps.map(({ outcome }) => outcome)
    const toDo = planned.some(({ action }) => action !== "already" && action !== "conflict")
    if (dryRun) return { outcomes: planned, before: undefined, after: undefined }
    if (!toDo) return { outcomes: yield* Restore.apply(store, tree, steps), before: undefined, after: undefined }
    // What the restore replaces stays in the store.
    const { tree: before } = yield* SnapshotStore.take(store, tree, sessionID)
    const outcomes = yield* Restore.apply(store, tree, steps)
    const after = yield* Effect.option(SnapshotStore.take(store, tree, sessionID))
    return { outcomes, before, after: Option.getOrUndefined(Option.map(after, ({ tree }) => tree)) }
  })

  return Snapshots.of({
    take,
    restore,
    changes: (directory, pair) =>
      Effect.flatMap(known(directory), (tree) =>
        Effect.map(SnapshotStore.changes(store, tree, [pair]), (all) => all.flat())
      ),
    forget: (sessionID) =>
      Effect.catchAll(Upkeep.forget(folder, sessionID), (error) =>
        Effect.logWarning("snapshots of a removed session could not be erased; the next start tries again", error)
      ),
    kept: Effect.map(
      Effect.orElseSucceed(Effect.flatMap(stores(folder), Effect.forEach(References.keysIn)), () => []),
      (keys) => {
        const found = new Set(keys.flat())
        return found.size === 0 ? Option.none() : Option.some((id: SessionID) => found.has(References.keyOf(id)))
      }
    ),
    forgetUntil: (times) => Upkeep.forgetUntil(folder, times),
    upkeep
  })
})

/** Snapshots in stores below a folder, which is created when first needed. */
export const layer = (options: SnapshotOptions): Layer.Layer<Snapshots> => Layer.scoped(Snapshots, make(options))

/** Takes no snapshots. */
export const layerNothing: Layer.Layer<Snapshots> = Layer.succeed(Snapshots, {
  take: () => Effect.succeed(undefined),
  changes: () => unavailable("missing", "no snapshots are taken"),
  restore: () => unavailable("missing", "no snapshots are taken"),
  forget: () => Effect.void,
  kept: Effect.succeed(Option.none()),
  forgetUntil: () => Effect.succeed(0),
  upkeep: Effect.succeed({ bytes: 0, dropped: 0 })
})

/**
 * Keeps a session's context epoch: the baseline (the exact privileged text that the model reads first), and the
 * snapshot that changes are computed from. The log stores it: the frame of the first request with a new baseline
 * introduces it, and each context update says what it changes. A baseline is rendered before the first prompt is
 * promoted and after a compaction; a move ends the epoch.
 * Spec: CX-14..CX-19, CX-51..CX-53 in specs/context.md (EP-1, EP-3, EP-5, EP-6, EP-8, EP-9).
 */
import { Context, Effect, Layer, Metric } from "effect"
import { Identifiers, type SessionID } from "@daybook/log/domain/Identifiers"
import { difference, sameSnapshot, type Snapshot } from "@daybook/log/domain/Snapshot"
import { draft } from "@daybook/log/events/SessionEvents"
import {
  type AppendError,
  type CommitHook,
  EventLog,
  type LogUnavailable,
  type OwnerToken
} from "@daybook/log/log/EventLog"
import type { ContextMarks } from "@daybook/log/store/ContextRows"
import { EpochStore, type StoredEpoch } from "@daybook/log/store/EpochStore"
import type { LocationLeft } from "@daybook/log/store/SessionChecks"
import * as Metrics from "@daybook/log/support/Metrics"
import { ContextSnapshotUnreadable, InitializationBlocked } from "../domain/RunFailure.ts"
import { initialize, type Observed, reconcile, replace } from "./SystemContext.ts"
import { spanned } from "@daybook/log/support/Spans"

export { ContextSnapshotUnreadable, InitializationBlocked } from "../domain/RunFailure.ts"

export interface Epoch {
  readonly baseline: string
  readonly snapshot: Snapshot
  /** The baseline contains the System messages up to this sequence number. */
  readonly baselineSeq: number
  /**
   * `stored`: read from the log. `same`: rendered for this turn, with the text and the values that the log holds.
   * `new`: rendered for this turn; the frame of its request introduces it.
   */
  readonly state: "stored" | "same" | "new"
}

/** Checked in the transaction of every write: this owner still holds the session, at this Location. */
export interface Guard {
  readonly owner: OwnerToken
  readonly fence: CommitHook<LocationLeft>
}

export class ContextEpoch extends Context.Tag("@daybook/core/ContextEpoch")<
  ContextEpoch,
  {
    readonly get: (sessionID: SessionID) => Effect.Effect<Epoch | undefined, ContextSnapshotUnreadable | LogUnavailable>
    /**
     * Returns the session's epoch. Renders it from `observed` if there is none (EP-3), or if a compaction followed it
     * (EP-8). Writes nothing. Marks that were just read save a read.
     */
    readonly prepare: (
      sessionID: SessionID,
      observed: Observed,
      marks?: ContextMarks
    ) => Effect.Effect<Epoch, InitializationBlocked | ContextSnapshotUnreadable | LogUnavailable>
    /**
     * Tells the model what changed since a stored epoch, in one event that also holds the change of the snapshot
     * (EP-5). An epoch that was rendered from the same look stays as it is.
     */
    readonly advance: (
      sessionID: SessionID,
      epoch: Epoch,
      observed: Observed,
      guard: Guard
    ) => Effect.Effect<Epoch, LocationLeft | AppendError>
  }
>() {}

const fromStore = ({ baseline, baselineSeq, snapshot }: StoredEpoch): Epoch => ({
  baseline,
  snapshot,
  baselineSeq,
  state: "stored"
})

/** Whether the model is told a change of what it knows: `advance` would store an event. */
export const isTold = (epoch: Epoch, observed: Observed): boolean =>
  epoch.state === "stored" && reconcile(observed, epoch.snapshot)._tag === "Updated"

type Rendered = Pick<Epoch, "baseline" | "snapshot">

const rendered = (fresh: Rendered, baselineSeq: number, before: Rendered | undefined): Effect.Effect<Epoch> => {
  const { baseline, snapshot } = fresh
  const same = before?.baseline === baseline && sameSnapshot(before.snapshot, snapshot)
  const epoch: Epoch = { baseline, snapshot, baselineSeq, state: same ? "same" : "new" }
  return Effect.as(Metric.update(Metrics.contextBaseline, baseline.length), epoch)
}

const make = Effect.gen(function* () {
  const store = yield* EpochStore
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  const load = (sessionID: SessionID, marks?: ContextMarks) =>
    Effect.catchTag(
      store.get(sessionID, marks),
      "EventUnreadable",
      ({ details }) => new ContextSnapshotUnreadable({ sessionID, details })
    )

  return ContextEpoch.of({
    get: Effect.fn("ContextEpoch.get")(function* (sessionID) {
      const stored = yield* load(sessionID)
      return stored && fromStore(stored)
    }),
    prepare: spanned(
      "ContextEpoch.prepare",
      Effect.fnUntraced(function* (sessionID, observed, marks) {
        const stored = yield* load(sessionID, marks)
        if (stored === undefined) {
          const first = initialize(observed)
          if (first._tag === "Blocked") return yield* new InitializationBlocked({ keys: first.keys })
          return yield* rendered(first, yield* log.latest(sessionID), undefined)
        }
        if (stored.compactedSeq <= stored.baselineSeq) return fromStore(stored)
        const fresh = replace(observed, stored.snapshot)
        // Until every source can be read again, the old baseline and the later updates stay (EP-8).
        if (fresh._tag === "Blocked") return fromStore(stored)
        // The new baseline contains every update since the old baseline, so the model is shown no update twice.
        return yield* rendered(fresh, Math.max(stored.compactedSeq, stored.toldSeq), stored)
      })
    ),
    advance: spanned(
      "ContextEpoch.advance",
      Effect.fnUntraced(function* (sessionID, epoch, observed, { fence, owner }) {
        if (epoch.state !== "stored") return epoch
        const change = reconcile(observed, epoch.snapshot)
        if (change._tag === "Unchanged") return epoch
        if (change._tag === "Replaced") return yield* rendered(change, yield* log.latest(sessionID), epoch)
        const { snapshot, text } = change
        const messageID = yield* identifiers.message
        const told = { messageID, text, snapshot: difference(epoch.snapshot, snapshot, text) }
        yield* log.append(sessionID, [draft("session.next.context.updated", told)], { owner, commit: fence })
        yield* Metric.incrementBy(Metrics.contextUpdates, text.length)
        return { ...epoch, snapshot }
      })
    )
  })
})

export const layer = Layer.effect(ContextEpoch, make)

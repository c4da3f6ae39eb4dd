/**
 * Stores a session's context epoch: the baseline (the exact privileged text that the model reads first), and the
 * snapshot that changes are computed from. It is initialised before the first prompt is promoted, advanced in the
 * transaction of the message that tells the change, rendered again after a compaction, and cleared by a move.
 * Spec: specs/context.md CX-14..CX-19 (EP-1, EP-3, EP-5, EP-6, EP-8, EP-9).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Metric, Schema } from "effect"
import { Identifiers, SessionID } from "@daybook/log/domain/Identifiers"
import { draft } from "@daybook/log/events/SessionEvents"
import {
  type AppendError,
  type CommitHook,
  EventLog,
  type LogUnavailable,
  OwnerLost,
  type OwnerToken
} from "@daybook/log/log/EventLog"
import { unavailable } from "@daybook/log/log/EventRow"
import * as SqlHook from "@daybook/log/log/SqlHook"
import { immediately, ReadSql, retryBusy } from "@daybook/log/storage/Database"
import type { LocationLeft } from "@daybook/log/store/SessionChecks"
import * as Metrics from "@daybook/log/support/Metrics"
import { initialize, type Observed, reconcile, replace, Snapshot } from "./SystemContext.ts"

export interface Epoch {
  readonly baseline: string
  readonly snapshot: Snapshot
  /** The baseline contains the System messages up to this sequence number. */
  readonly baselineSeq: number
}

/**
 * Checked in the transaction of every write: this owner still holds the session, and the session is still at this
 * Location.
 */
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
     * (EP-8).
     */
    readonly prepare: (
      sessionID: SessionID,
      observed: Observed,
      guard: Guard
    ) => Effect.Effect<
      Epoch,
      InitializationBlocked | ContextSnapshotUnreadable | LocationLeft | OwnerLost | LogUnavailable
    >
    /** Tells the model what changed, as one message, and stores the snapshot in the same transaction (EP-5). */
    readonly advance: (
      sessionID: SessionID,
      epoch: Epoch,
      observed: Observed,
      guard: Guard
    ) => Effect.Effect<Epoch, LocationLeft | AppendError>
    /** Part of a move's transaction: the destination starts with a new baseline (EP-9). */
    readonly clear: CommitHook
  }
>() {}

const EpochRow = Schema.Struct({
  baseline: Schema.String,
  snapshot: Schema.parseJson(Snapshot),
  baseline_seq: Schema.Int,
  compaction_seq: Schema.NullOr(Schema.Int),
  told_seq: Schema.NullOr(Schema.Int)
})

/** A stored epoch, and where the shown history begins. */
interface Stored {
  readonly epoch: Epoch
  /** Sequence number of the latest completed compaction. */
  readonly compactedSeq: number
  /** Sequence number of the latest System message. */
  readonly toldSeq: number
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  const load = Effect.fnUntraced(function* (sessionID: SessionID) {
    // Both subqueries are one index step.
    const [row] = yield* retryBusy(
      readSql`SELECT baseline, snapshot, baseline_seq,
          (SELECT max(seq) FROM session_message m WHERE m.session_id = e.session_id AND m.type = 'compaction')
            AS compaction_seq,
          (SELECT max(seq) FROM session_message m WHERE m.session_id = e.session_id AND m.type = 'system') AS told_seq
        FROM session_context_epoch e WHERE session_id = ${sessionID}`
    ).pipe(Effect.mapError(unavailable("read")))
    if (row === undefined) return undefined
    const { baseline, baseline_seq, compaction_seq, snapshot, told_seq } = yield* Effect.mapError(
      Schema.decodeUnknown(EpochRow)(row),
      (error) => new ContextSnapshotUnreadable({ sessionID, details: error.message })
    )
    return {
      epoch: { baseline, snapshot, baselineSeq: baseline_seq },
      compactedSeq: compaction_seq ?? -1,
      toldSeq: told_seq ?? -1
    } satisfies Stored
  })

  const store = (sessionID: SessionID, { baseline, baselineSeq, snapshot }: Epoch) =>
    sql`INSERT INTO session_context_epoch (session_id, baseline, snapshot, baseline_seq)
      VALUES (${sessionID}, ${baseline}, ${JSON.stringify(snapshot)}, ${baselineSeq})
      ON CONFLICT (session_id) DO UPDATE SET baseline = excluded.baseline, snapshot = excluded.snapshot,
        baseline_seq = excluded.baseline_seq`

  const notStored = unavailable("store the context")

  /**
   * A baseline is not an event, so its owner is checked here: a replaced owner must not overwrite its successor's
   * baseline.
   */
  const checkOwner = Effect.fnUntraced(function* (sessionID: SessionID, { epoch, ownerID }: OwnerToken) {
    const rows = yield* sql`SELECT 1 FROM event_sequence
      WHERE session_id = ${sessionID} AND owner_id = ${ownerID} AND owner_epoch = ${epoch}`
    if (rows.length === 0) return yield* new OwnerLost({ sessionID, ownerID, epoch })
  })

  const render = Effect.fnUntraced(function* (
    sessionID: SessionID,
    { baseline, snapshot }: Pick<Epoch, "baseline" | "snapshot">,
    baselineSeq: number,
    { fence, owner }: Guard
  ) {
    const epoch: Epoch = { baseline, snapshot, baselineSeq }
    const fenced = SqlHook.runnerOf(fence)(sql, sessionID, [])
    const write = Effect.all([checkOwner(sessionID, owner), fenced, store(sessionID, epoch)], { discard: true })
    yield* Effect.catchTag(retryBusy(immediately(sql)(write)), "SqlError", (error) => notStored(error))
    yield* Metric.update(Metrics.contextBaseline, epoch.baseline.length)
    return epoch
  })

  return ContextEpoch.of({
    get: Effect.fn("ContextEpoch.get")(function* (sessionID) {
      return (yield* load(sessionID))?.epoch
    }),
    prepare: Effect.fn("ContextEpoch.prepare")(function* (sessionID, observed, guard) {
      const stored = yield* load(sessionID)
      if (stored === undefined) {
        const first = initialize(observed)
        if (first._tag === "Blocked") return yield* new InitializationBlocked({ keys: first.keys })
        return yield* render(sessionID, first, yield* log.latest(sessionID), guard)
      }
      if (stored.compactedSeq <= stored.epoch.baselineSeq) return stored.epoch
      const fresh = replace(observed, stored.epoch.snapshot)
      // Until every source can be read again, the old baseline and the later updates stay (EP-8).
      if (fresh._tag === "Blocked") return stored.epoch
      // The fresh baseline contains the updates told in the meantime, so they are no longer shown after it.
      return yield* render(sessionID, fresh, Math.max(stored.compactedSeq, stored.toldSeq), guard)
    }),
    advance: Effect.fn("ContextEpoch.advance")(function* (sessionID, epoch, observed, guard) {
      const change = reconcile(observed, epoch.snapshot)
      if (change._tag === "Unchanged") return epoch
      if (change._tag === "Replaced") {
        return yield* render(sessionID, change, yield* log.latest(sessionID), guard)
      }
      const { fence, owner } = guard
      const next: Epoch = { ...epoch, snapshot: change.snapshot }
      const told = draft("session.next.context.updated", { messageID: yield* identifiers.message, text: change.text })
      const fenced = SqlHook.runnerOf(fence)(sql, sessionID, [])
      const commit = SqlHook.make(() => Effect.zipRight(fenced, store(sessionID, next)))
      yield* log.append(sessionID, [told], { owner, commit })
      yield* Metric.incrementBy(Metrics.contextUpdates, change.text.length)
      return next
    }),
    clear: SqlHook.make((_, sessionID) => sql`DELETE FROM session_context_epoch WHERE session_id = ${sessionID}`)
  })
})

/** Epochs in the database. */
export const layer = Layer.effect(ContextEpoch, make)

/** The first context could not be observed; the prompt is kept and can be retried (TU-6). */
export class InitializationBlocked extends Schema.TaggedError<InitializationBlocked>(
  "@daybook/core/InitializationBlocked"
)("InitializationBlocked", { keys: Schema.Array(Schema.String) }) {
  override get message() {
    return `the system context is not available yet: ${this.keys.join(", ")}; the prompt is kept, try again`
  }
}

/** The session's stored context snapshot does not decode (EP-9). */
export class ContextSnapshotUnreadable extends Schema.TaggedError<ContextSnapshotUnreadable>(
  "@daybook/core/ContextSnapshotUnreadable"
)("ContextSnapshotUnreadable", { sessionID: SessionID, details: Schema.String }) {
  override get message() {
    return `the stored context of ${this.sessionID} cannot be read: ${this.details}`
  }
}

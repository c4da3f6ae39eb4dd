/**
 * The stored context of a session: one baseline, the exact privileged text that the model is shown first, and the
 * snapshot that changes are told from. Initialised before the first prompt becomes visible, advanced in the same
 * transaction as the message that tells the change, cleared by a move. Spec: EX-C1..EX-C5 (EP-1, EP-3, EP-5, EP-9).
 */
import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { draft } from "../events/SessionEvents.ts"
import { Identifiers, type SessionID } from "../Identifiers.ts"
import { EventLog, type AppendError, type LogUnavailable, type OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ContextSnapshotUnreadable, InitializationBlocked } from "../session/RunError.ts"
import { immediately, ReadSql, retryBusy } from "../storage/Database.ts"
import type { Fence, LocationLeft } from "./LocationFence.ts"
import { initialize, reconcile, Snapshot, type Initialized, type Observed } from "./SystemContext.ts"

export interface Epoch {
  readonly baseline: string
  readonly snapshot: Snapshot
  /** The session's latest seq when the baseline was rendered: System messages up to it are contained in it. */
  readonly baselineSeq: number
}

export class ContextEpoch extends Context.Tag("@daybook/core/ContextEpoch")<
  ContextEpoch,
  {
    readonly get: (sessionID: SessionID) => Effect.Effect<Epoch | undefined, ContextSnapshotUnreadable | LogUnavailable>
    /** The session's epoch, made from this observation if it has none (EP-3). */
    readonly prepare: (
      sessionID: SessionID,
      observed: Observed,
      fence: Fence
    ) => Effect.Effect<Epoch, InitializationBlocked | ContextSnapshotUnreadable | LocationLeft | LogUnavailable>
    /** Tells the model what changed since, as one message, with the snapshot in its transaction (EP-5). */
    readonly advance: (
      sessionID: SessionID,
      epoch: Epoch,
      observed: Observed,
      options: { readonly owner: OwnerToken; readonly fence: Fence }
    ) => Effect.Effect<Epoch, LocationLeft | AppendError>
    /** Part of a move's transaction: the destination starts from a baseline of its own (EP-9). */
    readonly clear: (sessionID: SessionID) => Effect.Effect<void, SqlError.SqlError>
  }
>() {}

const EpochRow = Schema.Struct({
  baseline: Schema.String,
  snapshot: Schema.parseJson(Snapshot),
  baseline_seq: Schema.Int
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  const get = Effect.fn("ContextEpoch.get")(function* (sessionID: SessionID) {
    const [row] = yield* retryBusy(
      readSql`SELECT baseline, snapshot, baseline_seq FROM session_context_epoch WHERE session_id = ${sessionID}`
    ).pipe(Effect.mapError(unavailable("read")))
    if (row === undefined) return undefined
    const { baseline, baseline_seq, snapshot } = yield* Effect.mapError(
      Schema.decodeUnknown(EpochRow)(row),
      (error) => new ContextSnapshotUnreadable({ sessionID, details: error.message })
    )
    return { baseline, snapshot, baselineSeq: baseline_seq } satisfies Epoch
  })

  const store = (sessionID: SessionID, { baseline, baselineSeq, snapshot }: Epoch) =>
    sql`INSERT INTO session_context_epoch (session_id, baseline, snapshot, baseline_seq)
      VALUES (${sessionID}, ${baseline}, ${JSON.stringify(snapshot)}, ${baselineSeq})
      ON CONFLICT (session_id) DO UPDATE SET baseline = excluded.baseline, snapshot = excluded.snapshot,
        baseline_seq = excluded.baseline_seq`

  const notStored = unavailable("store the context")

  const render = Effect.fnUntraced(function* (
    sessionID: SessionID,
    { baseline, snapshot }: Extract<Initialized, { readonly _tag: "Ready" }>,
    fence: Fence
  ) {
    const epoch: Epoch = { baseline, snapshot, baselineSeq: yield* log.latest(sessionID) }
    const write = Effect.zipRight(fence(sessionID), store(sessionID, epoch))
    yield* Effect.catchTag(retryBusy(immediately(sql)(write)), "SqlError", (error) => notStored(error))
    return epoch
  })

  return ContextEpoch.of({
    get,
    prepare: Effect.fn("ContextEpoch.prepare")(function* (sessionID, observed, fence) {
      const stored = yield* get(sessionID)
      if (stored !== undefined) return stored
      const first = initialize(observed)
      if (first._tag === "Blocked") return yield* new InitializationBlocked({ keys: first.keys })
      return yield* render(sessionID, first, fence)
    }),
    advance: Effect.fn("ContextEpoch.advance")(function* (sessionID, epoch, observed, { fence, owner }) {
      const change = reconcile(observed, epoch.snapshot)
      if (change._tag === "Unchanged") return epoch
      if (change._tag === "Replace") {
        const fresh = initialize(observed)
        // Until everything can be seen again, what was shown stays as it is (EP-8).
        return fresh._tag === "Blocked" ? epoch : yield* render(sessionID, fresh, fence)
      }
      const next: Epoch = { ...epoch, snapshot: change.snapshot }
      const told = draft("session.next.context.updated", { messageID: yield* identifiers.message, text: change.text })
      const commit = () => Effect.zipRight(fence(sessionID), store(sessionID, next))
      const stored = log.append(sessionID, [told], { owner, commit })
      yield* Effect.catchTag(stored, "SqlError", (error) => notStored(error))
      return next
    }),
    clear: (sessionID) => Effect.asVoid(sql`DELETE FROM session_context_epoch WHERE session_id = ${sessionID}`)
  })
})

/** Epochs in the database. */
export const layer = Layer.effect(ContextEpoch, make)

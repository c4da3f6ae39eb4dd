/**
 * Reads a session's context epoch from its events: the frame that introduced the baseline, and the context updates since
 * then. The session's row says where they are. Contract: `EpochStore.ts`.
 */
import { Effect, Either, Layer } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { advance } from "../domain/Snapshot.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { EpochStore, type StoredEpoch } from "./EpochStore.ts"
import { selectBySeq } from "./EventsBySeq.ts"
import { reading, readingTogether } from "./Reading.ts"

type Row = {
  readonly epoch: number | null
  readonly baseline_seq: number | null
  readonly compacted_seq: number | null
  readonly told_seq: number | null
  readonly incarnation: number | null
}

type Context = Pick<StoredEpoch, "baseline" | "snapshot">

/** Applies one event; undefined if it introduces no baseline and none came before. */
const apply = (before: Context | undefined, event: SessionEvent): Context | undefined => {
  if (event.type === "session.next.request.framed" && event.data.context !== undefined) {
    const { context, system = [] } = event.data
    const baseline = typeof context.baseline === "string" ? context.baseline : system[context.baseline]
    return baseline === undefined ? undefined : { baseline, snapshot: advance({}, context.snapshot, baseline) }
  }
  if (event.type !== "session.next.context.updated" || event.data.snapshot === undefined) return before
  return before && { ...before, snapshot: advance(before.snapshot, event.data.snapshot, event.data.text) }
}

/** Sessions whose epoch is kept decoded. */
const keptSessions = 64

type Kept = { readonly row: Row; readonly context: Context }

/** Whether a row still describes the kept epoch: no new baseline, no update since, and the same life of the session. */
const isSame = (kept: Row, row: Row): boolean =>
  kept.incarnation === row.incarnation && kept.epoch === row.epoch && kept.told_seq === row.told_seq

const stored = ({ baseline_seq, compacted_seq, told_seq }: Row, context: Context): StoredEpoch => ({
  ...context,
  baselineSeq: baseline_seq ?? -1,
  compactedSeq: compacted_seq ?? -1,
  toldSeq: told_seq ?? -1
})

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const kept = new Map<SessionID, Kept>()

  const keep = (sessionID: SessionID, one: Kept) => {
    kept.delete(sessionID)
    kept.set(sessionID, one)
    const [oldest] = kept.keys()
    if (kept.size > keptSessions && oldest !== undefined) kept.delete(oldest)
  }

  const selectRow = (sessionID: SessionID) =>
    // All subqueries are one index step.
    Effect.map(
      sql<Row>`SELECT epoch, baseline_seq,
        (SELECT max(seq) FROM session_message m WHERE m.session = q.session AND m.type = 'compaction') AS compacted_seq,
        (SELECT max(seq) FROM session_message m WHERE m.session = q.session AND m.type = 'system') AS told_seq,
        q.incarnation FROM session s JOIN event_sequence q ON q.session_id = s.id WHERE s.id = ${sessionID}`,
      ([row]) => row
    )

  const read = Effect.fnUntraced(function* (sessionID: SessionID) {
    const row = yield* selectRow(sessionID)
    if (row === undefined || row.epoch === null) return undefined
    const told = yield* sql<{ readonly seq: number }>`SELECT seq FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'system' AND seq > ${row.epoch} ORDER BY seq`
    const seqs = [row.epoch, ...told.map(({ seq }) => seq)]
    const found = yield* selectBySeq(sql, sessionID, seqs)
    const events = yield* Either.all(seqs.flatMap((seq) => found.get(seq) ?? []))
    return { row, epoch: row.epoch, events }
  })

  return EpochStore.of({
    get: Effect.fn("EpochStore.get")(function* (sessionID) {
      const before = kept.get(sessionID)
      if (before !== undefined) {
        const row = yield* reading(selectRow(sessionID))
        if (row !== undefined && isSame(before.row, row)) return stored(row, before.context)
        kept.delete(sessionID)
      }
      const found = yield* readingTogether(sql)(read(sessionID))
      // The event may have been pruned.
      if (found === undefined || found.events[0]?.seq !== found.epoch) return undefined
      const { epoch, events, row } = found
      const context = events.reduce<Context | undefined>(apply, undefined)
      if (context === undefined) {
        const type = "session.next.request.framed"
        return yield* new EventUnreadable({ sessionID, seq: epoch, type, details: "it introduces no baseline" })
      }
      keep(sessionID, { row, context })
      return stored(row, context)
    })
  })
})

/** Epochs in the database. */
export const layer = Layer.effect(EpochStore, make)

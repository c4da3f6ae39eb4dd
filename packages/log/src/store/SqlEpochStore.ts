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
import { type ContextMarks, marksColumns, marksOf, type MarksRow } from "./ContextRows.ts"
import { EpochStore, type StoredEpoch } from "./EpochStore.ts"
import { selectBySeq } from "./Content.ts"
import { reading, readingTogether } from "./Reading.ts"
import { spanned } from "../support/Spans.ts"
import { putNewest } from "../support/Newest.ts"

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

type CachedEpoch = { readonly marks: ContextMarks; readonly context: Context }

/** Whether marks still describe the kept epoch: no new baseline, no update since, and the same life of the session. */
const isSame = (kept: ContextMarks, now: ContextMarks): boolean =>
  kept.incarnation === now.incarnation && kept.epoch === now.epoch && kept.toldSeq === now.toldSeq

const stored = ({ baselineSeq, compactedSeq, toldSeq }: ContextMarks, context: Context): StoredEpoch => ({
  ...context,
  baselineSeq,
  compactedSeq,
  toldSeq
})

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const kept = new Map<SessionID, CachedEpoch>()

  const keep = (sessionID: SessionID, one: CachedEpoch) => putNewest(kept, sessionID, one, keptSessions)

  const selectMarks = (sessionID: SessionID) =>
    Effect.map(
      sql<MarksRow>`SELECT ${marksColumns(sql, sessionID)}
        FROM session s JOIN event_sequence q ON q.session_id = s.id WHERE s.id = ${sessionID}`,
      ([row]) => row && marksOf(row)
    )

  const read = Effect.fnUntraced(function* (sessionID: SessionID) {
    const marks = yield* selectMarks(sessionID)
    if (marks === undefined || marks.epoch === null) return undefined
    const told = yield* sql<{ readonly seq: number }>`SELECT seq FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'system' AND seq > ${marks.epoch} ORDER BY seq`
    const seqs = [marks.epoch, ...told.map(({ seq }) => seq)]
    const found = yield* selectBySeq(sql, sessionID, seqs)
    const events = yield* Either.all(seqs.flatMap((seq) => found.get(seq) ?? []))
    return { marks, epoch: marks.epoch, events }
  })

  return EpochStore.of({
    get: spanned(
      "EpochStore.get",
      Effect.fnUntraced(function* (sessionID, seen) {
        const before = kept.get(sessionID)
        if (before !== undefined) {
          const marks = seen ?? (yield* reading(selectMarks(sessionID)))
          if (marks !== undefined && isSame(before.marks, marks)) return stored(marks, before.context)
          kept.delete(sessionID)
        }
        const found = yield* readingTogether(sql)(read(sessionID))
        // The event may have been pruned.
        if (found === undefined || found.events[0]?.seq !== found.epoch) return undefined
        const { epoch, events, marks } = found
        const context = events.reduce<Context | undefined>(apply, undefined)
        if (context === undefined) {
          const type = "session.next.request.framed"
          return yield* new EventUnreadable({ sessionID, seq: epoch, type, details: "it introduces no baseline" })
        }
        keep(sessionID, { marks, context })
        return stored(marks, context)
      })
    )
  })
})

/** Epochs in the database. */
export const layer = Layer.effect(EpochStore, make)

/**
 * Reads the events that projected rows refer to, in one statement however many, and those that retention removed from
 * their blocks (`Content.ts`). Spec: PJ-15, ST-34.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import { ofSession, selectEvents, toEvent } from "../log/EventRow.ts"
import { makeBlocks, selectContent } from "./Content.ts"

/** Events of one session by sequence number. Events that are missing, or of an unknown type, are absent. */
export type EventsBySeq = ReadonlyMap<number, Either.Either<SessionEvent, EventUnreadable>>

/** Reads these events of a session, each by its key. */
export const selectBySeq = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  seqs: Iterable<number>,
  blocks = makeBlocks(sql, sessionID)
): Effect.Effect<EventsBySeq, SqlError.SqlError> => {
  const wanted = [...new Set(seqs)]
  if (wanted.length === 0) return Effect.succeed(new Map())
  // One text for any number of keys, so that the driver prepares it once.
  return Effect.flatMap(
    selectEvents(
      sql,
      sql`WHERE ${ofSession(sql, sessionID)} AND e.seq IN (SELECT value FROM json_each(${JSON.stringify(wanted)}))`
    ),
    (rows) => {
      const events = new Map<number, Either.Either<SessionEvent, EventUnreadable>>()
      const add = (row: Readonly<Record<string, unknown>>) => {
        const event = toEvent(row)
        if (Option.isSome(event)) events.set(Number(row["seq"]), event.value)
      }
      rows.forEach(add)
      if (rows.length === wanted.length) return Effect.succeed(events)
      const stored = new Set(rows.map((row) => row["seq"]))
      const missing = wanted.filter((seq) => !stored.has(seq))
      return Effect.map(selectContent(blocks, missing), (kept) => {
        for (const [seq, found] of kept) {
          if (Either.isRight(found)) add(found.right)
          else
            events.set(seq, Either.left(new EventUnreadable({ sessionID, seq, type: "unknown", details: found.left })))
        }
        return events
      })
    }
  )
}

/** Reads the events that projected rows refer to, in one statement however many. Spec: PJ-15. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, type Either, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { EventUnreadable } from "../log/EventLog.ts"
import { toEvent } from "../log/EventRow.ts"

/** Events of one session by sequence number. Events that are missing, or of an unknown type, are absent. */
export type EventsBySeq = ReadonlyMap<number, Either.Either<SessionEvent, EventUnreadable>>

/** Reads these events of a session, each by its key. */
export const selectEvents = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  seqs: Iterable<number>
): Effect.Effect<EventsBySeq, SqlError.SqlError> => {
  const wanted = [...new Set(seqs)]
  if (wanted.length === 0) return Effect.succeed(new Map())
  // One text for any number of keys, so that the driver prepares it once.
  return Effect.map(
    sql<Record<string, unknown>>`SELECT position, id, session_id, seq, type, created, data, checksum FROM event
      WHERE session_id = ${sessionID} AND seq IN (SELECT value FROM json_each(${JSON.stringify(wanted)}))`,
    (rows) => {
      const events = new Map<number, Either.Either<SessionEvent, EventUnreadable>>()
      for (const row of rows) {
        const event = toEvent(row)
        if (Option.isSome(event)) events.set(Number(row["seq"]), event.value)
      }
      return events
    }
  )
}

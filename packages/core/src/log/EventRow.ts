/** The `event` table's rows: their schema, the pages that readers ask for, and the way to events and back. */
import { crc32 } from "node:zlib"
import type { SqlClient, SqlError } from "@effect/sql"
import { Either, Option, ParseResult, Schema } from "effect"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventID, SessionID } from "../Identifiers.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { EventUnreadable, LogUnavailable } from "./EventLog.ts"

export const EventRow = Schema.Struct({
  position: Schema.Number,
  id: EventID,
  session_id: SessionID,
  seq: Schema.Number,
  type: Schema.String,
  created: Schema.Number,
  data: Schema.String
})
export type EventRow = typeof EventRow.Type

const decodeRow = ParseResult.decodeUnknownEither(EventRow)

/** Rows in one page: what a reader holds in memory, whatever the length of the log. */
export const pageSize = 512

/** The columns that an insert writes. Readers leave `checksum` where it is: `verify` and `rebuild` look at it. */
export const columns = ["position", "id", "session_id", "seq", "type", "created", "data", "checksum"] as const

/** CRC-32 over all of a row but its position, so that a flipped bit is found even where it makes another valid event. */
export const checksumOf = (row: {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}): number => crc32(row.data, crc32(`${row.id} ${row.session_id} ${row.seq} ${row.type} ${row.created}`))

/** One page of a session's rows after a cursor, with their checksums. */
export const selectCheckedPage = (sql: SqlClient.SqlClient, sessionID: string, after: number, limit: number) =>
  sql<Record<string, unknown>>`SELECT position, id, session_id, seq, type, created, data, checksum FROM event
    WHERE session_id = ${sessionID} AND seq > ${after} ORDER BY seq LIMIT ${limit}`

/** The event of a row whose checksum is compared as well. */
export const toCheckedEvent = (
  raw: Record<string, unknown>
): Option.Option<Either.Either<SessionEvent, EventUnreadable>> => {
  const row = decodeRow(raw)
  return Either.isRight(row) && checksumOf(row.right) !== raw["checksum"]
    ? Option.some(Either.left(unreadable(raw, "its checksum differs: the row was changed after it was written")))
    : toEvent(raw)
}

/** One page of a session's rows after a cursor. */
export const selectPage = (sql: SqlClient.SqlClient, sessionID: string, after: number, limit: number) =>
  sql<Record<string, unknown>>`SELECT position, id, session_id, seq, type, created, data FROM event
    WHERE session_id = ${sessionID} AND seq > ${after} ORDER BY seq LIMIT ${limit}`

/** One page of all sessions' rows after a position. */
export const selectFeedPage = (sql: SqlClient.SqlClient, after: number, limit: number) =>
  sql<Record<string, unknown>>`SELECT position, id, session_id, seq, type, created, data FROM event
    WHERE position > ${after} ORDER BY position LIMIT ${limit}`

const unreadable = (row: Record<string, unknown>, details: string) =>
  new EventUnreadable({
    sessionID: String(row["session_id"]),
    seq: typeof row["seq"] === "number" ? row["seq"] : -1,
    type: String(row["type"]),
    details
  })

const parseJson = (text: string): Either.Either<unknown, string> =>
  Either.try({ try: () => JSON.parse(text), catch: (cause) => (cause instanceof Error ? cause.message : "bad JSON") })

/** The event of a row: none for a type this build does not know, an error for a known one that does not decode. */
export const toEvent = (raw: Record<string, unknown>): Option.Option<Either.Either<SessionEvent, EventUnreadable>> => {
  const row = decodeRow(raw)
  if (Either.isLeft(row)) {
    return Option.some(Either.left(unreadable(raw, ParseResult.TreeFormatter.formatIssueSync(row.left))))
  }
  const { created, data, id, position, seq, session_id, type } = row.right
  if (!Registry.isKnown(type)) return Option.none()
  const parsed = parseJson(data)
  if (Either.isLeft(parsed)) return Option.some(Either.left(unreadable(raw, parsed.left)))
  return Option.map(
    Registry.decode(type, parsed.right),
    Either.mapBoth({
      onLeft: (error) => unreadable(raw, error.message),
      // The registry pairs each type with its own payload, which the compiler cannot see through the lookup.
      onRight: (decoded) => ({ position, seq, id, sessionID: session_id, created, ...decoded }) as SessionEvent
    })
  )
}

/** Events of a page, unknown types left out; the first unreadable one fails it. */
export const toEvents = (
  rows: ReadonlyArray<Record<string, unknown>>
): Either.Either<ReadonlyArray<SessionEvent>, EventUnreadable> => {
  const events: Array<SessionEvent> = []
  for (const row of rows) {
    const event = toEvent(row)
    if (Option.isNone(event)) continue
    if (Either.isLeft(event.value)) return Either.left(event.value.left)
    events.push(event.value.right)
  }
  return Either.right(events)
}

/** The log's own error for a driver's. */
export const unavailable =
  (operation: string) =>
  (error: SqlError.SqlError): LogUnavailable => {
    const reason = reasonOf(error)
    return new LogUnavailable({ operation, reason: reason === "constraint" ? "unknown" : reason, cause: error.cause })
  }

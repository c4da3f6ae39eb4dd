/** The `event` table's rows: their schema, the pages that readers ask for, and the way to events and back. */
import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Effect, Either, Option, Schema } from "effect"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventID, SessionID } from "../Identifiers.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { checksumOf } from "./Checksum.ts"
import { EventUnreadable, LogUnavailable } from "./EventLog.ts"

export interface EventRow {
  readonly position: number
  readonly id: EventID
  readonly session_id: SessionID
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

const isEventID = Schema.is(EventID)
const isSessionID = Schema.is(SessionID)

/** The session that was checked last: the rows of a page are of one, or of a few. */
let knownSession: unknown

const isKnownSession = (id: unknown): boolean => {
  if (id === knownSession) return true
  if (!isSessionID(id)) return false
  knownSession = id
  return true
}

/** Spelled out: the table is STRICT, and decoding the envelope by a schema would cost more than reading the row. */
const isRow = (raw: Raw): raw is Raw & EventRow =>
  typeof raw["id"] === "string" &&
  isKnownSession(raw["session_id"]) &&
  typeof raw["position"] === "number" &&
  typeof raw["seq"] === "number" &&
  typeof raw["type"] === "string" &&
  typeof raw["created"] === "number" &&
  typeof raw["data"] === "string" &&
  isEventID(raw["id"])

/** Rows in one page: what a reader holds in memory, whatever the length of the log. */
export const pageSize = 512
/** A payload longer than this is a page of its own, so that a page is 32 MiB at the most, or one event. */
const longPayload = 64 * 1024

/** The columns that an insert writes. */
export const columns = ["position", "id", "session_id", "seq", "type", "created", "data", "checksum"] as const

type Raw = Readonly<Record<string, unknown>>

/** Rows as arrays from the driver, named here: that takes half as long as objects from the driver. */
const rowsOf = (statement: Statement.Statement<unknown>, name: (row: ReadonlyArray<unknown>) => Raw) =>
  Effect.map(statement.values, (rows): ReadonlyArray<Raw> => rows.map(name))

/** A page is read without its long payloads (their length is in the row's head) and ends before the first of them. */
const payload = (sql: SqlClient.SqlClient, limit: number) =>
  limit === 1 ? sql`data` : sql`CASE WHEN octet_length(data) <= ${longPayload} THEN data END`

/** The rows of a page that hold their payload, after the first `from`, which need none; and how many were wanted. */
export const beforeLong = (rows: ReadonlyArray<Raw>, limit: number, from = 0) => {
  const long = rows.findIndex((row, index) => index >= from && row["data"] === null)
  return long < 0 ? { rows, limit } : { rows: rows.slice(0, long), limit: long }
}

/** One page of a session's rows after a cursor, with their checksums; a long one comes alone. */
export const selectCheckedPage = (
  sql: SqlClient.SqlClient,
  sessionID: string,
  after: number,
  most: number = pageSize
): Effect.Effect<ReadonlyArray<Raw>, SqlError.SqlError> =>
  Effect.flatMap(
    sql<Raw>`SELECT position, id, session_id, seq, type, created, ${payload(sql, most)} AS data, checksum FROM event
      WHERE session_id = ${sessionID} AND seq > ${after} ORDER BY seq LIMIT ${most}`,
    (found) => {
      const { limit, rows } = beforeLong(found, most)
      return limit === 0 ? selectCheckedPage(sql, sessionID, after, 1) : Effect.succeed(rows)
    }
  )

/**
 * One page of a session's rows after a cursor; long payloads are null unless it is a page of one. The first row has the
 * session's head and incarnation, of the same snapshot, in one text: each further column costs every row its share.
 */
export const selectPage = (sql: SqlClient.SqlClient, sessionID: string, after: number, limit: number) =>
  rowsOf(
    sql`SELECT position, id, seq, type, created, ${payload(sql, limit)}, checksum,
        iif(seq = ${after + 1}, (SELECT seq || ' ' || coalesce(incarnation, 0) FROM event_sequence
          WHERE session_id = ${sessionID}), NULL) FROM event
      WHERE session_id = ${sessionID} AND seq > ${after} ORDER BY seq LIMIT ${limit}`,
    ([position, id, seq, type, created, data, checksum, head]) => ({
      position,
      id,
      session_id: sessionID,
      seq,
      type,
      created,
      data,
      checksum,
      head
    })
  )

/** One page of all sessions' rows after a position. */
export const selectFeedPage = (sql: SqlClient.SqlClient, after: number, limit: number) =>
  rowsOf(
    sql`SELECT position, id, session_id, seq, type, created, ${payload(sql, limit)}, checksum FROM event
      WHERE position > ${after} ORDER BY position LIMIT ${limit}`,
    ([position, id, session_id, seq, type, created, data, checksum]) => ({
      position,
      id,
      session_id,
      seq,
      type,
      created,
      data,
      checksum
    })
  )

const unreadable = (row: Raw, details: string) =>
  new EventUnreadable({
    sessionID: String(row["session_id"]),
    seq: typeof row["seq"] === "number" ? row["seq"] : -1,
    ...(typeof row["position"] === "number" ? { position: row["position"] } : {}),
    type: String(row["type"]),
    details
  })

const parseJson = (text: string): Either.Either<unknown, string> =>
  Either.try({ try: () => JSON.parse(text), catch: (cause) => (cause instanceof Error ? cause.message : "bad JSON") })

/** The event of a row as it stands, its checksum not looked at: what decoding costs without it. */
export const decodeRow = (raw: Raw & EventRow): Option.Option<Either.Either<SessionEvent, EventUnreadable>> => {
  const { created, data, id, position, seq, session_id, type } = raw
  if (!Registry.isKnown(type)) return Option.none()
  const parsed = parseJson(data)
  if (Either.isLeft(parsed)) return Option.some(Either.left(unreadable(raw, parsed.left)))
  return Option.map(Registry.decode(type, parsed.right), (decoded) => {
    if (Either.isLeft(decoded)) return Either.left(unreadable(raw, decoded.left.message))
    const { data, type, version } = decoded.right
    // The registry pairs each type with its own payload, which the compiler cannot see through the lookup.
    return Either.right({ position, seq, id, sessionID: session_id, version, created, type, data } as SessionEvent)
  })
}

/**
 * The event of a row: none for a type this build does not know, an error for a row that was changed after it was written
 * and for a known type that does not decode.
 */
export const toEvent = (raw: Raw): Option.Option<Either.Either<SessionEvent, EventUnreadable>> =>
  !isRow(raw)
    ? Option.some(Either.left(unreadable(raw, "its id, or its session's, is none of ours")))
    : checksumOf(raw) !== raw["checksum"]
      ? Option.some(Either.left(unreadable(raw, "its checksum differs: the row was changed after it was written")))
      : decodeRow(raw)

/** What a page's rows give: their events, unknown types left out, up to the first row that cannot be read. */
export interface Decoded {
  readonly events: ReadonlyArray<SessionEvent>
  /** Rows before the one that cannot be read; all of them where there is none. */
  readonly rows: number
  readonly stopped: EventUnreadable | undefined
}

/** Decodes a page's rows. */
export const toEvents = (rows: ReadonlyArray<Raw>): Decoded => {
  const events: Array<SessionEvent> = []
  for (let index = 0; index < rows.length; index++) {
    const event = toEvent(rows[index] ?? {})
    if (Option.isNone(event)) continue
    if (Either.isLeft(event.value)) return { events, rows: index, stopped: event.value.left }
    events.push(event.value.right)
  }
  return { events, rows: rows.length, stopped: undefined }
}

/** The log's own error for a driver's. */
export const unavailable =
  (operation: string) =>
  (error: SqlError.SqlError): LogUnavailable => {
    const reason = reasonOf(error)
    return new LogUnavailable({ operation, reason: reason === "constraint" ? "unknown" : reason, cause: error.cause })
  }

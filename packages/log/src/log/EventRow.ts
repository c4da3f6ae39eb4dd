/** Owns the `event` table's rows: their columns, page queries, and conversion to events. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Either, Option, ParseResult, Schema } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import { compile } from "../events/Conforms.ts"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { insertRows } from "../projection/SqlTables.ts"
import type { Statements } from "../storage/Connection.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { checksumOf } from "./Checksum.ts"
import { EventUnreadable, LogUnavailable } from "./EventLog.ts"
import * as EventIds from "./EventIds.ts"
import type { EventTypes } from "./EventTypes.ts"

export interface EventRow {
  readonly position: number
  readonly id: EventID
  readonly session_id: SessionID
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

const isEventID = compile(EventID.ast)
const isSessionID = compile(SessionID.ast)

/** The last valid session id: the rows of a page belong to one session or a few. */
let knownSession: unknown

const isKnownSession = (id: unknown): boolean => {
  if (id === knownSession) return true
  if (!isSessionID(id)) return false
  knownSession = id
  return true
}

/** Checked by hand: the table is STRICT, and decoding with a schema costs more than reading the row. */
const isRow = (raw: Raw): raw is Raw & EventRow =>
  typeof raw["id"] === "string" &&
  isKnownSession(raw["session_id"]) &&
  typeof raw["position"] === "number" &&
  typeof raw["seq"] === "number" &&
  typeof raw["type"] === "string" &&
  typeof raw["created"] === "number" &&
  typeof raw["data"] === "string" &&
  isEventID(raw["id"])

/** Rows per page: bounds a reader's memory, whatever the length of the log. */
export const pageSize = 512
/** A longer payload is a page of its own, so a page holds at most 32 MiB or one event. */
const longPayload = 64 * 1024

/** The columns that an insert writes. */
const columns = ["position", "session", "seq", "type", "created", "checksum", "id", "data"] as const

/** An event to insert. Its row holds numbers in place of its session and its stored name. */
export interface NewEvent {
  readonly position: number
  /** The number of the session. */
  readonly session: number
  readonly seq: number
  /** The stored name. */
  readonly type: string
  readonly created: number
  readonly checksum: number
  /** Null if the position gives the event its id. */
  readonly id: string | null
  readonly data: string
}

/** Inserts the events, and the names that are new to this database. */
export const insertEvents = (statements: Statements, types: EventTypes, events: ReadonlyArray<NewEvent>): void => {
  insertRows(
    statements,
    "event",
    columns,
    events.map((event) => ({ ...event, type: types.of(statements, event.type) }))
  )
}

/** The events `e` with the texts behind their numbers. `toEvent` reports a type without a name. */
const joined = "event e LEFT JOIN event_sequence s ON s.session = e.session LEFT JOIN event_type t ON t.type = e.type"

/** The columns that `toEvent` reads. */
const readable = (data: string) =>
  `e.position, ${EventIds.idColumn}, s.session_id, e.seq, t.name AS type, e.created, ${data}, e.checksum`

/** Selects whole rows for `toEvent`. `rest` follows the joined tables `e`, `s` (its session) and `t` (its type). */
export const selectEvents = (
  sql: SqlClient.SqlClient,
  rest: Statement.Fragment
): Effect.Effect<ReadonlyArray<Raw>, SqlError.SqlError> =>
  sql<Raw>`SELECT ${sql.literal(readable("e.data"))} FROM ${sql.literal(joined)} ${rest}`

/** Selects the rows of a table `i` with the events that they refer to, which `toEvent` reads. Without an event, `data` is null. */
export const selectWithEvents = <Row extends object>(
  sql: SqlClient.SqlClient,
  columns: string,
  from: Statement.Fragment,
  rest: Statement.Fragment
): Effect.Effect<ReadonlyArray<Row & Raw>, SqlError.SqlError> =>
  sql<Row & Raw>`SELECT ${sql.literal(columns)}, ${sql.literal(readable("e.data"))} FROM ${from}
    LEFT JOIN event_sequence s ON s.session = e.session LEFT JOIN event_type t ON t.type = e.type ${rest}`

/** The number of the session with an id, in a statement. */
export const sessionKey = (sql: SqlClient.SqlClient, sessionID: string): Statement.Fragment =>
  sql`(SELECT session FROM event_sequence WHERE session_id = ${sessionID})`

/** The events of the session with an id, in a statement on `e`. */
export const ofSession = (sql: SqlClient.SqlClient, sessionID: string): Statement.Fragment =>
  sql`e.session = ${sessionKey(sql, sessionID)}`

type Raw = Readonly<Record<string, unknown>>

/** A page is read without long payloads (the row's header holds their length) and ends before the first one. */
const payload = (limit: number) =>
  limit === 1 ? "e.data" : `CASE WHEN octet_length(e.data) <= ${longPayload} THEN e.data END AS data`

/**
 * Truncates the rows at the first missing payload; the first `from` rows need none. Also returns the effective limit.
 */
export const beforeLong = (rows: ReadonlyArray<Raw>, limit: number, from = 0) => {
  const long = rows.findIndex((row, index) => index >= from && row["data"] === null)
  return long < 0 ? { rows, limit } : { rows: rows.slice(0, long), limit: long }
}

/** Selects one page of a session's rows after a cursor, with their checksums. A long payload comes alone. */
export const selectCheckedPage = (
  sql: SqlClient.SqlClient,
  sessionID: string,
  after: number,
  most: number = pageSize
): Effect.Effect<ReadonlyArray<Raw>, SqlError.SqlError> =>
  Effect.flatMap(
    sql<Raw>`SELECT ${sql.literal(readable(payload(most)))} FROM ${sql.literal(joined)}
      WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} ORDER BY e.seq LIMIT ${most}`,
    (found) => {
      const { limit, rows } = beforeLong(found, most)
      return limit === 0 ? selectCheckedPage(sql, sessionID, after, 1) : Effect.succeed(rows)
    }
  )

/** What the rows of a page have in common. The page's first row holds it: every further column slows every row. */
const common = (floor: string): string =>
  `(SELECT json_array(seq, coalesce(incarnation, 0), (SELECT identity FROM log_identity WHERE one = 1),
    (SELECT json_group_object(type, name) FROM event_type), ${floor}) FROM event_sequence WHERE session = e.session)`

const Common = Schema.parseJson(
  Schema.Tuple(
    Schema.Number,
    Schema.Number,
    Schema.String,
    Schema.Record({ key: Schema.String, value: Schema.String }),
    Schema.NullOr(Schema.Number)
  )
)

/** The columns of a page: numbers where `common` or the caller has the text. */
const paged = (limit: number) => `e.position, e.seq, e.type, e.created, e.checksum, e.id, ${payload(limit)}`

/** A page's rows, and the session's head and incarnation in the same snapshot, if the first row follows the cursor. */
export interface RawPage {
  readonly rows: ReadonlyArray<Raw>
  readonly latest: number
  readonly incarnation: number
  /** Pages of the feed: its floor, the greatest position of an event that pruning removed; 0 if there is none. */
  readonly floor: number
}

/** Gives rows their ids and the names of their types. Each ends with its session's id and what the page has in common. */
const named = (found: ReadonlyArray<ReadonlyArray<unknown>>, sessionID?: string): RawPage => {
  const [latest, incarnation, identity, names, floor] = Option.getOrElse(
    Schema.decodeUnknownOption(Common)(found[0]?.[8]),
    () => [0, 0, "", {}, null] as typeof Common.Type
  )
  const idAt = EventIds.make(identity)
  // By index: destructuring an array goes through its iterator, which costs as much as the row's object.
  const rows = found.map((row): Raw => {
    const [position, created] = [row[0], row[3]]
    const derived = typeof created === "number" && typeof position === "number" ? idAt(created, position) : undefined
    return {
      position,
      id: row[5] ?? derived,
      session_id: sessionID ?? row[7],
      seq: row[1],
      type: names[String(row[2])],
      created,
      data: row[6],
      checksum: row[4]
    }
  })
  return { rows, latest, incarnation, floor: floor ?? 0 }
}

/**
 * Selects one page of a session's rows after a cursor. Long payloads are null unless the limit is 1. Arrays take
 * half the time of the driver's objects.
 */
export const selectPage = (sql: SqlClient.SqlClient, sessionID: string, after: number, limit: number) =>
  Effect.map(
    sql`SELECT ${sql.literal(paged(limit))}, NULL,
        iif(e.seq = ${after + 1}, ${sql.literal(common("NULL"))}, NULL) FROM event e
      WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} ORDER BY e.seq LIMIT ${limit}`.values,
    (rows) => named(rows, sessionID)
  )

/** The sessions whose removal is not finished: no reader sees their events. */
const removing = "(SELECT session FROM event_sequence WHERE session_id IS NULL)"

/** The feed's floor, by key. */
const feedFloor = "(SELECT max(position) FROM session_floor WHERE position > 0)"

/** Selects one page of all sessions' rows after a position, and the floor in the same snapshot. */
export const selectFeedPage = (sql: SqlClient.SqlClient, after: number, limit: number) =>
  Effect.flatMap(
    sql`SELECT ${sql.literal(paged(limit))}, s.session_id,
        iif(e.position = (SELECT min(position) FROM event
            WHERE position > ${after} AND session NOT IN ${sql.literal(removing)}),
          ${sql.literal(common(feedFloor))}, NULL)
      FROM event e LEFT JOIN event_sequence s ON s.session = e.session
      WHERE e.position > ${after} AND e.session NOT IN ${sql.literal(removing)}
      ORDER BY e.position LIMIT ${limit}`.values,
    (rows) => (rows.length > 0 ? Effect.succeed(named(rows)) : selectEmptyPage(sql))
  )

/** An empty page moves no cursor, so its floor may be newer than its rows. */
const selectEmptyPage = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly floor: number | null }>`SELECT ${sql.literal(feedFloor)} AS floor`, ([row]): RawPage => ({
    ...named([]),
    floor: row?.floor ?? 0
  }))

/** The part of this database in the ids of its events. */
export const selectIdentity = (sql: SqlClient.SqlClient) =>
  sql<{ readonly identity: string }>`SELECT identity FROM log_identity WHERE one = 1`.pipe(
    Effect.mapError(unavailable("read")),
    Effect.flatMap(([row]) =>
      row === undefined ? Effect.dieMessage("the database has no identity") : Effect.succeed(row.identity)
    )
  )

/**
 * The place of the event with an id, by key. The event's position gives the id, or the row stores it. The session is null
 * while it is removed.
 */
export const selectByID = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ readonly session_id: string | null; readonly seq: number; readonly id: string }>`
      SELECT s.session_id, e.seq, ${sql.literal(EventIds.idColumn)} FROM event e JOIN event_sequence s ON s.session = e.session
        WHERE e.position = ${EventIds.positionIn(id) ?? null} AND e.id IS NULL
      UNION ALL
      SELECT s.session_id, e.seq, e.id FROM event e JOIN event_sequence s ON s.session = e.session WHERE e.id = ${id}`,
    (rows) => rows.find((row) => row.id === id)
  )

const unreadable = (row: Raw, details: string) =>
  new EventUnreadable({
    sessionID: String(row["session_id"]),
    seq: typeof row["seq"] === "number" ? row["seq"] : -1,
    ...(typeof row["position"] === "number" ? { position: row["position"] } : {}),
    type: String(row["type"]),
    details
  })

/**
 * Decodes a row without verifying its checksum. Undefined for a type that this build does not know. The result is no
 * `Either`, because a replay decodes hundreds of thousands of rows a second.
 */
export const decodeRow = (row: Raw & EventRow): SessionEvent | EventUnreadable | undefined => {
  const codec = Registry.codecOf(row.type)
  if (codec === undefined) return undefined
  let data: unknown
  try {
    data = JSON.parse(row.data)
  } catch (cause) {
    return unreadable(row, cause instanceof Error ? cause.message : "bad JSON")
  }
  if (!codec.conforms(data)) {
    const decoded = codec.decode(data)
    if (Either.isLeft(decoded)) return unreadable(row, ParseResult.parseError(decoded.left).message)
    data = decoded.right
  }
  const { created, id, position, seq, session_id: sessionID } = row
  const { type, version } = codec
  // The codec decodes the payload of its own type; the lookup hides that from the compiler.
  return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
}

/** Verifies and decodes a row. Undefined for a type that this build does not know. */
const verifyRow = (raw: Raw): SessionEvent | EventUnreadable | undefined =>
  !isRow(raw)
    ? unreadable(raw, "its id, session or type is not valid")
    : checksumOf(raw) !== raw["checksum"]
      ? unreadable(raw, "its checksum differs: the row was changed after it was written")
      : decodeRow(raw)

/**
 * Decodes a row. None for a type that this build does not know; an error if the checksum differs or a known type does
 * not decode.
 */
export const toEvent = (raw: Raw): Option.Option<Either.Either<SessionEvent, EventUnreadable>> =>
  Option.map(Option.fromNullable(verifyRow(raw)), (found) =>
    found instanceof EventUnreadable ? Either.left(found) : Either.right(found)
  )

/** A decoded page: its events without unknown types, up to the first unreadable row. */
export interface Decoded {
  readonly events: ReadonlyArray<SessionEvent>
  /** Rows before the unreadable one; all rows if there is none. */
  readonly rows: number
  readonly stopped: EventUnreadable | undefined
}

/** Decodes a page's rows, up to the first unreadable one. */
export const toEvents = (rows: ReadonlyArray<Raw>): Decoded => {
  const events: Array<SessionEvent> = []
  for (const [index, row] of rows.entries()) {
    const event = verifyRow(row)
    if (event === undefined) continue
    if (event instanceof EventUnreadable) return { events, rows: index, stopped: event }
    events.push(event)
  }
  return { events, rows: rows.length, stopped: undefined }
}

/** Converts a driver error to the log's error. */
export const unavailable =
  (operation: string) =>
  (error: SqlError.SqlError): LogUnavailable => {
    const reason = reasonOf(error)
    return new LogUnavailable({ operation, reason: reason === "constraint" ? "unknown" : reason, cause: error.cause })
  }

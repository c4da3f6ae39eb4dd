/** Owns the rows of the `event` table: names, ids, checksums, columns, conversion. Spec: ST-11, ST-23..ST-26. */
import { crc32 } from "node:zlib"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Either, Option, ParseResult } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { insertRows } from "../projection/SqlTables.ts"
import type { Statements } from "../storage/Connection.ts"
import { bytesOf, isPostgres } from "../storage/Dialect.ts"
import { reasonOf } from "../storage/Transaction.ts"
import { compile } from "../support/Conforms.ts"
import { EventUnreadable, LogUnavailable } from "./EventLog.ts"

// Gives each stored name (`<type>.<version>`) the small number that its rows hold.

/** Permission events are read over all sessions: a partial index holds the rows with a negative type. */
const isIndexed = (name: string): boolean => name.startsWith("session.next.permission.")

const selectType = "SELECT type FROM event_type WHERE name = ?"
const insert = (next: string) => `INSERT INTO event_type (type, name) VALUES (${next}, ?)`
const insertUsual = insert("coalesce((SELECT max(type) FROM event_type WHERE type > 0), 0) + 1")
const insertIndexed = insert("coalesce((SELECT min(type) FROM event_type WHERE type < 0), 0) - 1")

/** The numbers of names, for write transactions. */
export interface EventTypes {
  /** Begins a transaction: those before it have ended. */
  readonly begin: () => void
  /** The number of the name. A new name is added in the current transaction. */
  readonly of: (statements: Statements, name: string) => number
}

/**
 * Remembers committed numbers only. After a rollback, another process may give the number to another name, so nothing
 * that is read in a transaction after it added a name is remembered.
 */
export const makeEventTypes = (): EventTypes => {
  const committed = new Map<string, number>()
  let added = false
  return {
    begin: () => {
      added = false
    },
    of: (statements, name) => {
      const known = committed.get(name)
      if (known !== undefined) return known
      const [found] = statements.all<{ readonly type: number }>(selectType, [name])
      if (found !== undefined) {
        if (!added) committed.set(name, found.type)
        return found.type
      }
      added = true
      statements.run(isIndexed(name) ? insertIndexed : insertUsual, [name])
      const [row] = statements.all<{ readonly type: number }>(selectType, [name])
      if (row === undefined) throw new Error(`the name ${name} has no number`)
      return row.type
    }
  }
}

// Derives the ids of events from their places, so that they sort by time and cost no bytes: `evt_`, twelve hexadecimal
// digits of the time, eight of the database's identity, ten of the position. A replayed event stores the id of its own
// log.

const identityColumn = "(SELECT identity FROM log_identity WHERE one = 1)"

/** That expression, on each database. */
export const idColumns = {
  sqlite: `coalesce(e.id, printf('evt_%012x%s%010x', e.created, ${identityColumn}, e.position)) AS id`,
  postgres: `coalesce(e.id, 'evt_' || lpad(to_hex(e.created), 12, '0') || ${identityColumn} ||
    lpad(to_hex(e.position), 10, '0')) AS id`
}

/** The id of the event in the row `e`. The view `events` of the schema has the same expression. */
const idColumn = (sql: SqlClient.SqlClient): string => (isPostgres(sql) ? idColumns.postgres : idColumns.sqlite)

const place = /^evt_[0-9a-f]{20}([0-9a-f]{10})$/

/** The position that a derived id of any database ends in; undefined for other ids. */
const positionIn = (id: string): number | undefined => {
  const digits = place.exec(id)?.[1]
  return digits === undefined ? undefined : parseInt(digits, 16)
}

/** Derives ids for one database. The events of an append share their time, so its digits are kept. */
export const makeEventIds = (identity: string): ((created: number, position: number) => EventID) => {
  let [time, start] = [-1, ""]
  return (created, position) => {
    if (created !== time) {
      time = created
      start = `evt_${created.toString(16).padStart(12, "0")}${identity}`
    }
    return EventID.make(start + position.toString(16).padStart(10, "0"), { disableValidation: true })
  }
}

// Computes the CRC-32 of an event's row, over every column except its position.

/** The columns that the checksum covers. */
export interface Checked {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

/** One step of FNV-1a, which no two values of 32 bits leave with the same result. */
const step = (hash: number, value: number): number => Math.imul(hash ^ value, 0x01000193)

const stepText = (hash: number, text: string): number => {
  let stepped = hash
  for (let at = 0; at < text.length; at++) stepped = step(stepped, text.charCodeAt(at))
  return stepped
}

/** The hash of a session and a type, which rows of one kind share. */
export const kindHash = (sessionID: string, type: string): number => stepText(stepText(0, sessionID) ^ 0x20, type)

/** The hash of all columns but the payload, from the hash of the kind. */
export const rowHash = (kind: number, seq: number, created: number, id: string): number =>
  stepText(step(step(step(kind, seq), created | 0), Math.floor(created / 0x1_0000_0000)), id)

/** The checksum of a row: the CRC-32 of the payload in UTF-8, begun with the hash of the other columns. */
export const sumOf = (hash: number, data: string): number => crc32(data, hash >>> 0)

/** The session and type of the last checksum: neighbouring rows often share both. */
const last = { session_id: "", type: "", hash: kindHash("", "") }

const kindHashOf = ({ session_id, type }: Checked): number => {
  if (last.session_id === session_id && last.type === type) return last.hash
  last.session_id = session_id
  last.type = type
  last.hash = kindHash(session_id, type)
  return last.hash
}

/** Returns the checksum of a whole row. A change of one column always changes it. */
export const checksumOf = (row: Checked) => sumOf(rowHash(kindHashOf(row), row.seq, row.created, row.id), row.data)

export interface EventRow {
  readonly position: number
  readonly id: EventID
  readonly session_id: SessionID
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

const conformsToEventID = compile(EventID.ast)
const isSessionID = compile(SessionID.ast)

export const isEventID = (id: unknown): id is EventID => conformsToEventID(id)

/** The last valid session id: the rows of a page belong to one session or a few. */
let knownSession: unknown

export const isKnownSession = (id: unknown): id is SessionID => {
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
export const longPayload = 64 * 1024

const columns = ["position", "session", "seq", "type", "created", "checksum", "id", "data"] as const

/** An event to insert. Its row holds numbers in place of its session and its stored name. */
export interface NewEvent {
  readonly position: number
  readonly session: number
  readonly seq: number
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
const readable = (sql: SqlClient.SqlClient, data: string): Statement.Fragment =>
  sql.literal(`e.position, ${idColumn(sql)}, s.session_id, e.seq, t.name AS type, e.created, ${data}, e.checksum`)

/** Selects whole rows for `toEvent`. `rest` follows the joined tables `e`, `s` (its session) and `t` (its type). */
export const selectEvents = (sql: SqlClient.SqlClient, rest: Statement.Fragment) =>
  sql<Raw>`SELECT ${readable(sql, "e.data")} FROM ${sql.literal(joined)} ${rest}`

/** Selects the rows of a table `i` with the events that they refer to, which `toEvent` reads. Without an event, `data` is null. */
export const selectWithEvents = <Row extends object>(
  sql: SqlClient.SqlClient,
  columns: string,
  from: Statement.Fragment,
  rest: Statement.Fragment
): Effect.Effect<ReadonlyArray<Row & Raw>, SqlError.SqlError> =>
  sql<Row & Raw>`SELECT ${sql.literal(columns)}, ${readable(sql, "e.data")} FROM ${from}
    LEFT JOIN event_sequence s ON s.session = e.session LEFT JOIN event_type t ON t.type = e.type ${rest}`

export const sessionKey = (sql: SqlClient.SqlClient, sessionID: string): Statement.Fragment =>
  sql`(SELECT session FROM event_sequence WHERE session_id = ${sessionID})`

/** The events of the session with an id, in a statement on `e`. */
export const ofSession = (sql: SqlClient.SqlClient, sessionID: string) => sql`e.session = ${sessionKey(sql, sessionID)}`

type Raw = Readonly<Record<string, unknown>>

/** A page is read without long payloads (the row's header holds their length) and ends before the first one. */
const payload = (sql: SqlClient.SqlClient, limit: number) => (limit === 1 ? "e.data" : `${shortPayload(sql)} AS data`)

/** The payload of `e`; null if it is long. */
export const shortPayload = (sql: SqlClient.SqlClient): string =>
  `CASE WHEN ${bytesOf(sql, "e.data")} <= ${longPayload} THEN e.data END`

/** Truncates the rows at the first missing payload; the first `from` rows need none. Returns the limit too. */
const beforeLong = (rows: ReadonlyArray<Raw>, limit: number, from = 0) => {
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
    sql<Raw>`SELECT ${readable(sql, payload(sql, most))} FROM ${sql.literal(joined)}
      WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} ORDER BY e.seq LIMIT ${most}`,
    (found) => {
      const { limit, rows } = beforeLong(found, most)
      return limit === 0 ? selectCheckedPage(sql, sessionID, after, 1) : Effect.succeed(rows)
    }
  )

/** The part of this database in the ids of its events. */
export const selectIdentity = (sql: SqlClient.SqlClient) =>
  sql<{ readonly identity: string }>`SELECT identity FROM log_identity WHERE one = 1`.pipe(
    Effect.mapError(unavailable("read")),
    Effect.flatMap(([row]) =>
      row === undefined ? Effect.dieMessage("the database has no identity") : Effect.succeed(row.identity)
    )
  )

/** The place of the event with an id, by key. The session is null while it is removed. */
export const selectByID = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ readonly session_id: string | null; readonly seq: number; readonly id: string }>`
      SELECT s.session_id, e.seq, ${sql.literal(idColumn(sql))} FROM event e JOIN event_sequence s ON s.session = e.session
        WHERE e.position = ${positionIn(id) ?? null} AND e.id IS NULL
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

/** Decodes a payload's JSON to its type's current form. Throws what prevents it. */
export const decodePayload = (codec: Registry.Codec, text: string): SessionEvent["data"] => {
  const data: unknown = JSON.parse(text)
  // A payload that conforms has the type that the codec decodes to.
  if (codec.conforms(data)) return data as SessionEvent["data"]
  return Either.getOrThrowWith(codec.decode(data), ParseResult.parseError)
}

/** Why a payload was not decoded. */
export const detailsOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : "bad JSON")

/** Decodes a row without verifying its checksum. Undefined for a type that this build does not know. */
const decodeRow = (row: Raw & EventRow): SessionEvent | EventUnreadable | undefined => {
  const codec = Registry.codecOf(row.type)
  if (codec === undefined) return undefined
  const { created, id, position, seq, session_id: sessionID } = row
  const { type, version } = codec
  try {
    const data = decodePayload(codec, row.data)
    // The codec decodes the payload of its own type; the lookup hides that from the compiler.
    return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
  } catch (thrown) {
    return unreadable(row, detailsOf(thrown))
  }
}

/** Verifies and decodes a row. Undefined for a type that this build does not know. */
const verifyRow = (raw: Raw): SessionEvent | EventUnreadable | undefined =>
  !isRow(raw)
    ? unreadable(raw, "its id, session or type is not valid")
    : checksumOf(raw) !== raw["checksum"]
      ? unreadable(raw, "its checksum differs: the row was changed after it was written")
      : decodeRow(raw)

/** Decodes a row. None for a type that this build does not know; an error if checksum or data is wrong. */
export const toEvent = (raw: Raw): Option.Option<Either.Either<SessionEvent, EventUnreadable>> =>
  Option.map(Option.fromNullable(verifyRow(raw)), (found) =>
    found instanceof EventUnreadable ? Either.left(found) : Either.right(found)
  )

/** Decodes a page's rows, without unknown types, up to the first unreadable one, which is `stopped`. */
export const toEvents = (rows: ReadonlyArray<Raw>) => {
  const events: Array<SessionEvent> = []
  for (const row of rows) {
    const event = verifyRow(row)
    if (event instanceof EventUnreadable) return { events, stopped: event }
    if (event !== undefined) events.push(event)
  }
  return { events, stopped: undefined }
}

/** Converts a driver error to the log's error. */
export const unavailable =
  (operation: string) =>
  (error: SqlError.SqlError): LogUnavailable => {
    const reason = reasonOf(error)
    return new LogUnavailable({ operation, reason: reason === "constraint" ? "unknown" : reason, cause: error.cause })
  }

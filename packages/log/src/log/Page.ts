/**
 * Reads a page of a session or of the feed in one statement, and so in one snapshot, and verifies and
 * decodes its rows; following: `Reader.ts`. Spec: LG-7, LG-25, LG-28, LG-63 in specs/log.md.
 */
import { crc32 } from "node:zlib"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Option, Schema } from "effect"
import type { EventID, SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { isPostgres } from "../storage/Dialect.ts"
import { once } from "../support/Once.ts"
import { EventUnreadable } from "./EventLog.ts"
import * as EventRow from "./EventRow.ts"
import {
  decodePayload,
  detailsOf,
  isEventID,
  isKnownSession,
  kindHash,
  ofSession,
  rowHash,
  shortPayload,
  sumOf
} from "./EventRow.ts"

// Verifies and decodes the rows of a page. A row is an array of few columns, because a replay decodes hundreds of
// thousands of rows a second.

/** A row's columns: place, kind (the type's number), time, checksum, payload; in the feed also session and seq. */
type PageRow = ReadonlyArray<unknown>

/** The place: the position, followed by the id if the row stores one. */
const placeColumn = (sql: SqlClient.SqlClient): string =>
  isPostgres(sql)
    ? "CASE WHEN e.id IS NULL THEN e.position::text ELSE e.position || ' ' || e.id END"
    : "iif(e.id IS NULL, e.position, e.position || ' ' || e.id)"

/** The columns from the time to the payload. A long payload is null, unless the limit is one row. */
const lastColumns = (sql: SqlClient.SqlClient, limit: number): string =>
  `e.created, e.checksum, ${limit === 1 ? "e.data" : shortPayload(sql)}`

/** Splits the text of a place or a kind into its number and what follows. */
const split = (text: string): readonly [number: number, rest: string | undefined] => {
  const space = text.indexOf(" ")
  return space < 0 ? [Number(text), undefined] : [Number(text.slice(0, space)), text.slice(space + 1)]
}

/** How the rows of one session and type are read. */
interface RowKind {
  /** The stored name; undefined if the number has none. */
  readonly stored: string | undefined
  /** Undefined for a name that this build does not know. */
  readonly codec: Registry.Codec | undefined
  readonly hash: number
}

/** Finds kinds by session and number, for types with the names. */
const makeKinds = (names: Readonly<Record<string, string>>) => {
  const sessions = new Map<unknown, Map<unknown, RowKind>>()
  let current: unknown
  let kinds = new Map<unknown, RowKind>()
  return (session: unknown, type: unknown): RowKind => {
    if (session !== current) {
      current = session
      kinds = sessions.get(session) ?? new Map<unknown, RowKind>()
      sessions.set(session, kinds)
    }
    const known = kinds.get(type)
    if (known !== undefined) return known
    const stored = names[String(type)]
    const codec = stored === undefined ? undefined : Registry.codecOf(stored)
    const kind: RowKind = { stored, codec, hash: kindHash(String(session), stored ?? "") }
    kinds.set(type, kind)
    return kind
  }
}

/** What a page's rows have in common. */
interface RowContext {
  /** The kind of the first row. */
  readonly firstType: unknown
  /** The names of the database's types, and its identity. */
  readonly names: Readonly<Record<string, string>>
  readonly identity: string
  /** Rows of one session, and the cursor before them; undefined for the feed. */
  readonly of: { readonly sessionID: SessionID; readonly after: number } | undefined
  /** The most rows of the page: one row alone may have a long payload. */
  readonly limit: number
}

interface DecodedRows {
  readonly events: ReadonlyArray<SessionEvent>
  /** How many rows were read, those of unknown types included. */
  readonly read: number
  /** The code units of their payloads. */
  readonly length: number
  /** The position of the last row that was read; undefined if there is none. */
  readonly position: number | undefined
  /** Why the next row is unreadable; undefined if it is long or there is none. */
  readonly stopped: EventUnreadable | undefined
}

/** A row without its payload. */
interface RowHead {
  readonly kind: RowKind
  readonly position: number
  readonly seq: number
  readonly id: EventID
  readonly sessionID: SessionID
  readonly created: number
}

/** Decodes a verified row; undefined for a type that this build does not know. Throws if its payload does not decode. */
const eventOf = (place: RowHead | undefined, payload = ""): SessionEvent | undefined => {
  if (place?.kind.codec === undefined) return undefined
  const { created, id, position, seq, sessionID } = place
  const { codec } = place.kind
  const { type, version } = codec
  const data = decodePayload(codec, payload)
  // The codec decodes the payload of its own type; the lookup hides that from the compiler.
  return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
}

const invalid = "its id, session or type is not valid"
const changed = "its checksum differs: the row was changed after it was written"

/** Decodes the rows up to the first one that is long or unreadable. */
const decodeRows = (rows: ReadonlyArray<PageRow>, shared: RowContext): DecodedRows => {
  const { firstType, limit, of } = shared
  const kindOf = makeKinds(shared.names)
  const idAt = EventRow.makeEventIds(shared.identity)
  const sessionAt = (at: number): unknown => (of === undefined ? rows[at]?.[5] : of.sessionID)
  const seqAt = (at: number): unknown => (of === undefined ? rows[at]?.[6] : of.after + 1 + at)
  const kindAt = (at: number): RowKind => kindOf(sessionAt(at), at === 0 ? firstType : rows[at]?.[1])

  /** The row's place; undefined if it is not valid. */
  const placeOf = (row: PageRow, at: number): RowHead | undefined => {
    // By index: destructuring an array goes through its iterator, which costs as much as an object.
    const place = row[0]
    const created = row[2]
    const [sessionID, seq, kind] = [sessionAt(at), seqAt(at), kindAt(at)]
    if (typeof created !== "number" || typeof seq !== "number" || !isKnownSession(sessionID)) return undefined
    if (kind.stored === undefined) return undefined
    if (typeof place === "number") return { kind, position: place, seq, id: idAt(created, place), sessionID, created }
    const [position, id] = split(String(place))
    if (id === undefined) return { kind, position, seq, id: idAt(created, position), sessionID, created }
    return isEventID(id) ? { kind, position, seq, id, sessionID, created } : undefined
  }

  const unreadable = (at: number, details: string) => {
    const [place, seq] = [rows[at]?.[0], seqAt(at)]
    const position = typeof place === "string" ? split(place)[0] : place
    return new EventUnreadable({
      sessionID: String(sessionAt(at)),
      seq: typeof seq === "number" ? seq : -1,
      ...(typeof position === "number" ? { position } : {}),
      type: String(kindAt(at).stored),
      details
    })
  }

  const places: Array<RowHead> = []
  const [hashes, payloads, checksums]: [Array<number>, Array<string>, Array<number>] = [[], [], []]
  let stopped: EventUnreadable | undefined
  for (const row of rows) {
    const data = row[4]
    const checksum = row[3]
    if (data === null && limit > 1) break
    const place = placeOf(row, places.length)
    if (place === undefined || typeof data !== "string" || typeof checksum !== "number") {
      stopped = unreadable(places.length, invalid)
      break
    }
    hashes.push(rowHash(place.kind.hash, place.seq, place.created, place.id))
    payloads.push(data)
    checksums.push(checksum)
    places.push(place)
  }
  const sound = countSound({ hashes, payloads, checksums })
  if (sound < places.length) stopped = unreadable(sound, changed)

  const events: Array<SessionEvent> = []
  let read = 0
  let length = 0
  try {
    for (; read < sound; read++) {
      length += payloads[read]?.length ?? 0
      const event = eventOf(places[read], payloads[read])
      if (event !== undefined) events.push(event)
    }
  } catch (thrown) {
    stopped = unreadable(read, detailsOf(thrown))
  }
  return { events, read, length, position: places[read - 1]?.position, stopped }
}

// Verifies the checksums of many rows with one CRC-32 of their joined payloads: a call costs as much as the bytes of a
// typical payload. For the CRC-32 of two texts, where `behind(c, n)` moves the CRC `c` in front of n bytes:
//
//   crc(a + b) = behind(crc(a), length of b) ^ crc(b)        a row's checksum = behind(its hash, length) ^ crc(payload)
//
// So the CRC of the joined payloads follows from hashes, lengths and checksums. One changed row always changes it.
// Several changed rows escape it as rarely as one row escapes its own checksum.

/** Code units of payloads that are joined: longer texts would leave the processor's cache. */
const joinedLength = 16 * 1024

/** The polynomial of CRC-32. Bits stand in reverse, as in the checksum: the highest one is the constant 1. */
const polynomial = 0xedb88320 | 0
const [one, xTo8] = [1 << 31, 1 << 23]

/** Multiplies two polynomials modulo that of CRC-32, without branches: no processor can predict them. */
const multiply = (a: number, b: number): number => {
  let product = 0
  let factor = b
  for (let bit = 31; bit >= 0; bit--) {
    product ^= factor & -((a >>> bit) & 1)
    factor = (factor >>> 1) ^ (polynomial & -(factor & 1))
  }
  return product
}

/** The factors of lengths up to 64 KiB; 0 if not computed yet. */
const factors = new Int32Array(64 * 1024 + 1)

/** x to the power of 8 times the length: it moves a CRC in front of so many bytes. */
const factorOf = (length: number): number => {
  const known = factors[length]
  if (known !== undefined && known !== 0) return known
  let [factor, square] = [one, xTo8]
  for (let left = length; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) factor = multiply(factor, square)
    square = multiply(square, square)
  }
  if (known === 0) factors[length] = factor
  return factor
}

/** Rows as columns: the hash of what precedes the payload, the payload, and the stored checksum. */
interface Summed {
  readonly hashes: ReadonlyArray<number>
  readonly payloads: ReadonlyArray<string>
  readonly checksums: ReadonlyArray<number>
}

/** The CRC that the joined payloads from one row to before another must have. */
const expected = (rows: Summed, from: number, to: number, lengthOf: (text: string) => number): number => {
  let crc = 0
  for (let at = from; at < to; at++) {
    const [hash = 0, payload = "", checksum = 0] = [rows.hashes[at], rows.payloads[at], rows.checksums[at]]
    crc = multiply(factorOf(lengthOf(payload)), crc ^ hash) ^ checksum
  }
  return crc >>> 0
}

const codeUnits = (text: string): number => text.length

/** The first row from one to before another that does not have its checksum; `to` if all have theirs. */
const firstChanged = ({ checksums, hashes, payloads }: Summed, from: number, to: number): number => {
  let at = from
  while (at < to && sumOf(hashes[at] ?? 0, payloads[at] ?? "") === checksums[at]) at += 1
  return at
}

/** How many rows have their checksums, before the first one that does not. */
export const countSound = (rows: Summed): number => {
  const { payloads } = rows
  let from = 0
  while (from < payloads.length) {
    let text = ""
    let to = from
    while (to < payloads.length && text.length < joinedLength) text += payloads[to++] ?? ""
    const crc = to - from > 1 ? crc32(text) : undefined
    // Most payloads are ASCII: as many bytes as code units.
    const isSound = crc === expected(rows, from, to, codeUnits) || crc === expected(rows, from, to, Buffer.byteLength)
    const changed = isSound ? to : firstChanged(rows, from, to)
    if (changed < to) return changed
    from = to
  }
  return from
}

/** Verified and decoded rows, and what their snapshot says about the log. */
export interface Page extends DecodedRows {
  /** How many rows were found, whether or not they were read. */
  readonly found: number
  /** Pages of a session: a row directly follows the cursor, so that the session's head is known. */
  readonly follows: boolean
  /** The session's head and incarnation. */
  readonly latest: number
  readonly incarnation: number
  /** Pages of the feed: its floor, the greatest position of an event that pruning removed; 0 if there is none. */
  readonly floor: number
}

/** What the rows of a page have in common, as JSON. */
const shared = (sql: SqlClient.SqlClient, floor: string): string => {
  const [array, object, text] = isPostgres(sql)
    ? ["json_build_array", "json_object_agg", "::text"]
    : ["json_array", "json_group_object", " || ''"]
  return `(SELECT ${array}(seq, coalesce(incarnation, 0), (SELECT identity FROM log_identity WHERE one = 1),
    (SELECT ${object}(type, name) FROM event_type)${text}, ${floor}) FROM event_sequence WHERE session = e.session)`
}

/** The kind, and in the first row what the rows have in common behind it. */
const kindColumn = (sql: SqlClient.SqlClient, isFirst: Statement.Fragment, floor: string): Statement.Fragment =>
  sql`CASE WHEN ${isFirst} THEN e.type || ' ' || ${sql.literal(shared(sql, floor))} ELSE e.type${sql.literal(
    isPostgres(sql) ? "::text" : ""
  )} END`

const Shared = Schema.parseJson(
  Schema.Tuple(Schema.Number, Schema.Number, Schema.String, Schema.String, Schema.NullOr(Schema.Number))
)
type Shared = typeof Shared.Type
const decodeShared = once(() => Schema.decodeUnknownOption(Shared))
const nothingShared: Shared = [0, 0, "", "{}", null]

type Names = Readonly<Record<string, string>>

const decodeNames = once(() =>
  Schema.decodeUnknownOption(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.String })))
)

/** The names of the last page: they rarely change, and decoding them costs as much as many rows. */
let lastNames: { readonly text: string; readonly names: Names } = { text: "{}", names: {} }

const namesOf = (text: string): Names => {
  if (text !== lastNames.text) lastNames = { text, names: Option.getOrElse(decodeNames()(text), (): Names => ({})) }
  return lastNames.names
}

const toPage = (rows: ReadonlyArray<PageRow>, limit: number, of?: RowContext["of"]): Page => {
  const kind = rows[0]?.[1]
  // The statement wrote the number, the space and the JSON.
  const [number, json] = typeof kind === "string" ? split(kind) : [undefined, undefined]
  const [latest, incarnation, identity, names, floor] = Option.getOrElse(decodeShared()(json), () => nothingShared)
  const follows = json !== undefined
  // Behind a gap the numbers of the rows are not known: the reader finds out what the gap is.
  const known = follows || of === undefined ? rows : []
  const decoded = decodeRows(known, { firstType: number ?? kind, names: namesOf(names), identity, of, limit })
  return { ...decoded, found: rows.length, follows, latest, incarnation, floor: floor ?? 0 }
}

/** Selects a session's page after a cursor. The checksum covers the sequence number, so a gap differs. */
export const selectPage = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, limit: number) =>
  Effect.map(
    sql`SELECT ${sql.literal(placeColumn(sql))}, ${kindColumn(sql, sql`e.seq = ${after + 1}`, "NULL")},
        ${sql.literal(lastColumns(sql, limit))}
      FROM event e WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} ORDER BY e.seq LIMIT ${limit}`.values,
    (rows) => toPage(rows, limit, { sessionID, after })
  )

/** The sessions whose removal is not finished: no reader sees their events. */
const removing = "(SELECT session FROM event_sequence WHERE session_id IS NULL)"

const feedFloor = "(SELECT max(position) FROM session_floor WHERE position > 0)"

/** Selects the page of all sessions after a position, and the floor in the same snapshot. */
export const selectFeedPage = (sql: SqlClient.SqlClient, after: number, limit: number) =>
  Effect.flatMap(
    sql`SELECT ${sql.literal(placeColumn(sql))}, ${kindColumn(
      sql,
      sql`e.position = (SELECT min(position) FROM event
            WHERE position > ${after} AND session NOT IN ${sql.literal(removing)})`,
      feedFloor
    )},
        ${sql.literal(lastColumns(sql, limit))}, s.session_id, e.seq
      FROM event e LEFT JOIN event_sequence s ON s.session = e.session
      WHERE e.position > ${after} AND e.session NOT IN ${sql.literal(removing)}
      ORDER BY e.position LIMIT ${limit}`.values,
    (rows) => (rows.length > 0 ? Effect.succeed(toPage(rows, limit)) : selectEmptyPage(sql))
  )

/** An empty page moves no cursor, so its floor may be newer than its rows. */
const selectEmptyPage = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly floor: number | null }>`SELECT ${sql.literal(feedFloor)} AS floor`, ([row]): Page => ({
    ...toPage([], 1),
    floor: row?.floor ?? 0
  }))

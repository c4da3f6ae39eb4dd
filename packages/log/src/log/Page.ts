/**
 * Reads a page of a session or of the feed in one statement, and so in one snapshot. Its rows: `PageRow.ts`; following:
 * `Reader.ts`. Spec: LG-7, LG-25, LG-28.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { once } from "../support/Once.ts"
import { ofSession } from "./EventRow.ts"
import * as PageRow from "./PageRow.ts"

/** Verified and decoded rows, and what their snapshot says about the log. */
export interface Page extends PageRow.Decoded {
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
const shared = (floor: string): string =>
  `(SELECT json_array(seq, coalesce(incarnation, 0), (SELECT identity FROM log_identity WHERE one = 1),
    (SELECT json_group_object(type, name) FROM event_type) || '', ${floor}) FROM event_sequence WHERE session = e.session)`

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

const toPage = (rows: ReadonlyArray<PageRow.PageRow>, limit: number, of?: PageRow.Shared["of"]): Page => {
  const kind = rows[0]?.[1]
  // The statement wrote the number, the space and the JSON.
  const [type, json] = typeof kind === "string" ? PageRow.split(kind) : [undefined, undefined]
  const [latest, incarnation, identity, names, floor] = Option.getOrElse(decodeShared()(json), () => nothingShared)
  const follows = type !== undefined
  // Behind a gap the numbers of the rows are not known: the reader finds out what the gap is.
  const known = follows || of === undefined ? rows : []
  const decoded = PageRow.decode(known, { firstType: type ?? kind, names: namesOf(names), identity, of, limit })
  return { ...decoded, found: rows.length, follows, latest, incarnation, floor: floor ?? 0 }
}

/**
 * Selects the page of a session after a cursor. Rows are taken to follow each other: the checksum covers the sequence
 * number, so it differs in a row behind a gap.
 */
export const selectPage = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, limit: number) =>
  Effect.map(
    sql`SELECT ${sql.literal(PageRow.placeColumn)},
        iif(e.seq = ${after + 1}, e.type || ' ' || ${sql.literal(shared("NULL"))}, e.type),
        ${sql.literal(PageRow.lastColumns(limit))}
      FROM event e WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} ORDER BY e.seq LIMIT ${limit}`.values,
    (rows) => toPage(rows, limit, { sessionID, after })
  )

/** The sessions whose removal is not finished: no reader sees their events. */
const removing = "(SELECT session FROM event_sequence WHERE session_id IS NULL)"

/** The feed's floor, by key. */
const feedFloor = "(SELECT max(position) FROM session_floor WHERE position > 0)"

/** Selects the page of all sessions after a position, and the floor in the same snapshot. */
export const selectFeedPage = (sql: SqlClient.SqlClient, after: number, limit: number) =>
  Effect.flatMap(
    sql`SELECT ${sql.literal(PageRow.placeColumn)},
        iif(e.position = (SELECT min(position) FROM event
            WHERE position > ${after} AND session NOT IN ${sql.literal(removing)}),
          e.type || ' ' || ${sql.literal(shared(feedFloor))}, e.type),
        ${sql.literal(PageRow.lastColumns(limit))}, s.session_id, e.seq
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

/** Selects sessions: one, by address or title, in pages, and those that were cut off. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Schema } from "effect"
import { type Address, addressKey, type House, houseKeys } from "../domain/Address.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import type { SessionMetrics } from "../domain/Usage.ts"
import { defaultAgent } from "../domain/Values.ts"
import { type OwnerToken, SessionNotFound } from "../log/EventLog.ts"
import type { SessionRow } from "../projection/Tables.ts"
import { clamp } from "../support/Clamp.ts"
import { sessionOf, sessionsOf, tokensOf } from "./Assemble.ts"
import { marksColumns, marksOf, type MarksRow } from "./ContextMarks.ts"
import type { ListOptions } from "./Pages.ts"
import { matchingPrompts } from "./PromptSearch.ts"
import { reading, readingTogether } from "./Reading.ts"

/** Maximum number of sessions listed for one title. */
const sameTitle = 10

/** Maximum characters of a search: SQLite accepts patterns of 50,000 bytes. */
const searchLimit = 1_000

const ListCursor = Schema.parseJson(Schema.Tuple(Schema.Int, Schema.String))

export const get = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.get")(function* (sessionID: SessionID) {
    const [row] = yield* reading(sql<SessionRow>`SELECT * FROM session WHERE id = ${sessionID}`)
    return row === undefined ? yield* new SessionNotFound({ sessionID }) : yield* sessionOf(row)
  })

export const metrics = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.metrics")(function* (sessionID: SessionID, now: number) {
    const [row] = yield* reading(
      sql<SessionRow>`SELECT cost, tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write,
          turns, tool_calls, duration_ms, activity_state FROM session WHERE id = ${sessionID}`
    )
    if (row === undefined) return yield* new SessionNotFound({ sessionID })
    return {
      cost: row.cost,
      tokens: tokensOf(row),
      turns: row.turns,
      toolCalls: row.tool_calls,
      // While an activity runs, its start is subtracted.
      durationMs: Math.max(0, row.duration_ms + (row.activity_state === "running" ? now : 0))
    } satisfies SessionMetrics
  })

type StandingRow = SessionRow & MarksRow & { readonly steers: number; readonly queued: number }

/** Selects what `Standing` holds. With `owned`, only while this owner holds the session and is not asked to stop. */
const selectStanding = (sql: SqlClient.SqlClient, sessionID: SessionID, owned?: OwnerToken) => {
  const mine =
    owned === undefined
      ? sql``
      : sql` AND q.owner_id = ${owned.ownerID} AND q.owner_epoch = ${owned.epoch} AND q.interrupt_epoch <> q.owner_epoch`
  return sql<StandingRow>`SELECT s.*,
      (SELECT count(*) FROM session_input i
        WHERE i.session = q.session AND i.promoted_seq IS NULL AND i.delivery = 'steer') AS steers,
      (SELECT count(*) FROM session_input i
        WHERE i.session = q.session AND i.promoted_seq IS NULL AND i.delivery = 'queue') AS queued,
      ${marksColumns(sql, sessionID)}
    FROM session s JOIN event_sequence q ON q.session_id = s.id WHERE s.id = ${sessionID}${mine}`
}

export const standing = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.standing")(function* (sessionID: SessionID, owned?: OwnerToken) {
    const [row] = yield* reading(selectStanding(sql, sessionID, owned))
    if (row === undefined) return yield* new SessionNotFound({ sessionID })
    return { session: yield* sessionOf(row), steers: row.steers, queued: row.queued, marks: marksOf(row) }
  })

export const addressed = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.addressed")(function* (address: Address) {
    const [row] = yield* reading(sql<SessionRow>`SELECT * FROM session WHERE address = ${addressKey(address)}`)
    return row === undefined ? undefined : yield* sessionOf(row)
  })

export const titled = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.titled")(function* (
    title: string,
    { directory }: { readonly directory?: string | undefined } = {}
  ) {
    const rows = yield* reading(
      // The plus keeps the title's index in use: a folder may have far more sessions than a title.
      sql<SessionRow>`SELECT * FROM session WHERE title = ${title}
        ${directory === undefined ? sql`` : sql`AND +directory = ${directory}`}
        ORDER BY time_updated DESC, id DESC LIMIT ${sameTitle}`
    )
    return yield* sessionsOf(rows)
  })

/** The sessions with a running activity, in id order. */
export const interrupted = (sql: SqlClient.SqlClient) =>
  Effect.flatMap(
    reading(sql<SessionRow>`SELECT * FROM session WHERE activity_state = 'running' ORDER BY id`),
    sessionsOf
  )

const inHouse = (sql: SqlClient.SqlClient, house: House) => {
  const [from, before] = houseKeys(house)
  const addressed = sql`(address > ${from} AND address < ${before})`
  return house.scope === "private" && house.kind === "agent"
    ? sql`(${addressed} OR (address IS NULL AND coalesce(agent, ${defaultAgent}) = ${house.name}))`
    : addressed
}

const cursorOf = (cursor: string) =>
  Effect.mapError(
    Schema.decodeUnknown(ListCursor)(Buffer.from(cursor, "base64url").toString()),
    () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
  )

export const list = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.list")(function* ({ cursor, directory, house, limit: asked, search }: ListOptions) {
    const limit = clamp(asked, 50, 500)
    const after = cursor === undefined ? undefined : yield* cursorOf(cursor)
    if (search !== undefined && search.length > searchLimit) {
      return yield* new InvalidInput({ field: "search", details: `use ${searchLimit} characters at most` })
    }
    const rows = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const matching = search === undefined ? [] : [yield* matchingPrompts(sql, search)]
        return yield* sql<SessionRow>`SELECT * FROM session s WHERE ${sql.and([
          "TRUE",
          ...(directory === undefined ? [] : [sql`directory = ${directory}`]),
          ...(house === undefined ? [] : [inHouse(sql, house)]),
          ...(after === undefined ? [] : [sql`(time_updated, id) < (${after[0]}, ${after[1]})`]),
          ...matching
        ])} ORDER BY time_updated DESC, id DESC LIMIT ${limit + 1}`
      })
    )
    const items = yield* sessionsOf(rows.slice(0, limit))
    const last = items.at(-1)
    if (rows.length <= limit || last === undefined) return { items }
    return { items, cursor: Buffer.from(JSON.stringify([last.updatedAt, last.id])).toString("base64url") }
  })

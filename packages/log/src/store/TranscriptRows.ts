/** Selects messages with their parts and prompts: one, or a page in transcript order. Spec: PJ-6, IB-11. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import type { MessageID, SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { InputRow, MessageRow } from "../projection/Tables.ts"
import * as Dialect from "../storage/Dialect.ts"
import { clamp } from "../support/Clamp.ts"
import { makeBlocks, selectBySeq } from "./Content.ts"
import { assemble, eventsOf, type MessageRows } from "./Assemble.ts"
import type { MessagesOptions } from "./Pages.ts"
import { pathOf } from "./PathRows.ts"
import { readingTogether } from "./Reading.ts"
import { selectParts, selectPrompts } from "./RequestRows.ts"

/** The messages with their parts on the path, the inputs of their prompts, `waiting` inputs, and the events that hold their content. */
export const withParts = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  messages: ReadonlyArray<MessageRow>,
  path: HistoryPath.HistoryPath,
  waiting: ReadonlyArray<InputRow> = []
): Effect.Effect<MessageRows, SqlError.SqlError> =>
  Effect.gen(function* () {
    const blocks = makeBlocks(sql, sessionID)
    const parts = yield* selectParts(sql, sessionID, messages, path, blocks)
    const inputs = [...(yield* selectPrompts(sql, sessionID, messages)), ...waiting]
    const rows = { messages, parts, inputs }
    return { ...rows, events: yield* selectBySeq(sql, sessionID, eventsOf(rows), blocks) }
  })

export const message = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.message")(function* (sessionID: SessionID, messageID: MessageID) {
    const rows = yield* readingTogether(sql)(
      Effect.flatMap(
        sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message WHERE id = ${messageID} AND session = ${sessionKey(sql, sessionID)}`,
        (found) => withParts(sql, sessionID, found, HistoryPath.linear)
      )
    )
    return (yield* assemble(sessionID, rows))[0]
  })

const selectPage = (sql: SqlClient.SqlClient, { cursor, order = "asc", sessionID }: MessagesOptions, limit: number) =>
  order === "asc"
    ? sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
        WHERE session = ${sessionKey(sql, sessionID)} AND seq > ${cursor ?? -1} ORDER BY seq LIMIT ${limit}`
    : sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
        WHERE session = ${sessionKey(sql, sessionID)} AND seq < ${cursor ?? Number.MAX_SAFE_INTEGER} ORDER BY seq DESC LIMIT ${limit}`

const selectPathPage = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { cursor, order = "asc", sessionID }: MessagesOptions,
  path: HistoryPath.HistoryPath,
  limit: number
) {
  const [from, to] = order === "asc" ? [(cursor ?? -1) + 1, HistoryPath.open] : [0, (cursor ?? HistoryPath.open) - 1]
  const ranges = HistoryPath.between(path, from, to)
  const rows: Array<MessageRow> = []
  for (const [first, last] of order === "asc" ? ranges : ranges.toReversed()) {
    if (rows.length >= limit) break
    const direction = order === "asc" ? sql`` : sql` DESC`
    const found = yield* sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND seq BETWEEN ${first} AND ${last}
      ORDER BY seq${direction} LIMIT ${limit - rows.length}`
    rows.push(...found)
  }
  return rows
})

/** The session's path, and the number of its messages. Only a path with gaps is counted by ranges. */
const selectExtent = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { branch = "path", sessionID }: MessagesOptions
) {
  const [extent] = yield* sql<{ readonly total: number; readonly path: string | null }>`SELECT count(*) AS total,
    (SELECT path FROM session WHERE id = ${sessionID}) AS path FROM session_message
    WHERE session = ${sessionKey(sql, sessionID)}`
  const path = branch === "all" ? HistoryPath.linear : pathOf(extent?.path)
  if (HistoryPath.isLinear(path)) return { path, total: extent?.total ?? 0 }
  const [on] = yield* sql<{
    readonly total: number
  }>`SELECT count(*) AS total FROM ${Dialect.ranges(sql, sql`${JSON.stringify(path)}`)}
    CROSS JOIN session_message m WHERE m.session = ${sessionKey(sql, sessionID)}
    AND ${Dialect.inRange(sql, sql`m.seq`)}`
  return { path, total: on?.total ?? 0 }
})

export const messages = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.messages")(function* (options: MessagesOptions) {
    const { sessionID } = options
    const limit = clamp(options.limit, 50, 500)
    const { found, rows, total } = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const { path, total } = yield* selectExtent(sql, options)
        const found = yield* HistoryPath.isLinear(path)
          ? selectPage(sql, options, limit + 1)
          : selectPathPage(sql, options, path, limit + 1)
        return { found, total, rows: yield* withParts(sql, sessionID, found.slice(0, limit), path) }
      })
    )
    const items = yield* assemble(sessionID, rows)
    const last = items.at(-1)
    return found.length > limit && last !== undefined ? { items, total, cursor: last.seq } : { items, total }
  })

/** Selects messages with their parts and prompts: one, or a page in transcript order. Spec: PJ-6, IB-11. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { MessageID, SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { InputRow, MessageRow } from "../projection/Tables.ts"
import { clamp } from "../support/Clamp.ts"
import { assemble, eventsOf, type MessageRows } from "./Assemble.ts"
import { selectBySeq } from "./EventsBySeq.ts"
import type { MessagesOptions } from "./Pages.ts"
import { readingTogether } from "./Reading.ts"
import { selectParts, selectPrompts } from "./RequestRows.ts"

/** The messages with their parts, the inputs of their prompts, `waiting` inputs, and the events that hold their content. */
export const withParts = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  messages: ReadonlyArray<MessageRow>,
  waiting: ReadonlyArray<InputRow> = []
): Effect.Effect<MessageRows, SqlError.SqlError> =>
  Effect.gen(function* () {
    const parts = yield* selectParts(sql, sessionID, messages)
    const inputs = [...(yield* selectPrompts(sql, sessionID, messages)), ...waiting]
    const rows = { messages, parts, inputs }
    return { ...rows, events: yield* selectBySeq(sql, sessionID, eventsOf(rows)) }
  })

export const message = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.message")(function* (sessionID: SessionID, messageID: MessageID) {
    const rows = yield* readingTogether(sql)(
      Effect.flatMap(
        sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message WHERE id = ${messageID} AND session = ${sessionKey(sql, sessionID)}`,
        (found) => withParts(sql, sessionID, found)
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

export const messages = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.messages")(function* (options: MessagesOptions) {
    const { sessionID } = options
    const limit = clamp(options.limit, 50, 500)
    const { found, rows, total } = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const found = yield* selectPage(sql, options, limit + 1)
        const [count] = yield* sql<{ readonly total: number }>`
          SELECT count(*) AS total FROM session_message WHERE session = ${sessionKey(sql, sessionID)}`
        return { found, total: count?.total ?? 0, rows: yield* withParts(sql, sessionID, found.slice(0, limit)) }
      })
    )
    const items = yield* assemble(sessionID, rows)
    const last = items.at(-1)
    return found.length > limit && last !== undefined ? { items, total, cursor: last.seq } : { items, total }
  })

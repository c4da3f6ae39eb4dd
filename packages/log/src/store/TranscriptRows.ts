/** Selects messages with their parts and prompts: one, or a page in transcript order. Spec: PJ-6, IB-11. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { MessageID, SessionID } from "../domain/Identifiers.ts"
import type { MessageRow, PartRow } from "../projection/Tables.ts"
import { clamp } from "../support/Clamp.ts"
import { assemble, type MessageRows, partOwner } from "./Assemble.ts"
import type { MessagesOptions } from "./Pages.ts"
import { readingTogether } from "./Reading.ts"
import { selectPrompts } from "./RequestRows.ts"

/** Limits the bound parameters per statement. */
const chunksOf = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / 256) }, (_, i) => items.slice(i * 256, (i + 1) * 256))

/** The parts of these messages. A part's sequence number is always greater than its message's. */
const selectParts = (sql: SqlClient.SqlClient, sessionID: SessionID, messages: ReadonlyArray<MessageRow>) =>
  Effect.map(
    Effect.forEach(
      chunksOf(messages.filter(({ type }) => type === "assistant" || type === "shell").map(partOwner)),
      (ids) =>
        sql<PartRow>`SELECT * FROM session_part
          WHERE session_id = ${sessionID} AND message_id IN ${sql.in(ids)} ORDER BY seq`
    ),
    (pages) => pages.flat()
  )

/** The messages with their parts, and with the inputs of their prompts. */
export const withParts = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  messages: ReadonlyArray<MessageRow>
): Effect.Effect<MessageRows, SqlError.SqlError> =>
  Effect.gen(function* () {
    const parts = yield* selectParts(sql, sessionID, messages)
    const prompted = messages.filter(({ type }) => type === "user").map(({ seq }) => seq)
    const least = prompted.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER)
    const greatest = prompted.reduce((a, b) => Math.max(a, b), 0)
    const inputs = prompted.length === 0 ? [] : yield* selectPrompts(sql, sessionID, least, greatest)
    return { messages, parts, inputs }
  })

export const message = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.message")(function* (sessionID: SessionID, messageID: MessageID) {
    const rows = yield* readingTogether(sql)(
      Effect.flatMap(
        sql<MessageRow>`SELECT * FROM session_message WHERE id = ${messageID} AND session_id = ${sessionID}`,
        (found) => withParts(sql, sessionID, found)
      )
    )
    return (yield* assemble(sessionID, rows))[0]
  })

const selectPage = (sql: SqlClient.SqlClient, { cursor, order = "asc", sessionID }: MessagesOptions, limit: number) =>
  order === "asc"
    ? sql<MessageRow>`SELECT * FROM session_message
        WHERE session_id = ${sessionID} AND seq > ${cursor ?? -1} ORDER BY seq LIMIT ${limit}`
    : sql<MessageRow>`SELECT * FROM session_message
        WHERE session_id = ${sessionID} AND seq < ${cursor ?? Number.MAX_SAFE_INTEGER} ORDER BY seq DESC LIMIT ${limit}`

export const messages = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.messages")(function* (options: MessagesOptions) {
    const { sessionID } = options
    const limit = clamp(options.limit, 50, 500)
    const { found, rows, total } = yield* readingTogether(sql)(
      Effect.gen(function* () {
        const found = yield* selectPage(sql, options, limit + 1)
        const [count] = yield* sql<{ readonly total: number }>`
          SELECT count(*) AS total FROM session_message WHERE session_id = ${sessionID}`
        return { found, total: count?.total ?? 0, rows: yield* withParts(sql, sessionID, found.slice(0, limit)) }
      })
    )
    const items = yield* assemble(sessionID, rows)
    const last = items.at(-1)
    return found.length > limit && last !== undefined ? { items, total, cursor: last.seq } : { items, total }
  })

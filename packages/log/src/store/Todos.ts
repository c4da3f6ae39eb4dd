/** Defines a session's todo list and reads it from the last `todo` call that wrote it. Spec: TO-91..TO-93. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { TodoItem, TodoItems } from "../domain/Todo.ts"
import { sessionKey } from "../log/EventRow.ts"
import { type EventsBySeq, selectBySeq } from "./EventsBySeq.ts"
import { onPath } from "./PathRows.ts"

type CallRow = { readonly seq: number; readonly called: number | null; readonly settled: number }

const decode = Schema.decodeUnknownOption(Schema.Struct({ items: TodoItems }))

const dataAt = (events: EventsBySeq, seq: number | null) => {
  const found = seq === null ? undefined : events.get(seq)
  return found !== undefined && Either.isRight(found) ? found.right : undefined
}

/**
 * The list that a call wrote; undefined if it wrote none. Results record whether they changed the list. Calls that only
 * read are skipped, because one that ran beside a change may hold the earlier list. Results of releases up to 0.1 do
 * not record it: there a change has items in its input. Output of another tool with this name is not a list.
 */
const listOf = ({ called, settled }: CallRow, events: EventsBySeq): ReadonlyArray<TodoItem> | undefined => {
  const [call, result] = [dataAt(events, called), dataAt(events, settled)]
  if (result?.type !== "session.next.tool.success") return undefined
  const { structured } = result.data
  const asked = call?.type === "session.next.tool.called" && call.data.input["items"] !== undefined
  if (!(structured["changed"] ?? asked)) return undefined
  return Option.match(decode(structured), { onNone: () => [], onSome: ({ items }) => items })
}

/** Calls per query: usually one of the last few wrote the list. */
const portion = 8

/** The current list: that of the history path. */
export const selectTodos = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID
): Effect.Effect<ReadonlyArray<TodoItem>, SqlError.SqlError> =>
  Effect.gen(function* () {
    let before = Number.MAX_SAFE_INTEGER
    // A call belongs to the path if its message does (HP-3).
    const seqOfMessage = sql`(SELECT m.seq FROM session_message m WHERE m.id = p.message_id)`
    for (;;) {
      const calls = yield* sql<CallRow>`SELECT seq, called, settled FROM session_part p
        WHERE session = ${sessionKey(sql, sessionID)} AND name = 'todo' AND status = 'completed' AND seq < ${before}
          ${onPath(sql, sessionID, seqOfMessage)}
        ORDER BY seq DESC LIMIT ${portion}`
      const seqs = calls.flatMap(({ called, settled }) => (called === null ? [settled] : [called, settled]))
      const events = yield* selectBySeq(sql, sessionID, seqs)
      for (const call of calls) {
        const list = listOf(call, events)
        if (list !== undefined) return list
        before = call.seq
      }
      if (calls.length < portion) return []
    }
  })

/** Defines a session's todo list and reads it from the last `todo` call that wrote it. Spec: TO-91..TO-93. */
import type { SqlClient } from "@effect/sql"
import { Effect, Option, Schema } from "effect"
import type { SessionID } from "../Identifiers.ts"

/** One entry of a todo list. */
export const TodoItem = Schema.Struct({
  text: Schema.NonEmptyString.pipe(Schema.maxLength(500)).annotations({ description: "What is to be done" }),
  status: Schema.Literal("pending", "in_progress", "done", "cancelled")
})
export type TodoItem = typeof TodoItem.Type

/** A whole list. */
export const TodoItems = Schema.Array(TodoItem).pipe(Schema.maxItems(100))

const decode = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Struct({ structured: Schema.Struct({ items: TodoItems }) }))
)

/**
 * The current list. Results record whether they changed it. Calls that only read are skipped, because one that ran
 * beside a change may hold the earlier list. Results of releases up to 0.1 do not record it: there a change has items
 * in its input. Output of another tool with this name is not a list.
 */
export const selectTodos = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<{ readonly settled: string }>`SELECT settled FROM session_part
      WHERE session_id = ${sessionID} AND name = 'todo' AND status = 'completed'
      AND coalesce(json_extract(settled, '$.structured.changed'), json_type(called, '$.input.items') IS NOT NULL)
      ORDER BY seq DESC LIMIT 1`,
    ([row]): ReadonlyArray<TodoItem> =>
      Option.match(decode(row?.settled), { onNone: () => [], onSome: ({ structured }) => structured.items })
  )

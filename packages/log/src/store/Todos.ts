/** Defines a session's todo list and reads it from the last `todo` call that wrote it. Spec: TO-91..TO-93. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { TodoItem, TodoItems } from "../domain/Todo.ts"

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

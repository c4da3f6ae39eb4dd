/** Reads and changes the rows that a database stores for small logs. */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Checked, checksumOf, selectEvents } from "../../packages/log/src/log/EventRow.ts"
import { isPostgres } from "../../packages/log/src/storage/Dialect.ts"
import { type TableName, tables } from "../../packages/log/src/projection/Tables.ts"

export * from "../contracts/Samples.ts"

/** The stored rows of a session, as the log reads them. */
export const rowsOf = (sessionID: SessionID) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => selectEvents(sql, sql`WHERE s.session_id = ${sessionID} ORDER BY e.seq`))

/** Selects rows of a projected table as the fold makes them: with the ids of sessions in place of their numbers. */
export const projected = (table: TableName, rest: string, parameters: ReadonlyArray<string> = []) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const from =
      table === "session"
        ? table
        : `${table} JOIN (SELECT session, session_id FROM event_sequence) AS head USING (session)`
    return sql.unsafe<object>(`SELECT ${tables[table].columns.join(", ")} FROM ${from} ${rest}`, parameters)
  })

/** Replaces the type and payload of a stored row, and their checksum, as if a later build had written it. */
export const storeAs = Effect.fnUntraced(function* (
  sessionID: SessionID,
  seq: number,
  as: { readonly type: string; readonly data?: string }
) {
  const sql = yield* SqlClient.SqlClient
  const row = (yield* rowsOf(sessionID))[seq]
  if (row === undefined) return yield* Effect.dieMessage(`there is no event ${seq}`)
  const changed = { ...row, ...as } as Checked & { readonly position: number }
  yield* sql`INSERT INTO event_type (type, name) SELECT max(type) + 1, ${as.type} FROM event_type
    WHERE NOT EXISTS (SELECT 1 FROM event_type WHERE name = ${as.type}) HAVING count(*) > 0`
  yield* sql`UPDATE event SET type = (SELECT type FROM event_type WHERE name = ${as.type}), data = ${changed.data},
    checksum = ${checksumOf(changed)} WHERE position = ${changed.position}`
})

/** The payload of an event with one text in place of another. */
export const dataWith = (sql: SqlClient.SqlClient, from: string, to: string) =>
  isPostgres(sql) ? sql`CAST(replace(CAST(data AS text), ${from}, ${to}) AS json)` : sql`replace(data, ${from}, ${to})`

export const tableNames = [
  "event_sequence",
  "session_floor",
  "content",
  "kept_decision",
  "event",
  "session",
  "session_input",
  "session_message",
  "session_instruction",
  "session_leaf",
  "session_label",
  "session_part"
] as const

/** Every row of the log's tables, to compare before and after. */
export const contents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const order = (table: string) =>
    isPostgres(sql) ? "each::text" : `1, 2${table === "session_instruction" ? "" : ", 3"}`
  const rows = yield* Effect.forEach(tableNames, (table) =>
    sql.unsafe(`SELECT * FROM ${table} AS each ORDER BY ${order(table)}`)
  )
  return Object.fromEntries(tableNames.map((table, index) => [table, rows[index] ?? []]))
})

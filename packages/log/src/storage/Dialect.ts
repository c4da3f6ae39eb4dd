/**
 * The few parts of statements that SQLite and PostgreSQL write differently. Everything else in the stores' statements is
 * plain SQL that both understand. Spec: PG-2 in specs/postgres.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Effect } from "effect"

type Sql = SqlClient.SqlClient

export const isPostgres = (sql: Sql): boolean => sql.onDialectOrElse({ pg: () => true, orElse: () => false })

/** One of two texts. */
const either = (sql: Sql, postgres: string, sqlite: string) => sql.literal(isPostgres(sql) ? postgres : sqlite)

/** The newest position ever given, as a value in a statement. */
export const newestPosition = (sql: Sql): Statement.Fragment =>
  either(sql, "(SELECT position FROM log_head)", "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)")

/** A text in a JSON column; null if it is absent or cannot be a text of the database. */
export const textIn = (sql: Sql, column: string, ...path: ReadonlyArray<string>): string =>
  isPostgres(sql) ? `json_text(${column}, '${path.join("', '")}')` : `json_extract(${column}, '$.${path.join(".")}')`

/** A number in a JSON column. */
export const numberIn = (sql: Sql, column: string, ...path: ReadonlyArray<string>): Statement.Fragment => {
  const text = textIn(sql, column, ...path)
  return either(sql, `CAST(${text} AS DOUBLE PRECISION)`, text)
}

/** Whether a JSON column has `true` in a field. */
export const isTrueIn = (sql: Sql, column: string, field: string): Statement.Fragment => {
  const text = textIn(sql, column, field)
  return either(sql, `${text} = 'true'`, text)
}

/** The values of a JSON array, as a table `j` with the column `value`: one text of a statement for any number of values. */
export const numbers = (sql: Sql, values: ReadonlyArray<number>): Statement.Fragment => {
  const array = JSON.stringify(values)
  return isPostgres(sql)
    ? sql`(SELECT CAST(value AS BIGINT) AS value FROM json_array_elements_text(CAST(${array} AS json))) AS j`
    : sql`json_each(${array}) AS j`
}

/** JSON of texts as the database stores them: UTF-8 has no half of a surrogate pair, and PostgreSQL no U+0000. */
const jsonOf = (sql: Sql, values: ReadonlyArray<unknown>): string => {
  const isNarrow = isPostgres(sql)
  return JSON.stringify(values, (_, value: unknown) => {
    if (typeof value !== "string") return value
    const text = Buffer.from(value).toString()
    return isNarrow ? text.replaceAll("\0", "\uFFFD") : text
  })
}

/** `numbers` of texts. */
export const texts = (sql: Sql, values: ReadonlyArray<string>): Statement.Fragment => {
  const array = jsonOf(sql, values)
  return isPostgres(sql)
    ? sql`json_array_elements_text(CAST(${array} AS json)) AS j (value)`
    : sql`json_each(${array}) AS j`
}

/** Rows of texts and numbers, as a table `j`: `j.value ->> 0` is the first column, as a text; `j.key` orders the rows. */
export const rows = (sql: Sql, values: ReadonlyArray<ReadonlyArray<string | number | null>>): Statement.Fragment => {
  const array = jsonOf(sql, values)
  return isPostgres(sql)
    ? sql`json_array_elements(CAST(${array} AS json)) WITH ORDINALITY AS j (value, key)`
    : sql`json_each(${array}) AS j`
}

/** The ranges of a history path, as a table `r`. */
export const ranges = (sql: Sql, path: Statement.Fragment): Statement.Fragment =>
  isPostgres(sql) ? sql`json_array_elements(CAST(${path} AS json)) AS r (value)` : sql`json_each(${path}) AS r`

/** Whether a column is in a range `r`. */
export const inRange = (sql: Sql, column: Statement.Fragment): Statement.Fragment =>
  isPostgres(sql)
    ? sql`${column} BETWEEN CAST(r.value ->> 0 AS BIGINT) AND CAST(r.value ->> 1 AS BIGINT)`
    : sql`${column} BETWEEN r.value ->> 0 AND r.value ->> 1`

/** `LIKE` that ignores the case of the letters A to Z. */
export const like = (sql: Sql): Statement.Fragment => either(sql, "ILIKE", "LIKE")

/** The function that returns the least of its arguments. */
export const least = (sql: Sql): Statement.Fragment => either(sql, "least", "min")

/** Names a subquery, where it must have a name. */
export const named = (sql: Sql, name: string): Statement.Fragment => either(sql, ` AS ${name}`, "")

/** Joins tables that SQLite is to walk in the order in which they are written. */
export const joinInOrder = (sql: Sql): Statement.Fragment => either(sql, "JOIN", "CROSS JOIN")

/** Names the index where the planner must be told. */
export const indexedBy = (sql: Sql, index: string): Statement.Fragment => either(sql, "", `INDEXED BY ${index}`)

export const bytesOf = (sql: Sql, column: string) => `octet_length(${isPostgres(sql) ? `${column}::text` : column})`

/** The bytes of a column as it is stored, without reading a long value. PostgreSQL may have compressed the value. */
export const storedBytesOf = (sql: Sql, column: string): Statement.Fragment =>
  either(sql, `pg_column_size(${column})`, `octet_length(${column})`)

/** Lets no other transaction append or remove until this one ends. SQLite's write transactions are alone. */
export const lockLog = (sql: Sql) => (isPostgres(sql) ? sql`SELECT 1 FROM log_head FOR UPDATE` : Effect.void)

/** Locks the selected rows until the transaction ends. SQLite's write transactions are alone. */
export const forUpdate = (sql: Sql): Statement.Fragment => either(sql, "FOR UPDATE", "")

/** The text with parameters as the database writes them. */
export const placed = (sql: Sql, text: string): string => (isPostgres(sql) ? numbered(text) : text)

/** Writes the parameters of a text as PostgreSQL does: `$1` in place of the first `?`. The text has no other `?`. */
export const numbered = (text: string): string => {
  let count = 0
  return text.replace(/\?/g, () => `$${(count += 1)}`)
}

/**
 * The statements that write joined changes to the projected tables: one per table and shape, however many rows. They
 * take columns as arrays. The rules are those of `SqlTables.ts` of the log. Spec: PG-5 in specs/postgres.md.
 */
import { type AnyRow, type AnyUpdate, describe, type Joined } from "@daybook/log/projection/Change"
import { columnsOf, type SessionKeys } from "@daybook/log/projection/SqlTables"
import { type TableName, tableNames, tables, type Value } from "@daybook/log/projection/Tables"
import type { Sent } from "./Connections.ts"
import { broken } from "./Events.ts"

const numbers: ReadonlySet<string> = new Set([
  "session",
  "seq",
  "admitted_seq",
  "promoted_seq",
  "withdrawn_seq",
  "first_kept",
  "all_kept",
  "settled",
  "opened",
  "raw",
  "called",
  "progress",
  "time_created",
  "time_updated",
  "pruned_seq",
  "baseline_seq",
  "provisional",
  "turns",
  "tool_calls",
  "duration_ms"
])

const amounts: ReadonlySet<string> = new Set([
  "cost",
  "tokens_input",
  "tokens_output",
  "tokens_reasoning",
  "tokens_cache_read",
  "tokens_cache_write"
])

const json: ReadonlySet<string> = new Set(["imported", "path", "forked"])

const typeOf = (table: TableName, column: string): string => {
  if (numbers.has(column) || (table === "session" && column === "epoch")) return "bigint"
  if (amounts.has(column)) return "double precision"
  return table === "session" && json.has(column) ? "json" : "text"
}

const columnsFrom = (rows: ReadonlyArray<AnyRow>, columns: ReadonlyArray<string>): Array<ReadonlyArray<Value>> =>
  columns.map((column) => rows.map((row) => row[column] ?? null))

const storedName = (table: TableName, column: string): string =>
  table !== "session" && column === "session_id" ? "session" : column

/** The row as it is stored: with its session's number. */
const stored = (row: AnyRow, keys: SessionKeys): AnyRow => ({
  ...row,
  session: keys.get(String(row["session_id"])) ?? null
})

/** `unnest($1::bigint[], $2::text[])`. */
const unnest = (table: TableName, columns: ReadonlyArray<string>): string =>
  `unnest(${columns.map((column, index) => `$${index + 1}::${typeOf(table, column)}[]`).join(", ")})`

/** Finds the message ids that belong to a waiting input or to another promoted one (IN-6). */
const clashes: { readonly [Name in TableName]?: string } = {
  session_input:
    "CASE WHEN EXISTS (SELECT 1 FROM session_message m WHERE m.id = session_input.id " +
    "AND session_input.promoted_seq IS DISTINCT FROM m.seq) THEN id END AS clash",
  session_message:
    "CASE WHEN EXISTS (SELECT 1 FROM session_input i WHERE i.id = session_message.id " +
    "AND i.promoted_seq IS DISTINCT FROM session_message.seq) THEN id END AS clash"
}

const insert = (table: TableName, rows: ReadonlyArray<AnyRow>, keys: SessionKeys): Sent => {
  const columns = columnsOf(table)
  const own = table === "session" ? rows : rows.map((row) => stored(row, keys))
  const clash = clashes[table]
  const text = `INSERT INTO ${table} (${columns.join(", ")}) SELECT * FROM ${unnest(table, columns)}`
  return {
    text:
      clash === undefined
        ? text
        : `WITH written AS (${text} RETURNING ${clash})
          SELECT refuse('${broken}', 'session_message', min(clash) || ' is reserved by an admitted prompt')
          FROM written HAVING count(clash) > 0`,
    values: columnsFrom(own, columns)
  }
}

/** Updates that set the same columns and add to the same columns. */
interface Group {
  readonly set: ReadonlyArray<string>
  readonly add: ReadonlyArray<string>
  readonly updates: Array<AnyUpdate>
}

const byShape = (updates: Iterable<AnyUpdate>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const update of updates) {
    const [set, add] = [Object.keys(update.set), update.add.map(([column]) => column)]
    const name = `${set.join()}+${add.join()}`
    const group = groups.get(name) ?? { set, add, updates: [] }
    group.updates.push(update)
    groups.set(name, group)
  }
  return [...groups.values()]
}

/** `cost = t.cost + v.a1 + v.a2`: one sum per column, its amounts in order. */
const sums = (add: ReadonlyArray<string>, amount: (index: number) => string): ReadonlyArray<string> =>
  [...new Set(add)].map((name) => {
    const terms = add.flatMap((other, index) => (other === name ? [amount(index)] : []))
    return `${name} = ${[`t.${name}`, ...terms].join(" + ")}`
  })

const updateText = (table: TableName, { add, set }: Omit<Group, "updates">): string => {
  const key = tables[table].key.map((column) => storedName(table, column))
  const once: ReadonlyArray<string> = tables[table].once
  const columns = [...set, ...add, ...key]
  const column = (index: number) => `v.c${index + 1}`
  const assign = [...set.map((name, i) => `${name} = ${column(i)}`), ...sums(add, (i) => column(set.length + i))]
  const where = [
    ...key.map((name, i) => `t.${name} = ${column(set.length + add.length + i)}`),
    // Not IS NULL: an index of the rows with a null has an entry for each row of the session that ever had one.
    ...set.filter((name) => once.includes(name)).map((name) => `num_nulls(t.${name}) = 1`)
  ]
  const names = columns.map((_, index) => `c${index + 1}`).join(", ")
  const [count, reason] = [`$${columns.length + 1}::bigint`, `$${columns.length + 2}::text`]
  return `WITH written AS (
      UPDATE ${table} AS t SET ${assign.join(", ")} FROM ${unnest(table, columns)} AS v (${names})
      WHERE ${where.join(" AND ")} RETURNING 1)
    SELECT refuse('${broken}', '${table}', ${reason}) FROM written HAVING count(*) <> ${count}`
}

const update = (table: TableName, { add, set, updates }: Group, keys: SessionKeys): Sent => {
  const { key } = tables[table]
  const values = [
    ...set.map((column) => updates.map((each) => each.set[column] ?? null)),
    ...add.map((_, index) => updates.map((each) => each.add[index]?.[1] ?? 0)),
    ...key.map((column) => updates.map((each) => stored(each.key, keys)[storedName(table, column)] ?? null))
  ]
  const first = updates[0]?.key ?? {}
  return {
    text: updateText(table, { add, set }),
    values: [
      ...values,
      updates.length,
      `${describe(table, first)} does not exist, or a column that is set once is already set`
    ]
  }
}

/**
 * The statements that write the changes, in order; one that finds other rows than the changes suppose fails. `keys` has every
 * session of the changes.
 */
export const writes = (joined: Joined, keys: SessionKeys): ReadonlyArray<Sent> =>
  tableNames.flatMap((table) => {
    const { inserts, updates } = joined[table]
    return [
      ...(inserts.size === 0 ? [] : [insert(table, [...inserts.values()], keys)]),
      ...byShape(updates.values()).map((group) => update(table, group, keys))
    ]
  })

/**
 * Writes joined changes to the projected tables in a few statements, however many rows. Runs inside the caller's
 * transaction. Statements come in a few sizes only, so that the driver's cache of prepared statements stays effective.
 * Spec: PJ-4.
 */
import { Array as Arr } from "effect"
import type { Statements } from "../storage/Connection.ts"
import { type AnyRow, type AnyUpdate, describe, type Joined, type Refusal } from "./Change.ts"
import { type TableName, tableNames, tables, type Value } from "./Tables.ts"

/** Rows per statement, largest first; any number of rows is a sum of a few of these. */
const sizes = [64, 16, 4, 3, 2, 1] as const

/** Splits rows into runs of the sizes above. */
const inRuns = <A>(rows: ReadonlyArray<A>): ReadonlyArray<Arr.NonEmptyReadonlyArray<A>> => {
  const runs: Array<Arr.NonEmptyReadonlyArray<A>> = []
  let from = 0
  for (const size of sizes) {
    for (; rows.length - from >= size; from += size) {
      const run = rows.slice(from, from + size)
      if (Arr.isNonEmptyReadonlyArray(run)) runs.push(run)
    }
  }
  return runs
}

/** Statement texts by name. There are a few dozen, and building one costs as much as running it. */
const texts = new Map<string, string>()

const textOf = (name: string, write: () => string): string => {
  const known = texts.get(name)
  if (known !== undefined) return known
  const text = write()
  texts.set(name, text)
  return text
}

const placeholders = (columns: number, rows: number): string => {
  const row = `(${Array.from({ length: columns }, () => "?").join(", ")})`
  return Array.from({ length: rows }, () => row).join(", ")
}

/** The numbers of sessions. Rows in memory name their session by its id; stored rows hold its number. */
export type SessionKeys = ReadonlyMap<string, number>

const storedName = (table: TableName, column: string): string =>
  table !== "session" && column === "session_id" ? "session" : column

export const columnsOf = (table: TableName) => tables[table].columns.map((column) => storedName(table, column))

const stored = (row: AnyRow, keys: SessionKeys): AnyRow => ({
  ...row,
  session: keys.get(String(row["session_id"])) ?? null
})

const values = (rows: ReadonlyArray<AnyRow>, columns: ReadonlyArray<string>): Array<Value> => {
  const flat: Array<Value> = []
  for (const row of rows) for (const column of columns) flat.push(row[column] ?? null)
  return flat
}

export const insertRows = <Row = never>(
  statements: Statements,
  table: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<AnyRow>,
  returning?: string
): ReadonlyArray<Row> =>
  inRuns(rows).flatMap((run): ReadonlyArray<Row> => {
    const text = textOf(
      `insert ${table} ${run.length}`,
      () =>
        `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${placeholders(columns.length, run.length)}` +
        (returning === undefined ? "" : ` RETURNING ${returning}`)
    )
    if (returning !== undefined) return statements.all<Row>(text, values(run, columns))
    statements.run(text, values(run, columns))
    return []
  })

type Shape = { readonly set: ReadonlyArray<string>; readonly add: ReadonlyArray<string> }

/** `cost = cost + ? + ?`: one sum per column, its amounts in order. */
const sums = (add: ReadonlyArray<string>, current: (column: string) => string, amount: (index: number) => string) =>
  Arr.dedupe(add).map((name) => {
    const amounts = add.flatMap((other, index) => (other === name ? [amount(index)] : []))
    return `${name} = ${[current(name), ...amounts].join(" + ")}`
  })

/** Builds the statement for updates of one shape: the same columns set and the same columns added to. */
export const updateStatement = (table: TableName, { add, set }: Shape, rows: number): string => {
  const { once } = tables[table]
  const key = tables[table].key.map((column) => storedName(table, column))
  const guarded = set.filter((column) => (once as ReadonlyArray<string>).includes(column))
  if (rows === 1) {
    const assign = [
      ...set.map((name) => `${name} = ?`),
      ...sums(
        add,
        (name) => name,
        () => "?"
      )
    ]
    const where = [...key.map((column) => `${column} = ?`), ...guarded.map((column) => `${column} IS NULL`)]
    return `UPDATE ${table} SET ${assign.join(", ")} WHERE ${where.join(" AND ")}`
  }
  const column = (index: number) => `v.column${index + 1}`
  const assign = [
    ...set.map((name, i) => `${name} = ${column(i)}`),
    ...sums(
      add,
      (name) => `t.${name}`,
      (i) => column(set.length + i)
    )
  ]
  const where = [
    ...key.map((name, i) => `t.${name} = ${column(set.length + add.length + i)}`),
    ...guarded.map((name) => `t.${name} IS NULL`)
  ]
  const width = set.length + add.length + key.length
  return (
    `UPDATE ${table} AS t SET ${assign.join(", ")} ` +
    `FROM (VALUES ${placeholders(width, rows)}) AS v WHERE ${where.join(" AND ")}`
  )
}

/** Updates that set the same columns and add to the same columns. */
type Group = { readonly name: string; readonly shape: Shape; readonly updates: Array<AnyUpdate> }

const byShape = (updates: Iterable<AnyUpdate>): Iterable<Group> => {
  const groups = new Map<string, Group>()
  for (const update of updates) {
    const shape = { set: Object.keys(update.set), add: update.add.map(([column]) => column) }
    const name = `${shape.set.join()}+${shape.add.join()}`
    const group = groups.get(name)
    if (group === undefined) groups.set(name, { name, shape, updates: [update] })
    else group.updates.push(update)
  }
  return groups.values()
}

const updateRows = (
  statements: Statements,
  table: TableName,
  updates: Iterable<AnyUpdate>,
  keys: SessionKeys
): Refusal | undefined => {
  const { key } = tables[table]
  for (const { name, shape, updates: group } of byShape(updates)) {
    for (const run of inRuns(group)) {
      const parameters: Array<Value> = []
      for (const update of run) {
        for (const column of shape.set) parameters.push(update.set[column] ?? null)
        for (const [, amount] of update.add) parameters.push(amount)
        const at = stored(update.key, keys)
        for (const column of key) parameters.push(at[storedName(table, column)] ?? null)
      }
      const write = () => updateStatement(table, shape, run.length)
      // Only a rebuild or a replay writes many steps of one session at once: not worth caching.
      const text = shape.add.length > 12 ? write() : textOf(`update ${table} ${name} ${run.length}`, write)
      if (statements.run(text, parameters) === run.length) continue
      const details = `${describe(table, run[0].key)} does not exist, or a column that is set once is already set`
      return { table, details }
    }
  }
  return undefined
}

/**
 * Finds the message ids that belong to a waiting input or to another promoted one (IN-6). Inputs are written before the
 * messages that they become, so each insert sees the other table as the transaction leaves it.
 */
const reserved: { readonly [Name in TableName]?: string } = {
  session_input:
    "iif(EXISTS (SELECT 1 FROM session_message m WHERE m.id = session_input.id " +
    "AND session_input.promoted_seq IS NOT m.seq), id, NULL) AS clash",
  session_message:
    "iif(EXISTS (SELECT 1 FROM session_input i WHERE i.id = session_message.id " +
    "AND i.promoted_seq IS NOT session_message.seq), id, NULL) AS clash"
}

type Inserted = { readonly clash: string | null }

/** Writes the changes in the caller's transaction; roll back after a refusal. `keys` has every session. */
export const write = (statements: Statements, joined: Joined, keys: SessionKeys): Refusal | undefined => {
  for (const table of tableNames) {
    const { inserts, updates } = joined[table]
    const rows = [...inserts.values()]
    if (rows.length > 0) {
      const own = table === "session" ? rows : rows.map((row) => stored(row, keys))
      const found = insertRows<Inserted>(statements, table, columnsOf(table), own, reserved[table])
      const clash = found.find((row) => row.clash !== null)?.clash
      if (typeof clash === "string") {
        return { table: "session_message", details: `${clash} is reserved by an admitted prompt` }
      }
    }
    const refusal = updates.size > 0 ? updateRows(statements, table, updates.values(), keys) : undefined
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/**
 * Represents changes to projected rows as data. One event makes a few changes; those of many events join into one
 * insert or update per row, so that a group commit writes each row once. Joining never alters the outcome: applying the
 * joined changes equals applying each change (PJ-11).
 */
import { Either } from "effect"
import { type Rows, type TableName, tables, type Value } from "./Tables.ts"

// Converts values to the contents of columns.

export const json = (value: unknown): string => JSON.stringify(value)

/** Text columns are UTF-8, which cannot encode a lone surrogate: it becomes U+FFFD here, not in the driver. */
export const plain = (value: string): string => value.replace(/\p{Surrogate}/gu, "\uFFFD")

/** An absent text is null. */
export const plainOrNull = (value: string | undefined): string | null => (value === undefined ? null : plain(value))

export type Insert<Name extends TableName> = {
  readonly op: "insert"
  readonly table: Name
  readonly row: Rows[Name]
}
/** Sets columns of the row with `key` and adds to numbers. Refused if it is missing or a `once` column is set. */
export type Update<Name extends TableName> = {
  readonly op: "update"
  readonly table: Name
  readonly key: { readonly [Column in string]: Value }
  readonly set: Partial<Rows[Name]>
  readonly add?: Partial<Rows[Name]>
}
export type Change = { readonly [Name in TableName]: Insert<Name> | Update<Name> }[TableName]

/** A change that contradicts the rows. */
export type Refusal = { readonly table: TableName; readonly details: string }

export type AnyRow = { readonly [column: string]: Value }
/** The amounts to add, by column, in order: sums of fractions depend on it, and a rebuild must agree (PJ-11). */
export type Additions = ReadonlyArray<readonly [column: string, amount: number]>
export type AnyUpdate = { readonly key: AnyRow; readonly set: AnyRow; readonly add: Additions }

/** Joined changes per table: rows to insert and rows to update. */
export type Joined = {
  readonly [Name in TableName]: { readonly inserts: Map<string, AnyRow>; readonly updates: Map<string, AnyUpdate> }
}

export const keyOf = (table: TableName, row: AnyRow): string =>
  tables[table].key.map((column) => String(row[column])).join("\n")

const refuse = (table: TableName, details: string): Either.Either<never, Refusal> => Either.left({ table, details })

const onceTaken = (table: TableName, row: AnyRow, set: AnyRow): string | undefined =>
  tables[table].once.find((column) => set[column] !== undefined && row[column] !== undefined && row[column] !== null)

/** Returns the updated row; refused if a `once` column is already set. */
export const applyUpdate = (table: TableName, row: AnyRow, update: AnyUpdate): Either.Either<AnyRow, Refusal> => {
  const taken = onceTaken(table, row, update.set)
  if (taken !== undefined) return refuse(table, `${describe(table, update.key)} already has its ${taken}`)
  const next: Record<string, Value> = { ...row, ...update.set }
  for (const [column, amount] of update.add) next[column] = Number(next[column] ?? 0) + amount
  return Either.right(next)
}

/** Names a row in error messages. */
export const describe = (table: TableName, key: AnyRow): string => {
  const own = key["key"] ?? key["id"] ?? ""
  return table === "session_part" ? `part ${own} of ${key["message_id"] ?? ""}` : `${own}`
}

const empty = (): Joined => ({
  session: { inserts: new Map(), updates: new Map() },
  session_input: { inserts: new Map(), updates: new Map() },
  session_message: { inserts: new Map(), updates: new Map() },
  session_part: { inserts: new Map(), updates: new Map() },
  session_instruction: { inserts: new Map(), updates: new Map() },
  session_leaf: { inserts: new Map(), updates: new Map() },
  session_label: { inserts: new Map(), updates: new Map() }
})

const joinUpdates = (table: TableName, first: AnyUpdate, then: AnyUpdate): Either.Either<AnyUpdate, Refusal> => {
  const taken = onceTaken(table, first.set, then.set)
  if (taken !== undefined) return refuse(table, `${describe(table, then.key)} sets its ${taken} twice`)
  const set: Record<string, Value> = { ...first.set, ...then.set }
  const add = first.add.filter(([column]) => then.set[column] === undefined)
  const later = then.add
  for (const [column, amount] of later) {
    // The statement either sets a column or adds to it.
    if (set[column] === undefined) add.push([column, amount])
    else set[column] = Number(set[column]) + amount
  }
  // Sorted by column; each column's amounts keep their order, in which the statement adds them.
  return Either.right({ key: first.key, set, add: add.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) })
}

/** Joins changes, in order, into one insert or update per row. */
export const join = (changes: Iterable<Change>): Either.Either<Joined, Refusal> => {
  const joined = empty()
  for (const change of changes) {
    const { inserts, updates } = joined[change.table]
    if (change.op === "insert") {
      const key = keyOf(change.table, change.row)
      if (inserts.has(key)) return refuse(change.table, `${describe(change.table, change.row)} already exists`)
      if (updates.has(key)) return refuse(change.table, `${describe(change.table, change.row)} does not exist yet`)
      inserts.set(key, change.row)
      continue
    }
    const add = Object.entries(change.add ?? {}).map(([column, amount]) => [column, Number(amount)] as const)
    const update: AnyUpdate = { key: change.key, set: change.set, add }
    const key = keyOf(change.table, change.key)
    const inserted = inserts.get(key)
    if (inserted !== undefined) {
      const next = applyUpdate(change.table, inserted, update)
      if (Either.isLeft(next)) return Either.left(next.left)
      inserts.set(key, next.right)
      continue
    }
    const earlier = updates.get(key)
    const next = earlier === undefined ? Either.right(update) : joinUpdates(change.table, earlier, update)
    if (Either.isLeft(next)) return Either.left(next.left)
    updates.set(key, next.right)
  }
  return Either.right(joined)
}

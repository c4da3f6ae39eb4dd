/**
 * Keeps the projected tables in memory, with the same changes and rules, in plain maps. It folds a session's new events
 * for the runner, rebuilds and verifies projections, and is the reference for the SQL writer. Spec: PJ-4.
 */
import { Either } from "effect"
import { type AnyRow, applyUpdate, type Change, describe, join, type Joined, keyOf, type Refusal } from "./Change.ts"
import * as MemoryIndexes from "./MemoryIndexes.ts"
import { type Rows, type TableName, tableNames } from "./Tables.ts"

export interface MemoryTables {
  /** Applies the changes of one append, all or none. */
  readonly apply: (changes: Iterable<Change>) => Either.Either<void, Refusal>
  /** Loads a stored row, as a base for folding further events. */
  readonly load: <Name extends TableName>(table: Name, row: Rows[Name]) => void
  /** The rows of a table, in insertion order. */
  readonly rows: <Name extends TableName>(table: Name) => ReadonlyArray<Rows[Name]>
}

type Write = readonly [table: TableName, key: string, row: AnyRow]

/** The rows to write, or the reason against the first one that breaks a rule. */
const staged = (maps: MemoryIndexes.RowMaps, joined: Joined): Either.Either<ReadonlyArray<Write>, Refusal> => {
  const writes: Array<Write> = []
  for (const table of tableNames) {
    const { inserts, updates } = joined[table]
    for (const [key, row] of inserts) {
      if (maps[table].has(key)) return Either.left({ table, details: `${describe(table, row)} already exists` })
      writes.push([table, key, row])
    }
    for (const [key, update] of updates) {
      const row = maps[table].get(key)
      if (row === undefined) return Either.left({ table, details: `${describe(table, update.key)} does not exist` })
      const next = applyUpdate(table, row, update)
      if (Either.isLeft(next)) return Either.left(next.left)
      writes.push([table, key, next.right])
    }
  }
  return Either.right(writes)
}

/** Creates empty tables. */
export const make = (): MemoryTables => {
  const maps: MemoryIndexes.RowMaps = {
    session: new Map(),
    session_input: new Map(),
    session_message: new Map(),
    session_part: new Map(),
    session_instruction: new Map(),
    session_leaf: new Map(),
    session_label: new Map()
  }
  const indexes = MemoryIndexes.make(maps)

  return {
    apply: (changes) => {
      const joined = join(changes)
      if (Either.isLeft(joined)) return Either.left(joined.left)
      const writes = staged(maps, joined.right)
      if (Either.isLeft(writes)) return Either.left(writes.left)
      const refusal = indexes.refusal(joined.right)
      if (refusal !== undefined) return Either.left(refusal)
      indexes.update(joined.right)
      for (const [table, key, row] of writes.right) maps[table].set(key, row)
      return Either.right(undefined)
    },
    load: (table, row) => {
      maps[table].set(keyOf(table, row), row)
      indexes.load(table, row)
    },
    // `load` and the fold store only rows of the table's type in each map.
    rows: <Name extends TableName>(table: Name) => [...maps[table].values()] as unknown as ReadonlyArray<Rows[Name]>
  }
}

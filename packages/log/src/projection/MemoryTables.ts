/**
 * Keeps the projected tables in memory, with the same changes and rules, in plain maps. It folds a session's new events
 * for the runner, rebuilds and verifies projections, and is the reference for the SQL writer. Spec: PJ-4, IN-6.
 */
import { Either } from "effect"
import { type AnyRow, applyUpdate, type Change, describe, join, type Joined, keyOf, type Refusal } from "./Change.ts"
import { type Rows, type TableName, tableNames } from "./Tables.ts"

// Keeps the unique indexes in memory: an address belongs to one session, an id to one message or input, or to an input
// and its message.

type RowMaps = { readonly [Name in TableName]: Map<string, AnyRow> }

/** The addresses that the changes assign, with the keys of their sessions. */
const assigned = function* ({ session: { inserts, updates } }: Joined): Generator<readonly [string, string]> {
  for (const [key, row] of inserts) if (typeof row["address"] === "string") yield [row["address"], key]
  for (const [key, { set }] of updates) if (typeof set["address"] === "string") yield [set["address"], key]
}

/** Creates empty indexes for these tables. */
const makeMemoryIndexes = (maps: RowMaps) => {
  /** Keys of inputs, messages and sessions by their unique values. */
  const inputs = new Map<string, string>()
  const messages = new Map<string, string>()
  const addresses = new Map<string, string>()

  /** The sequence number of the input's promotion, null while it waits; undefined if the id names no input. */
  const promotion = (id: string, { session_input: { inserts, updates } }: Joined): unknown => {
    for (const row of inserts.values()) if (row["id"] === id) return row["promoted_seq"] ?? null
    const key = inputs.get(id)
    if (key === undefined) return undefined
    return updates.get(key)?.set["promoted_seq"] ?? maps.session_input.get(key)?.["promoted_seq"] ?? null
  }

  const takenID = (joined: Joined): string | undefined => {
    for (const row of joined.session_message.inserts.values()) {
      const id = String(row["id"])
      const promoted = promotion(id, joined)
      if (messages.has(id) || (promoted !== undefined && promoted !== row["seq"])) return id
    }
    for (const row of joined.session_input.inserts.values()) {
      const id = String(row["id"])
      if (inputs.has(id) || messages.has(id)) return id
    }
    return undefined
  }

  const load = (table: TableName, row: AnyRow): void => {
    if (table === "session_input") inputs.set(String(row["id"]), keyOf(table, row))
    if (table === "session_message") messages.set(String(row["id"]), keyOf(table, row))
    if (table === "session" && typeof row["address"] === "string") addresses.set(row["address"], keyOf(table, row))
  }

  return {
    load,
    refusal: (joined: Joined): Refusal | undefined => {
      const id = takenID(joined)
      if (id !== undefined) return { table: "session_message", details: `${id} is taken` }
      for (const [address, key] of assigned(joined)) {
        if ((addresses.get(address) ?? key) !== key) return { table: "session", details: "its address is taken" }
      }
      return undefined
    },
    update: (joined: Joined) => {
      for (const [, key] of assigned(joined)) {
        const before = maps.session.get(key)?.["address"]
        if (typeof before === "string") addresses.delete(before)
      }
      for (const [address, key] of assigned(joined)) addresses.set(address, key)
      for (const table of ["session_input", "session_message"] as const) {
        for (const row of joined[table].inserts.values()) load(table, row)
      }
    }
  }
}

export interface MemoryTables {
  /** Applies the changes of one append, all or none. */
  readonly apply: (changes: Iterable<Change>) => Either.Either<void, Refusal>
  /** Loads a stored row, as a base for folding further events. */
  readonly load: <Name extends TableName>(table: Name, row: Rows[Name]) => void
  readonly rows: <Name extends TableName>(table: Name) => ReadonlyArray<Rows[Name]>
}

type Write = readonly [table: TableName, key: string, row: AnyRow]

/** The rows to write, or the reason against the first one that breaks a rule. */
const staged = (maps: RowMaps, joined: Joined): Either.Either<ReadonlyArray<Write>, Refusal> => {
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
  const maps: RowMaps = {
    session: new Map(),
    session_input: new Map(),
    session_message: new Map(),
    session_part: new Map(),
    session_instruction: new Map(),
    session_leaf: new Map(),
    session_label: new Map()
  }
  const indexes = makeMemoryIndexes(maps)

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

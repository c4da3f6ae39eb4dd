/**
 * Keeps the projected tables in memory, with the same changes and rules, in plain maps. It folds a session's new events
 * for the runner, rebuilds and verifies projections, and is the reference for the SQL writer. Spec: PJ-4.
 */
import { Either } from "effect"
import { type AnyRow, applyUpdate, type Change, describe, join, type Joined, keyOf, type Refusal } from "./Change.ts"
import { type Rows, type TableName, tableNames } from "./Tables.ts"

type RowMaps = { readonly [Name in TableName]: Map<string, AnyRow> }

export interface MemoryTables {
  /** Applies the changes of one append, all or none. */
  readonly apply: (changes: Iterable<Change>) => Either.Either<void, Refusal>
  /** Loads a stored row, as a base for folding further events. */
  readonly load: <Name extends TableName>(table: Name, row: Rows[Name]) => void
  /** The rows of a table, in insertion order. */
  readonly rows: <Name extends TableName>(table: Name) => ReadonlyArray<Rows[Name]>
}

/** Creates empty tables. */
export const make = (): MemoryTables => {
  const maps: RowMaps = {
    session: new Map(),
    session_input: new Map(),
    session_message: new Map(),
    session_part: new Map(),
    session_instruction: new Map()
  }
  const inputs = new Map<string, string>()
  const messages = new Map<string, string>()
  /** Session keys by address. */
  const addresses = new Map<string, string>()

  const apply = (changes: Iterable<Change>): Either.Either<void, Refusal> => {
    const joined = join(changes)
    if (Either.isLeft(joined)) return Either.left(joined.left)
    const staged: Array<() => void> = []
    for (const table of tableNames) {
      const rows = maps[table]
      const { inserts, updates } = joined.right[table]
      for (const [key, row] of inserts) {
        if (rows.has(key)) {
          return Either.left({ table, details: `${describe(table, row)} already exists` })
        }
        staged.push(() => rows.set(key, row))
      }
      for (const [key, update] of updates) {
        const row = rows.get(key)
        if (row === undefined) {
          return Either.left({ table, details: `${describe(table, update.key)} does not exist` })
        }
        const next = applyUpdate(table, row, update)
        if (Either.isLeft(next)) return Either.left(next.left)
        staged.push(() => rows.set(key, next.right))
      }
    }
    const clash = reserved(joined.right)
    if (clash !== undefined) return Either.left({ table: "session_message", details: `${clash} is taken` })
    const occupied = [...placed(joined.right)].find(([address, key]) => (addresses.get(address) ?? key) !== key)
    if (occupied !== undefined) return Either.left({ table: "session", details: "its address is taken" })
    for (const [, key] of placed(joined.right)) leave(key)
    for (const write of staged) write()
    for (const [address, key] of placed(joined.right)) addresses.set(address, key)
    for (const row of joined.right.session_input.inserts.values())
      inputs.set(String(row["id"]), keyOf("session_input", row))
    for (const row of joined.right.session_message.inserts.values()) {
      messages.set(String(row["id"]), keyOf("session_message", row))
    }
    return Either.right(undefined)
  }

  /** The addresses that the changes assign, with their sessions. */
  const placed = function* ({ session: { inserts, updates } }: Joined): Generator<readonly [string, string]> {
    for (const [key, row] of inserts) if (typeof row["address"] === "string") yield [row["address"], key]
    for (const [key, { set }] of updates) if (typeof set["address"] === "string") yield [set["address"], key]
  }

  const leave = (key: string) => {
    const before = maps.session.get(key)?.["address"]
    if (typeof before === "string") addresses.delete(before)
  }

  /** An id names either an input or a message, or both if the message is that input, promoted (IN-6). */
  const reserved = (joined: Joined) => {
    const promotedAs = (id: string): unknown => {
      for (const row of joined.session_input.inserts.values()) if (row["id"] === id) return row["promoted_seq"] ?? null
      const key = inputs.get(id)
      if (key === undefined) return undefined
      const update = joined.session_input.updates.get(key)
      return update?.set["promoted_seq"] ?? maps.session_input.get(key)?.["promoted_seq"] ?? null
    }
    for (const row of joined.session_message.inserts.values()) {
      const id = String(row["id"])
      const promoted = promotedAs(id)
      if (messages.has(id) || (promoted !== undefined && promoted !== row["seq"])) return id
    }
    for (const row of joined.session_input.inserts.values()) {
      const id = String(row["id"])
      if (inputs.has(id) || messages.has(id)) return id
    }
    return undefined
  }

  return {
    apply,
    load: (table, row) => {
      maps[table].set(keyOf(table, row), row)
      const address = table === "session" ? maps[table].get(keyOf(table, row))?.["address"] : undefined
      if (typeof address === "string") addresses.set(address, keyOf(table, row))
      if (table === "session_input") inputs.set(String(maps[table].get(keyOf(table, row))?.["id"]), keyOf(table, row))
      if (table === "session_message") {
        messages.set(String(maps[table].get(keyOf(table, row))?.["id"]), keyOf(table, row))
      }
    },
    // `load` and the fold store only rows of the table's type in each map.
    rows: <Name extends TableName>(table: Name) => [...maps[table].values()] as unknown as ReadonlyArray<Rows[Name]>
  }
}

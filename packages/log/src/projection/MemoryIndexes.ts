/**
 * Keeps the unique indexes of the tables in memory: an address belongs to one session, and an id names either an input
 * or a message, or both if the message is that input, promoted. Spec: IN-6.
 */
import { type AnyRow, type Joined, keyOf, type Refusal } from "./Change.ts"
import type { TableName } from "./Tables.ts"

/** Rows by key, per table. */
export type RowMaps = { readonly [Name in TableName]: Map<string, AnyRow> }

export interface MemoryIndexes {
  /** The first rule that the changes would break. */
  readonly refusal: (joined: Joined) => Refusal | undefined
  /** Indexes a loaded row. */
  readonly load: (table: TableName, row: AnyRow) => void
  /** Indexes the changes. Call it before they are applied to the maps. */
  readonly update: (joined: Joined) => void
}

/** The addresses that the changes assign, with the keys of their sessions. */
const assigned = function* ({ session: { inserts, updates } }: Joined): Generator<readonly [string, string]> {
  for (const [key, row] of inserts) if (typeof row["address"] === "string") yield [row["address"], key]
  for (const [key, { set }] of updates) if (typeof set["address"] === "string") yield [set["address"], key]
}

/** Creates empty indexes for these tables. */
export const make = (maps: RowMaps): MemoryIndexes => {
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
    refusal: (joined) => {
      const id = takenID(joined)
      if (id !== undefined) return { table: "session_message", details: `${id} is taken` }
      for (const [address, key] of assigned(joined)) {
        if ((addresses.get(address) ?? key) !== key) return { table: "session", details: "its address is taken" }
      }
      return undefined
    },
    update: (joined) => {
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

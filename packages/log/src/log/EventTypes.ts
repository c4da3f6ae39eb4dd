/** Gives each stored name (`<type>.<version>`) the small number that its rows hold. Spec: ST-23, ST-24. */
import type { Statements } from "../storage/Connection.ts"

/** Permission events are read over all sessions: a partial index holds the rows with a negative type. */
const isIndexed = (name: string): boolean => name.startsWith("session.next.permission.")

const select = "SELECT type FROM event_type WHERE name = ?"
const insert = (next: string) => `INSERT INTO event_type (type, name) VALUES (${next}, ?)`
const insertUsual = insert("coalesce((SELECT max(type) FROM event_type WHERE type > 0), 0) + 1")
const insertIndexed = insert("coalesce((SELECT min(type) FROM event_type WHERE type < 0), 0) - 1")

/** The numbers of names, for write transactions. */
export interface EventTypes {
  /** Begins a transaction: those before it have ended. */
  readonly begin: () => void
  /** The number of the name. A new name is added in the current transaction. */
  readonly of: (statements: Statements, name: string) => number
}

/**
 * Remembers committed numbers only. After a rollback, another process may give the number to another name, so nothing
 * that is read in a transaction after it added a name is remembered.
 */
export const make = (): EventTypes => {
  const committed = new Map<string, number>()
  let added = false
  return {
    begin: () => {
      added = false
    },
    of: (statements, name) => {
      const known = committed.get(name)
      if (known !== undefined) return known
      const [found] = statements.all<{ readonly type: number }>(select, [name])
      if (found !== undefined) {
        if (!added) committed.set(name, found.type)
        return found.type
      }
      added = true
      statements.run(isIndexed(name) ? insertIndexed : insertUsual, [name])
      const [row] = statements.all<{ readonly type: number }>(select, [name])
      if (row === undefined) throw new Error(`the name ${name} has no number`)
      return row.type
    }
  }
}

/**
 * The index of the sessions of one agent or model: a hint for clients, derived from the sessions alone. Pure.
 * Spec: FI-14..FI-18 in specs/files.md (IX-1..IX-5).
 */
import type { State } from "./Fold.ts"
import { cwdHash } from "./Layout.ts"

/** What the index has to know of a session. Positions are global places of events. */
export interface IndexEntry {
  readonly session: string
  /** As it is shown. */
  readonly cwd: string
  readonly updatedAtMs: number
  /** Of its last event. */
  readonly position: number
  readonly createdPosition: number
  /** Of the event that began its last run. */
  readonly runStartedPosition?: number | undefined
}

/** What the index has to know of a session. */
export const entryOf = (fold: State, session: string): IndexEntry => ({
  session,
  cwd: fold.cwd,
  updatedAtMs: fold.updatedAtMs,
  position: fold.position,
  createdPosition: fold.createdPosition,
  ...(fold.runStartedPosition === undefined ? {} : { runStartedPosition: fold.runStartedPosition })
})

/** Names are compared by code units: the order is the same on every machine. */
const byName = (a: IndexEntry, b: IndexEntry): number => (a.session < b.session ? -1 : a.session > b.session ? 1 : 0)

const newestFirst = (a: IndexEntry, b: IndexEntry): number =>
  b.updatedAtMs - a.updatedAtMs || b.position - a.position || byName(a, b)

/** Whose run began last; of those that never ran, and after those that did, the one that was created last. */
const currentFirst = (a: IndexEntry, b: IndexEntry): number =>
  (b.runStartedPosition ?? -1) - (a.runStartedPosition ?? -1) || b.createdPosition - a.createdPosition || byName(a, b)

/** Name and content of each file of the index; none without a session. */
export const indexFiles = (entries: ReadonlyArray<IndexEntry>): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  const list = entries.toSorted(newestFirst)
  if (list.length > 0) files.set("list", list.map(({ session }) => `${session}\n`).join(""))
  for (const { cwd, session } of entries.toSorted(currentFirst)) {
    if (!files.has("current")) files.set("current", `${session}\n`)
    const name = `by-cwd/${cwdHash(cwd)}`
    if (!files.has(name)) files.set(name, `${session}\n`)
  }
  return files
}

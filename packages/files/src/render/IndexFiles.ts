/**
 * Renders the index of a house: a hint for clients, derived from its sessions alone. Pure. Spec: FI-14..FI-18 in
 * specs/files.md (IX-1..IX-5).
 */
import type { State } from "@daybook/transcript/Fold"
import { cwdHash } from "../layout/Layout.ts"

/** A session's line of the index. Positions are global. */
export interface IndexEntry {
  readonly session: string
  /** The folder as the agent sees it. */
  readonly cwd: string
  readonly updatedAtMs: number
  /** The position of its last event. */
  readonly position: number
  readonly createdPosition: number
  /** The position of the event that began its last run. */
  readonly runStartedPosition?: number | undefined
}

/** The index entry of a session's state. */
export const entryOf = (fold: State, session: string): IndexEntry => ({
  session,
  cwd: fold.cwd,
  updatedAtMs: fold.updatedAtMs,
  position: fold.position,
  createdPosition: fold.createdPosition,
  ...(fold.runStartedPosition === undefined ? {} : { runStartedPosition: fold.runStartedPosition })
})

/** Compares names by code units, so that the order is the same on every machine. */
const byName = (a: IndexEntry, b: IndexEntry): number => (a.session < b.session ? -1 : a.session > b.session ? 1 : 0)

const newestFirst = (a: IndexEntry, b: IndexEntry): number =>
  b.updatedAtMs - a.updatedAtMs || b.position - a.position || byName(a, b)

/** Orders by the latest start of a run, then sessions without a run by the latest creation. */
const currentFirst = (a: IndexEntry, b: IndexEntry): number =>
  (b.runStartedPosition ?? -1) - (a.runStartedPosition ?? -1) || b.createdPosition - a.createdPosition || byName(a, b)

/** Name and content of each index file; empty without a session. */
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

/**
 * Owns the heads of sessions: the last sequence number, the incarnation and the owner of each. A head is moved, checked
 * and read in one statement. Runs inside a write transaction. Spec: LG-1..LG-3.
 */
import type { Parameters, Statements } from "../storage/Connection.ts"
import type { OwnerToken } from "./EventLog.ts"

/** The last numbers ever given to an event and to a session. */
export interface Last {
  readonly position: number
  readonly session: number
}

export const selectLast = (statements: Statements): Last => {
  const rows = statements.all<{ readonly name: string; readonly seq: number }>(
    "SELECT name, seq FROM sqlite_sequence",
    []
  )
  const last = new Map(rows.map(({ name, seq }) => [name, seq]))
  return { position: last.get("event") ?? 0, session: last.get("event_sequence") ?? 0 }
}

/** The new head of a session. A session's incarnation is the position of its first event. */
export interface Moved {
  readonly session: number
  readonly seq: number
  readonly incarnation: number
}

const insertHead = "INSERT INTO event_sequence (session, session_id, seq, incarnation) VALUES (?, ?, ?, ?)"
const updateHead = "UPDATE event_sequence SET seq = ?, incarnation = ? WHERE session = ?"

/** Writes the session's head. `isNew`: it has no row yet. */
export const writeHead = (
  statements: Statements,
  sessionID: string,
  { incarnation, seq, session }: Moved,
  isNew: boolean
): void => {
  if (isNew) statements.run(insertHead, [session, sessionID, seq, incarnation])
  else statements.run(updateHead, [seq, incarnation, session])
}

/** A head with events keeps its incarnation. A head that is only claimed starts one with its first event. */
export const incarnationOf = (
  head: { readonly seq: number; readonly incarnation: number | null } | undefined,
  position: number
): number => (head === undefined || head.seq < 0 ? position : (head.incarnation ?? 0))

/** A step of a head over new events. */
export interface Step {
  readonly count: number
  readonly pending: number
  /** The step is taken only from this sequence number. */
  readonly expectedSeq: number | undefined
  /** The step is taken only for this owner. */
  readonly owner: OwnerToken | undefined
  /** A value to read beside the head, as SQL over its row. */
  readonly value?: string | undefined
  /** The parameters of the value. */
  readonly parameters?: Parameters | undefined
}

export type Taken = Moved & { readonly position: number; readonly value?: string | number | null }

const lastPosition = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)"

const stepText = (expects: boolean, owned: boolean, value?: string): string =>
  "UPDATE event_sequence SET seq = seq + ?, " +
  `incarnation = iif(seq < 0, ${lastPosition} + ? + 1, coalesce(incarnation, 0)) WHERE session_id = ?` +
  (expects ? " AND seq = ?" : "") +
  (owned ? " AND owner_id = ? AND owner_epoch = ?" : "") +
  ` RETURNING session, seq, incarnation, ${lastPosition} AS position` +
  (value === undefined ? "" : `, ${value} AS value`)

const textsWith = (value?: string) =>
  [
    [stepText(false, false, value), stepText(false, true, value)],
    [stepText(true, false, value), stepText(true, true, value)]
  ] as const

/** By their value; building a text and looking up its statement cost as much as running it. Hooks have few values. */
const stepTexts = new Map([[undefined as string | undefined, textsWith()]])

const stepTextsOf = (value: string | undefined) => {
  const known = stepTexts.get(value) ?? textsWith(value)
  stepTexts.set(value, known)
  return known
}

/** Moves the session's head over the new events. Undefined, and nothing is changed, if it has no such head. */
export const step = (
  statements: Statements,
  sessionID: string,
  { count, expectedSeq, owner, parameters = [], pending, value }: Step
): Taken | undefined => {
  const text = stepTextsOf(value)[expectedSeq === undefined ? 0 : 1][owner === undefined ? 0 : 1]
  const [taken] = statements.all<Taken>(text, [
    count,
    pending,
    sessionID,
    ...(expectedSeq === undefined ? [] : [expectedSeq]),
    ...(owner === undefined ? [] : [owner.ownerID, owner.epoch]),
    ...parameters
  ])
  return taken && { ...taken, position: taken.position + pending }
}

/** Gives a session without a row its head, over its first events. */
export const begin = (statements: Statements, sessionID: string, { count, pending }: Step): Taken => {
  const last = selectLast(statements)
  const position = last.position + pending
  const moved = { session: last.session + 1, seq: count - 1, incarnation: position + 1 }
  writeHead(statements, sessionID, moved, true)
  return { ...moved, position }
}

export interface Head {
  readonly seq: number
  readonly owner_id: string | null
  readonly owner_epoch: number
}

/** Selects the head of a session; undefined if it has no row. */
export const selectHead = (statements: Statements, sessionID: string): Head | undefined =>
  statements.all<Head>("SELECT seq, owner_id, owner_epoch FROM event_sequence WHERE session_id = ?", [sessionID])[0]

/**
 * Finds how far each session's log can be cut, what that removes and what holds it back. It reads no payloads and
 * writes nothing. `Prune.ts` carries a cut out. Spec: RT-1..RT-5 in specs/log.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { type DurableType, durableTypes, type EventIn } from "../events/SessionEvents.ts"
import type { LogUnavailable } from "../log/EventLog.ts"
import { ofSession, pageSize, sessionKey } from "../log/EventRow.ts"
import { storedBytesOf } from "../storage/Dialect.ts"
import * as EventLoop from "../support/EventLoop.ts"

/** What may go. Without a bound, everything up to the last safe boundary. */
export interface Bounds {
  /** Only events created before this time, in milliseconds since the epoch. */
  readonly before?: number
  /** Only events up to this sequence number, or up to the last compaction's checkpoint. */
  readonly to?: number | "compaction"
}

/** A reader that still needs the events after `after`. */
export interface Holder {
  readonly name: string
  readonly after: number
}

export type Holders = (sessionID: SessionID) => Effect.Effect<ReadonlyArray<Holder>, LogUnavailable>

export interface Subject {
  readonly sessionID: SessionID
  readonly incarnation: number
  readonly floor: number
  readonly head: number
}

export interface Cut extends Subject {
  /** The new floor; equal to `floor` if nothing can go. */
  readonly to: number
  readonly events: number
  /** Bytes of the removed events' payloads. */
  readonly bytes: number
  /** Readers without which more could go. */
  readonly held: ReadonlyArray<Holder>
}

type SubjectRow = {
  readonly session_id: string
  readonly seq: number
  readonly floor: number
  readonly incarnation: number | null
  readonly time_updated: number
}

/** Where a listing of subjects continues. */
export interface SubjectCursor {
  readonly updated: number
  readonly id: string
}

const subjectOf = ({ floor, incarnation, seq, session_id }: SubjectRow): Subject => ({
  sessionID: SessionID.make(session_id, { disableValidation: true }),
  incarnation: incarnation ?? 0,
  floor,
  head: seq
})

/** One page of all sessions, the one unused for the longest time first. */
export const selectSubjects = (sql: SqlClient.SqlClient, after: SubjectCursor | undefined) =>
  Effect.map(
    sql<SubjectRow>`SELECT h.session_id, h.seq, h.floor, h.incarnation, s.time_updated
      FROM session s JOIN event_sequence h ON h.session_id = s.id
      WHERE (s.time_updated, s.id) > (${after?.updated ?? -1}, ${after?.id ?? ""})
      ORDER BY s.time_updated, s.id LIMIT ${pageSize}`,
    (rows) => {
      const last = rows.at(-1)
      return {
        subjects: rows.map(subjectOf),
        next: last === undefined ? undefined : ({ updated: last.time_updated, id: last.session_id } as const)
      }
    }
  )

/** The session, if it exists and has events. */
export const selectSubject = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<SubjectRow>`SELECT session_id, seq, floor, incarnation, 0 AS time_updated
      FROM event_sequence WHERE session_id = ${sessionID} AND seq >= 0`,
    ([row]) => row && subjectOf(row)
  )

type EventSize = { readonly seq: number; readonly type: string; readonly created: number; readonly bytes: number }

/** One page of a session's events without their payloads. A type without a name is unknown to every build. */
const selectMeasured = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, to: number) =>
  sql<EventSize>`SELECT e.seq, coalesce(t.name, '') AS type, e.created, ${storedBytesOf(sql, "e.data")} AS bytes
    FROM event e LEFT JOIN event_type t ON t.type = e.type
    WHERE ${ofSession(sql, sessionID)} AND e.seq > ${after} AND e.seq <= ${to} ORDER BY e.seq LIMIT ${pageSize}`

const selectLastCheckpoint = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<{ readonly seq: number | null }>`SELECT max(seq) AS seq FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'compaction'`,
    ([row]) => row?.seq ?? -1
  )

const limitOf = (sql: SqlClient.SqlClient, { head, sessionID }: Subject, to: Bounds["to"]) =>
  to === "compaction" ? selectLastCheckpoint(sql, sessionID) : Effect.succeed(Math.min(head, to ?? head))

/** A boundary, and what is below it. */
type Reached = { readonly to: number; readonly events: number; readonly bytes: number }

interface Scan {
  readonly open: Open
  readonly sum: Reached
  readonly safe: Reached
  /** The last safe boundary that no reader holds back. */
  readonly free: Reached
}

const scanned = (scan: Scan, { bytes, seq, type }: EventSize, held: number): Scan => {
  const open = openAfter(scan.open, type)
  const sum = { to: seq, events: scan.sum.events + 1, bytes: scan.sum.bytes + bytes }
  if (!isSafe(open, type)) return { ...scan, open, sum }
  return { open, sum, safe: sum, free: seq <= held ? sum : scan.free }
}

/** The greatest cut of a session within the bounds. Reads the events that go, and up to the next safe boundary. */
export const cutOf = Effect.fn("Retention.cutOf")(function* (
  sql: SqlClient.SqlClient,
  subject: Subject,
  bounds: Bounds,
  holders: ReadonlyArray<Holder>
) {
  const { floor, sessionID } = subject
  const limit = yield* limitOf(sql, subject, bounds.to)
  const held = Math.min(Number.MAX_SAFE_INTEGER, ...holders.map(({ after }) => after))
  const start: Reached = { to: floor, events: 0, bytes: 0 }
  let scan: Scan = { open: nothingOpen, sum: start, safe: start, free: start }
  for (let done = false; !done;) {
    const rows = yield* selectMeasured(sql, sessionID, scan.sum.to, limit)
    done = rows.length === 0
    for (const row of rows) {
      if (row.created >= (bounds.before ?? Infinity) || row.seq !== scan.sum.to + 1 || scan.open.unknown) {
        done = true
        break
      }
      scan = scanned(scan, row, held)
    }
    // A server plans beside its clients.
    yield* EventLoop.turn
  }
  const { free, safe } = scan
  const holding = safe.to > free.to ? holders.filter(({ after }) => after < safe.to) : []
  return { ...subject, ...free, held: holding } satisfies Cut
})

// Decides where a session's log may be cut: at the end of an activity or of a live shell at which nothing is open.

/** How many of each kind are open. */
export interface Open {
  readonly inputs: number
  readonly activities: number
  readonly steps: number
  /** Texts and reasonings of the current step. */
  readonly texts: number
  readonly calls: number
  readonly shells: number
  readonly compactions: number
  /** Whether an event of a type that this build does not know was seen: nothing is known about what refers to it. */
  readonly unknown: boolean
}

/** The state at a floor, and before the first event. */
export const nothingOpen: Open = {
  inputs: 0,
  activities: 0,
  steps: 0,
  texts: 0,
  calls: 0,
  shells: 0,
  compactions: 0,
  unknown: false
}

type OpenKind = Exclude<keyof Open, "unknown">

type Counted = readonly [counted: OpenKind, by: 1 | -1] | undefined

/** What each type opens (+1) or closes (-1); those of other families open nothing. */
const effects: {
  readonly [Type in EventIn<"prompts" | "steps" | "texts" | "calls" | "compactions">["type"]]: Counted
} = {
  "session.next.prompted": undefined,
  "session.next.prompt.admitted": ["inputs", 1],
  "session.next.prompt.promoted": ["inputs", -1],
  "session.next.prompt.withdrawn": ["inputs", -1],
  "session.next.interrupt.requested": undefined,
  "session.next.activity.started": ["activities", 1],
  "session.next.activity.settled": ["activities", -1],
  "session.next.shell.started": ["shells", 1],
  "session.next.shell.ended": ["shells", -1],
  "session.next.step.started": ["steps", 1],
  "session.next.step.ended": ["steps", -1],
  "session.next.step.failed": ["steps", -1],
  "session.next.text.started": ["texts", 1],
  "session.next.text.ended": ["texts", -1],
  "session.next.reasoning.started": ["texts", 1],
  "session.next.reasoning.ended": ["texts", -1],
  "session.next.tool.input.started": ["calls", 1],
  "session.next.tool.input.ended": undefined,
  "session.next.tool.called": undefined,
  "session.next.tool.progress": undefined,
  "session.next.tool.success": ["calls", -1],
  "session.next.tool.failed": ["calls", -1],
  "session.next.retried": undefined,
  "session.next.compaction.requested": undefined,
  "session.next.compaction.started": ["compactions", 1],
  "session.next.compaction.ended": ["compactions", -1],
  "session.next.compaction.failed": ["compactions", -1],
  "session.next.context.pruned": undefined,
  "session.next.context.edited": undefined,
  "session.next.part.withheld": undefined
}

const effectOf: Readonly<Record<string, Counted>> = effects

const known: ReadonlySet<string> = new Set(durableTypes)

/** A stored name without its version. */
const typeOf = (stored: string): string => stored.slice(0, stored.lastIndexOf("."))

/** The state after an event, given its stored name `<type>.<version>`. */
export const openAfter = (open: Open, stored: string): Open => {
  const type = typeOf(stored)
  if (!known.has(type)) return { ...open, unknown: true }
  const effect = effectOf[type]
  if (effect === undefined) return open
  const [counted, by] = effect
  // Of these a session has one at a time: a start after a crash replaces one that never ended. Older logs have ends
  // without a start.
  const most = counted === "activities" || counted === "steps" || counted === "compactions" ? 1 : Infinity
  const next = { ...open, [counted]: Math.min(most, Math.max(0, open[counted] + by)) }
  // A process that dies leaves texts open; its recovery ends the step, and nothing ends those texts later.
  return type === "session.next.step.ended" || type === "session.next.step.failed" ? { ...next, texts: 0 } : next
}

/** The ends at which a log may be cut: a session that only records live shells has no activities. */
const ends: ReadonlySet<string> = new Set([
  "session.next.activity.settled",
  "session.next.shell.closed"
] satisfies ReadonlyArray<DurableType>)

/** Whether the log may be cut after this event, where `open` is the state after it. */
export const isSafe = (open: Open, stored: string): boolean =>
  ends.has(typeOf(stored)) &&
  !open.unknown &&
  open.inputs + open.activities + open.steps + open.texts + open.calls + open.shells + open.compactions === 0

/** The statements on a session's owner and lease. Spec: EX-O1..EX-O8, EX-402, EX-404 in specs/execution.md. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Clock, Effect, Option } from "effect"
import { anyHandedOver, type HandedOver, handedOverIn, handedOverOwner } from "../domain/HandedOver.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { unfinished } from "../domain/Imported.ts"
import type { Session } from "../domain/Message.ts"
import type { StoredError } from "../domain/Values.ts"
import type { OwnerToken } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql } from "../storage/Database.ts"
import { isPostgres } from "../storage/Dialect.ts"
import { change, rows, type Steps } from "../storage/Steps.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { SessionStore } from "../store/SessionStore.ts"
import { putNewest } from "../support/Newest.ts"
import * as OwnerID from "./OwnerID.ts"
import type { OwnProcess } from "./OwnerID.ts"

// Judges the lease of another process. Clocks of two processes are never compared: the owner changes its row with
// every renewal, and an observer that saw the row unchanged for a whole lease, by its own monotonic clock, knows that
// the owner is silent. Time in which the observer itself was stopped proves nothing, so each look counts for at most
// two look intervals. Neither does a look at an owner whose event loop is busy: it cannot renew, and it works. Pure.
// Spec: EX-O2, EX-402.

/** Bounds of a lease's length, in milliseconds, wherever it comes from. */
const [shortest, longest] = [1_000, 60_000]

/** The default length of a lease, in milliseconds. */
export const standardMs = 15_000

/** How often an observer looks, in milliseconds. */
export const lookMs = 100

/** The most that one look adds to an owner's silence: in a longer gap the observer was stopped. */
const mostPerLookMs = 2 * lookMs

export const clamp = (leaseMs: number): number =>
  Number.isNaN(leaseMs) ? standardMs : Math.max(shortest, Math.min(Math.trunc(leaseMs), longest))

/** How often an owner renews a lease of this length. */
export const heartbeatMs = (leaseMs: number): number => leaseMs / 15

export interface Sighting {
  /** Changes with each renewal and with each new owner. */
  readonly sign: string
  /** The monotonic time of the last look, in nanoseconds. */
  readonly at: bigint
  /** How long the sign is known to be unchanged. */
  readonly silentMs: number
}

interface Observation {
  readonly sign: string
  readonly at: bigint
  /** Whether the owner's main thread runs at this moment: then its silence proves nothing. */
  readonly working: boolean
}

export const observe = (before: Sighting | undefined, { at, sign, working }: Observation): Sighting => {
  if (before?.sign !== sign) return { sign, at, silentMs: 0 }
  // Waits look at the same time, and their answers may come in another order.
  if (at <= before.at) return before
  const gapMs = working ? 0 : Number(at - before.at) / 1e6
  return { sign, at, silentMs: before.silentMs + Math.min(gapMs, mostPerLookMs) }
}

/** How many sessions a process remembers the last look at. */
const mostSeen = 10_000

/** What the looks of this process saw, the latest last. All waits share it: silence that one of them saw counts for all. */
export type Seen = Map<SessionID, Sighting>

type OwnerRow = {
  readonly session_id: SessionID
  readonly owner_id: string | null
  readonly owner_epoch: number
  readonly lease_until: number
  readonly lease_beat: number
  readonly lease_ms: number
}

const ownerColumns = "session_id, owner_id, owner_epoch, lease_until, lease_beat, lease_ms"

export const selectOwners = (sql: SqlClient.SqlClient, sessionIDs: ReadonlyArray<SessionID>) =>
  sql<OwnerRow>`SELECT ${sql.literal(ownerColumns)} FROM event_sequence WHERE session_id IN ${sql.in(sessionIDs)}`

/** The row of one session in a write: no other process changes it until the write ends. */
export function* ownerOf(sql: SqlClient.SqlClient, sessionID: SessionID): Steps<OwnerRow | undefined> {
  const lock = isPostgres(sql) ? " FOR UPDATE" : ""
  const found = yield* rows<OwnerRow>(`SELECT ${ownerColumns} FROM event_sequence WHERE session_id = ?${lock}`, [
    sessionID
  ])
  return found[0]
}

/** The sessions that wait for their next owner. `admitted_seq` makes SQLite use the index of waiting inputs. */
export const selectHandedOver = (sql: SqlClient.SqlClient) =>
  sql<{ readonly session_id: SessionID }>`SELECT session_id FROM event_sequence
    WHERE (session_id IN (SELECT id FROM session WHERE activity_state = 'running')
      OR session IN (SELECT session FROM session_input WHERE promoted_seq IS NULL AND admitted_seq >= 0))
    AND owner_id LIKE ${anyHandedOver}`

export interface Term {
  readonly now: number
  readonly leaseMs: number
}

/** Writes a new owner and returns its epoch, which is greater than the previous owner's. */
export function* takeOwnership(sessionID: SessionID, ownerID: string, { leaseMs, now }: Term): Steps<number> {
  const [claimed] = yield* rows<{ readonly owner_epoch: number }>(
    `UPDATE event_sequence SET owner_id = ?, owner_epoch = owner_epoch + 1, lease_until = ?, lease_beat = lease_beat + 1,
      lease_ms = ? WHERE session_id = ? RETURNING owner_epoch`,
    [ownerID, now + leaseMs, leaseMs, sessionID]
  )
  return claimed?.owner_epoch ?? 0
}

/** The row while it is this owner's. */
const mine = (sql: SqlClient.SqlClient, sessionID: SessionID, { epoch, ownerID }: OwnerToken) =>
  sql`session_id = ${sessionID} AND owner_id = ${ownerID} AND owner_epoch = ${epoch}`

export const releaseOwnership = (
  sessionID: SessionID,
  { epoch, ownerID }: OwnerToken,
  next?: HandedOver
): Steps<void> =>
  change(
    "UPDATE event_sequence SET owner_id = ?, lease_until = 0 WHERE session_id = ? AND owner_id = ? AND owner_epoch = ?",
    [next === undefined ? null : handedOverOwner(next), sessionID, ownerID, epoch]
  )

/** What an owner learns of its row at a renewal. */
export type RenewedRow = {
  readonly session_id: SessionID
  readonly owner_epoch: number
  readonly interrupt_epoch: number
  readonly interrupt_activity: string | null
}

/** Renews the leases of this owner. The row of a session that another owner has is not returned. */
export const renewLeases = (
  sql: SqlClient.SqlClient,
  sessionIDs: ReadonlyArray<SessionID>,
  ownerID: string,
  { leaseMs, now }: Term
): Steps<ReadonlyArray<RenewedRow>> => {
  const own = isPostgres(sql)
    ? // In the order in which an append locks several heads (PG-12).
      `session IN (SELECT session FROM event_sequence WHERE session_id IN (
        SELECT value FROM json_array_elements_text(CAST(? AS json)) AS j (value)) AND owner_id = ?
        ORDER BY session_id FOR UPDATE)`
    : "session_id IN (SELECT value FROM json_each(?)) AND owner_id = ?"
  return rows<RenewedRow>(
    `UPDATE event_sequence SET lease_until = ?, lease_beat = lease_beat + 1 WHERE ${own}
      RETURNING session_id, owner_epoch, interrupt_epoch, interrupt_activity`,
    [now + leaseMs, JSON.stringify(sessionIDs), ownerID]
  )
}

/** Asks the owner to stop everything, or one activity. */
export const askToStop = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  token: OwnerToken,
  activityID: string | undefined
) =>
  activityID === undefined
    ? sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = NULL
        WHERE ${mine(sql, sessionID, token)}`
    : // Does not replace a request to stop everything, and writes nothing if the activity has ended.
      sql`UPDATE event_sequence SET interrupt_epoch = ${token.epoch}, interrupt_activity = ${activityID}
        WHERE ${mine(sql, sessionID, token)} AND NOT (interrupt_epoch = owner_epoch AND interrupt_activity IS NULL)
        AND EXISTS (${selectRunning(sql, sessionID, activityID)})`

/** One row if the log has this activity's start and not its end. */
export const selectRunning = (sql: SqlClient.SqlClient, sessionID: SessionID, activityID: string) =>
  sql`SELECT 1 FROM session WHERE id = ${sessionID} AND activity_id = ${activityID} AND activity_state = 'running'`

// Judges from looks at its row whether a session's owner is alive.

/** Whether a session may be claimed: `unknown` until its owner renews, is seen at work, or stays silent for its lease. */
export type ClaimState = "free" | "owned" | "unknown"

/** Judges a row that was read at a time of the monotonic clock. */
export type Judge = (row: OwnerRow, at: bigint) => ClaimState

/** This process as an owner. */
export interface Self {
  readonly process: OwnProcess
  readonly ownerID: string
  readonly held: ReadonlyMap<SessionID, number>
  readonly seen: Seen
}

/** Changes with each renewal. A process of 0.1.0 renews only `lease_until`. */
const signOf = ({ lease_beat, lease_until, owner_epoch, owner_id }: OwnerRow): string =>
  [owner_id, owner_epoch, lease_beat, lease_until].join(" ")

/** A judge for one wait. An owner that renews during the wait is alive. */
export const makeJudge = ({ held, ownerID, process, seen }: Self): Judge => {
  const first = new Map<SessionID, string>()
  return (row, at) => {
    const { lease_ms, owner_epoch, owner_id, session_id } = row
    if (owner_id === null || handedOverIn(owner_id) !== undefined) return "free"
    // A row of this process that it does not hold could not be released.
    if (owner_id === ownerID) return held.get(session_id) === owner_epoch ? "owned" : "free"
    const state = process.stateOf(owner_id)
    if (state === "gone") return "free"
    const [sign, working] = [signOf(row), state === "working"]
    const sighting = observe(seen.get(session_id), { sign, at, working })
    putNewest(seen, session_id, sighting, mostSeen)
    if (!first.has(session_id)) first.set(session_id, sign)
    if (sighting.silentMs >= clamp(lease_ms)) return "free"
    return working || first.get(session_id) !== sign ? "owned" : "unknown"
  }
}

// Tells the activities that run from those whose process died, at one look.

/** Why work that a dead process left has ended. */
export const processEnded: StoredError = {
  type: "process.ended",
  message: "the process that worked on this ended before it was done"
}

/** Whether the activity needs a process. One that an import left open needs none: the next import goes on with it. */
export const isRunning = ({ activity, id, imported }: Session): boolean =>
  activity?.state === "running" && unfinished(id, imported) === undefined

/** The session as it is once its activity is settled: interrupted, because its process ended. */
export const asInterrupted = (session: Session): Session =>
  session.activity === undefined
    ? session
    : { ...session, activity: { ...session.activity, state: "interrupted", error: processEnded } }

/** Of these sessions, those with an owner that may be alive, or that wait for their next one. Answers at once. */
const owned = Effect.fnUntraced(function* (ids: ReadonlyArray<SessionID>) {
  const rows = yield* Effect.mapError(retryBusy(selectOwners(yield* ReadSql, ids)), unavailable("read the owners"))
  const judge = makeJudge({ process: OwnerID.make(), ownerID: "", held: new Map(), seen: new Map() })
  const now = yield* Clock.currentTimeNanos
  return new Set(
    rows
      .filter((row) => judge(row, now) !== "free" || handedOverIn(row.owner_id) !== undefined)
      .map(({ session_id }) => session_id)
  )
})

/** The sessions, with `asInterrupted` for those whose activity runs without a process that may be alive. */
export const find = (sessions: ReadonlyArray<Session>) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const running = sessions.filter(isRunning).map(({ id }) => id)
    if (running.length === 0) return sessions
    const living = yield* owned(running)
    return yield* Effect.forEach(sessions, (session) => {
      if (!isRunning(session) || living.has(session.id)) return Effect.succeed(session)
      // Its owner may have settled it and released the session since it was listed.
      return store.get(session.id).pipe(
        Effect.map((now) => (isRunning(now) && now.activity?.id === session.activity?.id ? asInterrupted(now) : now)),
        Effect.catchTag("SessionNotFound", () => Effect.succeed(session))
      )
    })
  })

/** `find` with this process's database, for readers that have no connection of their own. */
export const makeFind = Effect.map(
  Effect.context<ReadSql | SessionStore>(),
  (context) => (sessions: ReadonlyArray<Session>) => Effect.provide(find(sessions), context)
)

/** `find` where this process has the database. Sessions of a server are what it says. */
export const findHere = (sessions: ReadonlyArray<Session>) =>
  Effect.flatMap(
    Effect.serviceOption(ReadSql),
    Option.match({
      onNone: () => Effect.succeed(sessions),
      onSome: (sql) => Effect.provideService(find(sessions), ReadSql, sql)
    })
  )

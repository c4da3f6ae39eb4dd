/** The statements on a session's owner and lease. Spec: EX-O1..EX-O8. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { OwnerToken } from "../log/EventLog.ts"

export type OwnerRow = {
  readonly session_id: SessionID
  readonly owner_id: string | null
  readonly owner_epoch: number
  readonly lease_until: number
  readonly lease_beat: number
  readonly lease_ms: number
}

export const selectOwners = (sql: SqlClient.SqlClient, sessionIDs: ReadonlyArray<SessionID>) =>
  sql<OwnerRow>`SELECT session_id, owner_id, owner_epoch, lease_until, lease_beat, lease_ms FROM event_sequence
    WHERE session_id IN ${sql.in(sessionIDs)}`

/** A lease of this length from now on. Only processes of 0.1.0 compare its end with their clocks. */
export interface Term {
  readonly now: number
  readonly leaseMs: number
}

/** Writes a new owner and returns its epoch, which is greater than the previous owner's. */
export const takeOwnership = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  ownerID: string,
  { leaseMs, now }: Term
) =>
  Effect.map(
    sql<{ readonly owner_epoch: number }>`UPDATE event_sequence
      SET owner_id = ${ownerID}, owner_epoch = owner_epoch + 1, lease_until = ${now + leaseMs},
        lease_beat = lease_beat + 1, lease_ms = ${leaseMs}
      WHERE session_id = ${sessionID} RETURNING owner_epoch`,
    ([claimed]) => claimed?.owner_epoch ?? 0
  )

/** The row while it is this owner's. */
const mine = (sql: SqlClient.SqlClient, sessionID: SessionID, { epoch, ownerID }: OwnerToken) =>
  sql`session_id = ${sessionID} AND owner_id = ${ownerID} AND owner_epoch = ${epoch}`

export const releaseOwnership = (sql: SqlClient.SqlClient, sessionID: SessionID, token: OwnerToken) =>
  sql`UPDATE event_sequence SET owner_id = NULL, lease_until = 0 WHERE ${mine(sql, sessionID, token)}`

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
) =>
  sql<RenewedRow>`UPDATE event_sequence SET lease_until = ${now + leaseMs}, lease_beat = lease_beat + 1
    WHERE session_id IN ${sql.in(sessionIDs)} AND owner_id = ${ownerID}
    RETURNING session_id, owner_epoch, interrupt_epoch, interrupt_activity`

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

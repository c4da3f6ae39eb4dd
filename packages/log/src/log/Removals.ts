/** Removes sessions and lists removed ones. Spec: LG-17, LG-19, LG-44. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { immediately, retryBusy } from "../storage/Database.ts"
import type { LogUnavailable, Removal } from "./EventLog.ts"
import { pageSize, unavailable } from "./EventRow.ts"

type RemovalRow = { readonly number: number; readonly session_id: string; readonly position: number }

/** The removals after a number, in order. */
export const selectRemovals = (
  sql: SqlClient.SqlClient,
  after: number
): Effect.Effect<ReadonlyArray<Removal>, LogUnavailable> =>
  sql<RemovalRow>`SELECT number, session_id, position FROM session_removal
    WHERE number > ${after} ORDER BY number LIMIT ${pageSize}`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.map((rows) =>
      rows.map(({ number, position, session_id }) => ({
        number,
        sessionID: SessionID.make(session_id, { disableValidation: true }),
        position
      }))
    )
  )

/** Deletes the session and records its removal. Returns whether it had events. */
export const removeSession = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID
): Effect.Effect<boolean, LogUnavailable> => {
  const deleted = sql<{ readonly seq: number }>`
    DELETE FROM event_sequence WHERE session_id = ${sessionID} RETURNING seq`
  const recorded = sql`INSERT INTO session_removal (session_id, position)
    SELECT ${sessionID}, seq FROM sqlite_sequence WHERE name = 'event'`
  const removed = Effect.flatMap(deleted, ([row]) =>
    // A session that was only claimed for replay had no events, so there is nothing to record.
    row === undefined || row.seq < 0 ? Effect.succeed(false) : Effect.as(recorded, true)
  )
  return Effect.mapError(retryBusy(immediately(sql)(removed)), unavailable("remove"))
}

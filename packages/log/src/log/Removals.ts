/**
 * Removes sessions and lists removed ones. A removed session whose rows still exist has no id, so no look-up finds it.
 * Spec: LG-17, LG-19, LG-44, LG-60.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import { Effect } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
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

/** What one step deletes at most: so many rows, and so many bytes of payloads. A longer payload is a step of its own. */
const [stepRows, stepBytes, stepBlocks] = [1_000, 1024 * 1024, 16]

type Key = { readonly session: number }

/** Deletes one step of a hidden session's rows, oldest first. Returns whether rows are left. */
const deleteStep = (sql: SqlClient.SqlClient, session: number) =>
  Effect.gen(function* () {
    const has = (rows: Statement.Fragment) =>
      Effect.map(sql`SELECT 1 FROM ${rows} WHERE session = ${session} LIMIT 1`, ({ length }) => length > 0)
    yield* sql`DELETE FROM event WHERE position IN (
      SELECT position FROM (
        SELECT position, bytes, sum(bytes) OVER (ORDER BY seq) AS total FROM (
          SELECT position, seq, octet_length(data) AS bytes FROM event
            WHERE session = ${session} ORDER BY seq LIMIT ${stepRows}))
      WHERE total <= ${stepBytes} OR total = bytes)`
    if (yield* has(sql`event`)) return true
    yield* sql`DELETE FROM content WHERE session = ${session} AND last IN (
      SELECT last FROM content WHERE session = ${session} ORDER BY last LIMIT ${stepBlocks})`
    if (yield* has(sql`content`)) return true
    yield* sql`DELETE FROM session_part WHERE session = ${session} AND (message_id, kind, key) IN (
      SELECT message_id, kind, key FROM session_part WHERE session = ${session} LIMIT ${stepRows})`
    if (yield* has(sql`session_part`)) return true
    yield* sql`DELETE FROM event_sequence WHERE session = ${session}`
    return false
  })

/** Deletes one step of a removed session whose rows still exist. Returns whether there was one. */
export const continueRemoval = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.flatMap(
    retryBusy(sql<Key>`SELECT session FROM event_sequence WHERE session_id IS NULL LIMIT 1`),
    ([hidden]) =>
      hidden === undefined
        ? Effect.succeed(false)
        : Effect.as(retryBusy(immediately(sql)(deleteStep(sql, hidden.session))), true)
  )

/** Tables with ids that a new session may use again, so they go with the session's id. Their rows are short. */
const hide = (sql: SqlClient.SqlClient, sessionID: SessionID, session: number) =>
  Effect.all(
    [
      sql`DELETE FROM session WHERE id = ${sessionID}`,
      sql`DELETE FROM session_floor WHERE session_id = ${sessionID}`,
      sql`DELETE FROM kept_decision WHERE session_id = ${sessionID}`,
      sql`DELETE FROM consumer_poison WHERE session_id = ${sessionID}`,
      sql`DELETE FROM session_input WHERE session = ${session}`,
      sql`DELETE FROM session_message WHERE session = ${session}`,
      sql`UPDATE event_sequence SET session_id = NULL, owner_id = NULL, replay_owner = NULL WHERE session = ${session}`
    ],
    { discard: true }
  )

/**
 * Removes the session in one transaction: no reader finds it, its id is free, and its removal is recorded. A short
 * session's rows are deleted too; those of a longer one are left for `continueRemoval`. Returns whether it had events.
 */
export const removeSession = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID
): Effect.Effect<boolean, LogUnavailable> => {
  const removed = Effect.gen(function* () {
    const [head] = yield* sql<Key & { readonly seq: number }>`
      SELECT session, seq FROM event_sequence WHERE session_id = ${sessionID}`
    if (head === undefined) return false
    yield* hide(sql, sessionID, head.session)
    yield* deleteStep(sql, head.session)
    // A session that was only claimed for replay had no events, so there is nothing to record.
    if (head.seq < 0) return false
    yield* sql`INSERT INTO session_removal (session_id, position)
      SELECT ${sessionID}, seq FROM sqlite_sequence WHERE name = 'event'`
    return true
  })
  return Effect.mapError(retryBusy(immediately(sql)(removed)), unavailable("remove"))
}

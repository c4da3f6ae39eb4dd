/**
 * Removes sessions, erases their rows in steps, and lists removed sessions. A removed session whose rows still exist
 * has no id, so no look-up finds it. Spec: LG-17, LG-19, LG-44, LG-51, LG-52, LG-60 in specs/log.md, SE-20 in
 * specs/storage.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type * as Statement from "@effect/sql/Statement"
import { Clock, Effect, type Scope } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { bytesOf, forUpdate, lockLog, named, newestPosition } from "../storage/Dialect.ts"
import { eraseBeside, fileOf } from "../storage/SearchFile.ts"
import { immediately, retryBusy } from "../storage/Transaction.ts"
import * as UnusedBytes from "../storage/UnusedBytes.ts"
import { truncate } from "../storage/UnusedBytes.ts"
import { pageSize, unavailable } from "./EventRow.ts"

type RemovalRow = { readonly number: number; readonly session_id: string; readonly position: number }

/** The removals after a number, in order. */
export const selectRemovals = (sql: SqlClient.SqlClient, after: number) =>
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
          SELECT position, seq, ${sql.literal(bytesOf(sql, "data"))} AS bytes FROM event
            WHERE session = ${session} ORDER BY seq LIMIT ${stepRows})${named(sql, "oldest")})${named(sql, "step")}
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
export const removeSession = (sql: SqlClient.SqlClient, sessionID: SessionID) => {
  const removed = Effect.gen(function* () {
    yield* lockLog(sql)
    // In this order, so that it waits for a step of a prune, and the prune's next step finds no claim (PG-12).
    yield* sql`SELECT 1 FROM session_floor WHERE session_id = ${sessionID} ${forUpdate(sql)}`
    const [head] = yield* sql<Key & { readonly seq: number }>`
      SELECT session, seq FROM event_sequence WHERE session_id = ${sessionID} ${forUpdate(sql)}`
    if (head === undefined) return false
    yield* hide(sql, sessionID, head.session)
    yield* deleteStep(sql, head.session)
    // A session that was only claimed for replay had no events, so there is nothing to record.
    if (head.seq < 0) return false
    yield* sql`INSERT INTO session_removal (session_id, position)
      SELECT ${sessionID}, ${newestPosition(sql)}`
    return true
  })
  return Effect.mapError(retryBusy(immediately(sql)(removed)), unavailable("remove"))
}

// Deletes the rows of removed sessions in steps, and erases them from the search index and the write-ahead log. The
// write-ahead log can be truncated only while no reader needs it; an unfinished removal goes on when the database is
// opened.

/** The time between two attempts while a reader is open. */
const pause = "250 millis"

/** Between two steps other writers, of this process and of others, get the database. */
const betweenSteps = Effect.withClock(Effect.sleep("5 millis"), Clock.make())

/** Deletes the rows of removed sessions in steps. What another process deletes meanwhile is done as well. */
export const deleteRows = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(continueRemoval(sql), (found) =>
    found ? Effect.zipRight(betweenSteps, deleteRows(sql)) : Effect.void
  )

/** Deletes the rows of removed sessions, and truncates the write-ahead log if it may hold removed sessions. Returns whether nothing is left to do. */
const attempt = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.gen(function* () {
    const [unswept] = yield* sql<{ readonly number: number | null }>`
      SELECT max(number) AS number FROM session_removal WHERE swept = 0`
    const latest = unswept?.number ?? undefined
    if (latest === undefined) return true
    yield* deleteRows(sql)
    const erased = yield* Effect.catchAll(eraseBeside(sql), (error) =>
      Effect.as(Effect.logDebug("the search index still holds a removed session", error), false)
    )
    if (!(yield* truncate(sql)) || !erased) return false
    const file = yield* fileOf(sql)
    if (file !== "" && !(yield* UnusedBytes.overwriteShared(sql, file))) return false
    yield* sql`UPDATE session_removal SET swept = 1 WHERE swept = 0 AND number <= ${latest}`
    return true
  })

interface Sweeper {
  /** Sweeps now; if a reader prevents it or it is interrupted, in the background, as soon as no reader prevents it. */
  readonly sweep: Effect.Effect<void>
}

/** Starts the background sweeps, first of removals that an earlier process left unswept. */
export const makeSweeping = (sql: SqlClient.SqlClient): Effect.Effect<Sweeper, never, Scope.Scope> =>
  Effect.gen(function* () {
    const due = Effect.unsafeMakeLatch(true)
    // Two at once would read the whole file twice, and prevent each other.
    const alone = yield* Effect.makeSemaphore(1)
    const tried = alone
      .withPermits(1)(attempt(sql))
      .pipe(
        Effect.catchAllCause((cause) =>
          Effect.as(Effect.logDebug("the write-ahead log was not truncated after a removal", cause), false)
        )
      )
    yield* due.await.pipe(
      // Closed before the attempt, so that a removal during it is not missed.
      Effect.zipRight(due.close),
      Effect.zipRight(tried),
      Effect.flatMap((done) => (done ? Effect.void : Effect.zipRight(Effect.sleep(pause), due.open))),
      Effect.forever,
      Effect.forkScoped
    )
    return {
      sweep: Effect.onInterrupt(
        Effect.flatMap(tried, (done) => (done ? Effect.void : Effect.asVoid(due.open))),
        () => due.open
      )
    }
  })

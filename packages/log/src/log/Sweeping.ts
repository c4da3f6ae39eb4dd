/**
 * Deletes the rows of removed sessions in steps, and erases them from the search index and the write-ahead log. SQLite
 * overwrites deleted rows in the database (`secure_delete`), but the write-ahead log still holds what was committed
 * before. It can be truncated only while no reader needs it. A removal is marked as swept once that is done; an
 * unfinished one is continued when the database is opened. Spec: LG-51, LG-52, LG-60, SE-20.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Clock, Effect, type Scope } from "effect"
import { truncate } from "../storage/Checkpoint.ts"
import { eraseBeside } from "../storage/SearchErasure.ts"
import { fileOf } from "../storage/SearchFile.ts"
import * as UnusedBytes from "../storage/UnusedBytes.ts"
import { continueRemoval } from "./Removals.ts"

/** The time between two attempts while a reader is open. */
const pause = "250 millis"

/** Between two steps other writers, of this process and of others, get the database. */
const betweenSteps = Effect.withClock(Effect.sleep("5 millis"), Clock.make())

/** Deletes the rows of removed sessions. */
const deleteRows = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
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

export interface Sweeper {
  /** Sweeps now; if a reader prevents it or it is interrupted, in the background, as soon as no reader prevents it. */
  readonly sweep: Effect.Effect<void>
}

/** Starts the background sweeps, first of removals that an earlier process left unswept. */
export const make = (sql: SqlClient.SqlClient): Effect.Effect<Sweeper, never, Scope.Scope> =>
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

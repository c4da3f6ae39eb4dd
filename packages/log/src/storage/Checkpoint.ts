/**
 * Empties the write-ahead log. A checkpoint of another process makes SQLite refuse at once, and a writer makes it refuse soon:
 * a few more attempts are enough then. A reader that needs the log lasts longer. Spec: LG-50, LG-51.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Clock, Effect } from "effect"

const attempts = 8

/** Other processes end their step meanwhile. */
const pause = Effect.withClock(Effect.sleep("15 millis"), Clock.make())

/** Repeats what other processes may prevent, a few times. Returns whether it succeeded. */
export const insist = <E, R>(attempt: Effect.Effect<boolean, E, R>): Effect.Effect<boolean, E, R> =>
  Effect.gen(function* () {
    for (let left = attempts; left > 0; left--) {
      if (yield* attempt) return true
      yield* pause
    }
    return false
  })

/** Copies the write-ahead log into the file and truncates it. Returns whether no reader or busy writers prevented it. */
export const truncate = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  insist(
    Effect.map(
      sql<{ readonly busy: number }>`PRAGMA wal_checkpoint(TRUNCATE)`,
      ([checkpoint]) => checkpoint?.busy === 0
    )
  )

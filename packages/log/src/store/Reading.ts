/** Runs reads: retries a busy database, and fails with the log's error. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { LogUnavailable } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { retryBusy, snapshot } from "../storage/Transaction.ts"

type Read<A, E> = Effect.Effect<A, Exclude<E, SqlError.SqlError> | LogUnavailable>

/** Runs a read. Errors other than the database's pass through. */
export const reading = <A, E>(effect: Effect.Effect<A, E>): Read<A, E> =>
  Effect.mapError(retryBusy(effect), (error) =>
    // The compiler does not narrow a type parameter.
    error instanceof SqlError.SqlError ? unavailable("read")(error) : (error as Exclude<E, SqlError.SqlError>)
  )

/** Runs several reads that see the same commit. */
export const readingTogether =
  (sql: SqlClient.SqlClient) =>
  <A, E>(effect: Effect.Effect<A, E>): Read<A, E> =>
    reading(snapshot(sql)(effect))

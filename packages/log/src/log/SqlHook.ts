/** Makes the commit hooks of the SQL event log, and runs them. Contract: `CommitHook` in `EventLog.ts`. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { Statements } from "../storage/Connection.ts"
import { directly } from "../storage/Database.ts"
import { type CommitHook, CommitHookTypeId } from "./EventLog.ts"

/** Runs on the append's transaction, with the events that the append stores. */
type Run<E> = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  events: ReadonlyArray<SessionEvent>
) => Effect.Effect<unknown, E>

/** The same as plain code: returns why the append is refused, or undefined. It throws only what its statements throw. */
export type Check<E> = (
  statements: Statements,
  sessionID: SessionID,
  events: ReadonlyArray<SessionEvent>
) => E | undefined

class SqlHook<E> implements CommitHook<E> {
  readonly [CommitHookTypeId] = { _E: (error: never): E => error }
  readonly run: Run<E | SqlError.SqlError>
  readonly check: Check<E> | undefined
  constructor(run: Run<E | SqlError.SqlError>, check?: Check<E>) {
    this.run = run
    this.check = check
  }
}

/**
 * Makes a hook from statements. It runs nothing else, because it may run again when another append of the same group
 * commit is refused. A failed statement fails the append as a database failure.
 */
export const make = <E = never>(run: Run<E>): CommitHook<Exclude<E, SqlError.SqlError>> =>
  new SqlHook(run as Run<Exclude<E, SqlError.SqlError> | SqlError.SqlError>)

/** Makes a hook that does not pause, so that its append can be a synchronous transaction (LG-47). */
export const check = <E>(refusalOf: Check<E>): CommitHook<E> =>
  new SqlHook(
    (sql, sessionID, events) =>
      Effect.flatMap(
        directly(sql, (statements) => refusalOf(statements, sessionID, events)),
        (refusal) => (refusal === undefined ? Effect.void : Effect.fail(refusal))
      ),
    refusalOf
  )

/** The hook's statements. A hook of another kind of log is a defect. */
export const runnerOf = <E>(hook: CommitHook<E>): Run<E | SqlError.SqlError> => {
  if (hook instanceof SqlHook) return hook.run
  throw new TypeError("this commit hook belongs to another kind of event log")
}

/** The hook as plain code; undefined if it is an effect, or a hook of another kind of log. */
export const checkOf = <E>(hook: CommitHook<E>): Check<E> | undefined =>
  hook instanceof SqlHook ? hook.check : undefined

/** Makes the commit hooks of the SQL event log, and runs them. Contract: `CommitHook` in `EventLog.ts`. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type { Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { type CommitHook, CommitHookTypeId } from "./EventLog.ts"

/** Runs on the append's transaction, with the events that the append stores. */
type Run<E> = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  events: ReadonlyArray<SessionEvent>
) => Effect.Effect<unknown, E>

class SqlHook<E> implements CommitHook<E> {
  readonly [CommitHookTypeId] = { _E: (error: never): E => error }
  readonly run: Run<E | SqlError.SqlError>
  constructor(run: Run<E | SqlError.SqlError>) {
    this.run = run
  }
}

/**
 * Makes a hook from statements. It runs nothing else, because it may run again when another append of the same group
 * commit is refused. A failed statement fails the append as a database failure.
 */
export const make = <E = never>(run: Run<E>): CommitHook<Exclude<E, SqlError.SqlError>> =>
  new SqlHook(run as Run<Exclude<E, SqlError.SqlError> | SqlError.SqlError>)

/** The hook's statements. A hook of another kind of log is a defect. */
export const runnerOf = <E>(hook: CommitHook<E>): Run<E | SqlError.SqlError> => {
  if (hook instanceof SqlHook) return hook.run
  throw new TypeError("this commit hook belongs to another kind of event log")
}

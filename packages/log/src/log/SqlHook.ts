/** Makes the commit hooks of the SQL event log, and runs them. Contract: `CommitHook` in `EventLog.ts`. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { Parameters, Statements } from "../storage/Connection.ts"
import { directly } from "../storage/Transaction.ts"
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

/** A condition on one value, which the statement that moves the session's head reads too (LG-49). */
export interface HeadCheck<E> {
  /** The value, as SQL over a row of `event_sequence`. */
  readonly value: string
  /** The same value, read with less work, for an append alone in its transaction: over the row behind its events. */
  readonly alone?: { readonly value: string; readonly parameters: (events: number) => Parameters }
  /** `unseen`: how many events of the append the value does not count yet. */
  readonly refusalOf: (value: HeadValue, sessionID: SessionID, unseen: number) => E | undefined
}

export type HeadValue = string | number | null

class SqlHook<E> implements CommitHook<E> {
  readonly [CommitHookTypeId] = { _E: (error: never): E => error }
  readonly run: Run<E | SqlError.SqlError>
  readonly check: Check<E> | undefined
  readonly head: HeadCheck<E> | undefined
  constructor(run: Run<E | SqlError.SqlError>, check?: Check<E>, head?: HeadCheck<E>) {
    this.run = run
    this.check = check
    this.head = head
  }
}

/**
 * Makes a hook from statements. It runs nothing else, because it may run again when another append of the same group
 * commit is refused. A failed statement fails the append as a database failure.
 */
export const make = <E = never>(run: Run<E>): CommitHook<Exclude<E, SqlError.SqlError>> =>
  new SqlHook(run as Run<Exclude<E, SqlError.SqlError> | SqlError.SqlError>)

const runOf =
  <E>(refusalOf: Check<E>): Run<E | SqlError.SqlError> =>
  (sql, sessionID, events) =>
    Effect.flatMap(
      directly(sql, (statements) => refusalOf(statements, sessionID, events)),
      (refusal) => (refusal === undefined ? Effect.void : Effect.fail(refusal))
    )

/** Makes a hook that does not pause, so that its append can be a synchronous transaction (LG-47). */
export const check = <E>(refusalOf: Check<E>): CommitHook<E> => new SqlHook(runOf(refusalOf), refusalOf)

/**
 * Makes such a hook from a condition on one value. An append alone in its transaction reads the value with its head.
 * Beside other appends, which may change the value, a statement of its own reads it after all of them.
 */
export const onHead = <E>(head: HeadCheck<E>): CommitHook<E> => {
  const refusalOf: Check<E> = (statements, sessionID) =>
    head.refusalOf(valueOf(statements, sessionID, head.value), sessionID, 0)
  return new SqlHook(runOf(refusalOf), refusalOf, head)
}

const valueOf = (statements: Statements, sessionID: SessionID, value: string): HeadValue => {
  const text = `SELECT ${value} AS value FROM event_sequence WHERE session_id = ?`
  return statements.all<{ readonly value: HeadValue }>(text, [sessionID])[0]?.value ?? null
}

/** The check of a hook that does not pause; undefined for another one. */
type CheckOf = <E>(hook: CommitHook<E>) => Check<E> | undefined

/** Checks hooks one after another, while nothing is written: a value of a head is read once for all of them. */
export const checksTogether = (): CheckOf => {
  const known = new Map<string, HeadValue>()
  return (hook) => {
    const head = headOf(hook)
    if (head === undefined) return checkOf(hook)
    return (statements, sessionID) => {
      const key = `${sessionID} ${head.value}`
      const value = known.get(key) ?? valueOf(statements, sessionID, head.value)
      known.set(key, value)
      return head.refusalOf(value, sessionID, 0)
    }
  }
}

/** The hook's statements. A hook of another kind of log is a defect. */
export const runnerOf = <E>(hook: CommitHook<E>): Run<E | SqlError.SqlError> => {
  if (hook instanceof SqlHook) return hook.run
  throw new TypeError("this commit hook belongs to another kind of event log")
}

/** The hook as plain code; undefined if it is an effect, or a hook of another kind of log. */
export const checkOf = <E>(hook: CommitHook<E>): Check<E> | undefined =>
  hook instanceof SqlHook ? hook.check : undefined

/** The hook's condition on a value of the head, if it is one. */
export const headOf = <E>(hook: CommitHook<E>): HeadCheck<E> | undefined =>
  hook instanceof SqlHook ? hook.head : undefined

/** Makes the commit hooks of the SQL event log, and checks them. Contract: `CommitHook` in `EventLog.ts`. */
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { Parameters, Statements } from "../storage/Connection.ts"
import { type CommitHook, CommitHookTypeId } from "./EventLog.ts"

/**
 * Returns why the append is refused, or undefined. Runs in its transaction, with the events that it stores, and may run
 * again when another append of the same commit is refused. It throws only what its statements throw: a statement that
 * fails fails the append as a database failure.
 */
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

/** One query in an append's transaction, and what its rows decide. A log whose statements take time runs it as well. */
export interface Question<Row, E> {
  readonly query: (sessionID: SessionID) => { readonly text: string; readonly parameters: Parameters }
  readonly refusalOf: (rows: ReadonlyArray<Row>, sessionID: SessionID) => E | undefined
}

class SqlHook<E> implements CommitHook<E> {
  readonly [CommitHookTypeId] = { _E: (error: never): E => error }
  readonly check: Check<E>
  readonly head: HeadCheck<E> | undefined
  readonly question: Question<unknown, E> | undefined
  constructor(check: Check<E>, head?: HeadCheck<E>, question?: Question<unknown, E>) {
    this.check = check
    this.head = head
    this.question = question
  }
}

export const check = <E>(refusalOf: Check<E>): CommitHook<Exclude<E, undefined>> =>
  new SqlHook(refusalOf as Check<Exclude<E, undefined>>)

/** Makes a hook from one query. */
export const asking = <Row, E>(question: Question<Row, E>): CommitHook<E> =>
  new SqlHook<E>(
    (statements, sessionID) => {
      const { parameters, text } = question.query(sessionID)
      return question.refusalOf(statements.all<Row>(text, parameters), sessionID)
    },
    undefined,
    // Only the rows of its own query reach it.
    question as Question<unknown, E>
  )

/**
 * Makes a hook from a condition on one value. An append alone in its transaction reads the value with its head. Beside
 * other appends, which may change the value, a statement of its own reads it after all of them.
 */
export const onHead = <E>(head: HeadCheck<E>): CommitHook<E> => {
  const refusalOf: Check<E> = (statements, sessionID) =>
    head.refusalOf(valueOf(statements, sessionID, head.value), sessionID, 0)
  return new SqlHook(refusalOf, head)
}

type ValueRow = { readonly value: HeadValue }

const valueText = (value: string): string => `SELECT ${value} AS value FROM event_sequence WHERE session_id = ?`

const valueOf = (statements: Statements, sessionID: SessionID, value: string): HeadValue =>
  statements.all<ValueRow>(valueText(value), [sessionID])[0]?.value ?? null

const checkOf = <E>(hook: CommitHook<E>): Check<E> => {
  if (hook instanceof SqlHook) return hook.check
  throw new TypeError("this commit hook belongs to another kind of event log")
}

/** Checks hooks one after another, while nothing is written: a value of a head is read once for all of them. */
export const checksTogether = (): typeof checkOf => {
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

/**
 * The query of a hook, for a log whose statements take time. A hook of another kind of log, or one that runs statements by
 * itself, is a defect.
 */
export const questionOf = <E>(hook: CommitHook<E>): Question<unknown, E> => {
  if (hook instanceof SqlHook) {
    const { head, question }: SqlHook<E> = hook
    if (question !== undefined) return question
    if (head !== undefined) {
      return {
        query: (sessionID) => ({ text: valueText(head.value), parameters: [sessionID] }),
        refusalOf: (rows, sessionID) => {
          // The row of `valueText`.
          const [row] = rows as ReadonlyArray<ValueRow>
          return head.refusalOf(row?.value ?? null, sessionID, 0)
        }
      }
    }
  }
  throw new TypeError("this commit hook belongs to another kind of event log")
}

/** The hook's condition on a value of the head, if it is one. */
export const headOf = <E>(hook: CommitHook<E>): HeadCheck<E> | undefined =>
  hook instanceof SqlHook ? hook.head : undefined

/**
 * Writes a batch of append requests in one transaction: heads, sequence numbers, event rows, projections and commit
 * hooks, in a few statements. Isolates refused requests from the others. Runs inside a write transaction; the queue is
 * in `Writer.ts`. Spec: LG-1..LG-6.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Cause, Effect, Either, Exit, Option, Predicate } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { EventID, SessionID } from "../domain/Identifiers.ts"
import type { Encoded } from "../events/Registry.ts"
import type { DurableType, SessionEvent } from "../events/SessionEvents.ts"
import { join, type Refusal } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { eachRun, type SessionKeys, write } from "../projection/SqlTables.ts"
import { execute, executeRaw, immediately } from "../storage/Database.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { checksumOf } from "./Checksum.ts"
import {
  type CommitHook,
  EventRefused,
  type LogUnavailable,
  OwnerLost,
  type OwnerToken,
  SeqConflict
} from "./EventLog.ts"
import { insertEvents, type NewEvent, unavailable } from "./EventRow.ts"
import * as SqlHook from "./SqlHook.ts"
import type { Commit } from "./Tails.ts"

/** Extra work in each append's transaction, such as a read model of another package. The log provides `R`. */
export interface Projector<R = SqlClient.SqlClient> {
  readonly name: string
  /**
   * Statements on the provided `SqlClient` join the append's transaction. Create the tables first, with `CREATE TABLE
   * IF NOT EXISTS`. Run only SQL here: `project` may run again when another append of the same commit is refused.
   * `events` can belong to several sessions. After a failure, `project` runs again with smaller groups, down to a
   * single append.
   */
  readonly project: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, SqlError.SqlError | EventRefused, R>
}

export interface EncodedDraft {
  readonly type: DurableType
  readonly encoded: Encoded
}

/** Where appends are written. */
export interface Target {
  readonly sql: SqlClient.SqlClient
  readonly projectors: ReadonlyArray<Projector<never>>
  /** The id of the event at a place. */
  readonly idAt: (created: number, position: number) => EventID
}

/** An append that waits in the queue. */
export interface Request {
  readonly sessionID: SessionID
  readonly drafts: NonEmptyReadonlyArray<EncodedDraft>
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly expectedSeq: number | undefined
  readonly owner: OwnerToken | undefined
  /** The caller's hook. Its typed failures are returned to that caller only. */
  readonly commit: CommitHook<unknown> | undefined
}

/** A failure of the caller's commit hook. */
export class HookFailed {
  readonly _tag = "HookFailed"
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/** Why one append was not written; includes database failures. */
export type Failure = SeqConflict | OwnerLost | EventRefused | LogUnavailable | HookFailed

/** The result of one append. */
export type Result = Exit.Exit<Commit, Failure>

type BatchError = SqlError.SqlError | EventRefused | HookFailed

type Head = {
  /** The session's number in rows. */
  readonly session: number
  readonly seq: number
  readonly incarnation: number | null
  readonly owner_id: string | null
  readonly owner_epoch: number
}

/** The last numbers ever given to an event and to a session. */
export interface Last {
  readonly position: number
  readonly session: number
}

/** Selects the last numbers. */
export const selectLast = (sql: SqlClient.SqlClient) =>
  Effect.map(
    execute<{ readonly name: string; readonly seq: number }>(sql, "SELECT name, seq FROM sqlite_sequence", []),
    (rows): Last => {
      const last = new Map(rows.map(({ name, seq }) => [name, seq]))
      return { position: last.get("event") ?? 0, session: last.get("event_sequence") ?? 0 }
    }
  )

const selectHeads = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => {
  const heads = new Map<string, Head>()
  return Effect.as(
    eachRun(ids, (run) =>
      Effect.map(
        execute<Head & { readonly session_id: string }>(
          sql,
          "SELECT session, session_id, seq, incarnation, owner_id, owner_epoch FROM event_sequence " +
            `WHERE session_id IN (${run.map(() => "?").join(", ")})`,
          run
        ),
        (rows) => {
          for (const head of rows) heads.set(head.session_id, head)
        }
      )
    ),
    heads
  )
}

/** The new head of a session. A session's incarnation is the position of its first event. */
export interface Moved {
  readonly session: number
  readonly seq: number
  readonly incarnation: number
}

/** Updates the sessions' heads and inserts missing ones. */
export const writeHeads = (sql: SqlClient.SqlClient, heads: ReadonlyMap<string, Moved>) =>
  eachRun([...heads], (run) =>
    executeRaw(
      sql,
      `INSERT INTO event_sequence (session, session_id, seq, incarnation) VALUES ${run.map(() => "(?, ?, ?, ?)").join(", ")} ` +
        "ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, incarnation = excluded.incarnation",
      run.flatMap(([id, { incarnation, seq, session }]) => [session, id, seq, incarnation])
    )
  )

/** A head with events keeps its incarnation. A head that is only claimed starts one with its first event. */
export const incarnationOf = (
  head: { readonly seq: number; readonly incarnation: number | null } | undefined,
  position: number
): number => (head === undefined || head.seq < 0 ? position : (head.incarnation ?? 0))

const refused = (sessionID: SessionID, { details, table }: { readonly details: string; readonly table: string }) =>
  new EventRefused({ sessionID, table, details })

const isRefusal = (error: unknown): error is Refusal =>
  Predicate.isRecord(error) && !Predicate.hasProperty(error, "_tag") && typeof error["details"] === "string"

/** Writes the projections of the events, then runs the extra projectors in order. */
export const writeProjections = (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  events: NonEmptyReadonlyArray<SessionEvent>,
  keys: SessionKeys
): Effect.Effect<void, SqlError.SqlError | EventRefused> => {
  const { sessionID } = Arr.headNonEmpty(events)
  const misplaced = events.find(({ seq, type }) => (seq === 0) !== (type === "session.created"))
  if (misplaced !== undefined) return refused(misplaced.sessionID, beginning(misplaced))
  const joined = join(events.flatMap(project))
  if (Either.isLeft(joined)) return refused(sessionID, joined.left)
  const core = Effect.mapError(write(sql, joined.right, keys), (error) =>
    isRefusal(error)
      ? refused(sessionID, error)
      : reasonOf(error) === "constraint"
        ? refused(sessionID, brokenRule(error, "session_message"))
        : error
  )
  return projectors.length === 0
    ? core
    : Effect.zipRight(
        core,
        Effect.forEach(projectors, (projector) => projector.project(events), { discard: true })
      )
}

/** A log starts with `session.created` and contains it exactly once (LG-2). */
const beginning = ({ type }: SessionEvent) => ({
  table: "session",
  details: type === "session.created" ? "the session already exists" : "there is no such session to append to"
})

/** Extracts the table and the rule from the driver's message: `UNIQUE constraint failed: session_message.id`. */
const brokenRule = (error: SqlError.SqlError, otherwise: string) => {
  const said = error.cause instanceof Error ? error.cause.message : ""
  const [, table = otherwise, column = "a key"] = /: (\w+)\.(\w+)/.exec(said) ?? []
  return { table, details: said.startsWith("UNIQUE") ? `its ${column} is taken` : said }
}

/**
 * Writes all requests, in order. A request with a stale `expectedSeq` or a stale owner gets its error and writes
 * nothing. Any other failure fails the whole effect.
 */
export const writeBatch = Effect.fnUntraced(function* (
  { idAt, projectors, sql }: Target,
  requests: NonEmptyReadonlyArray<Request>
) {
  const heads = yield* selectHeads(sql, [...new Set(requests.map(({ sessionID }) => sessionID))])
  const last = yield* selectLast(sql)
  let { position, session: lastSession } = last
  const moved = new Map<string, Moved>()
  const rows: Array<NewEvent> = []
  const written: Array<SessionEvent> = []
  const answers: Array<Result> = []
  for (const { created, drafts, expectedSeq, owner, sessionID } of requests) {
    const head = heads.get(sessionID)
    const before = moved.get(sessionID) ?? head
    const last = before?.seq ?? -1
    if (owner !== undefined && (head?.owner_id !== owner.ownerID || head.owner_epoch !== owner.epoch)) {
      answers.push(Exit.fail(new OwnerLost({ sessionID, ...owner })))
      continue
    }
    if (expectedSeq !== undefined && expectedSeq !== last) {
      answers.push(Exit.fail(new SeqConflict({ sessionID, expected: expectedSeq, actual: last })))
      continue
    }
    const incarnation = incarnationOf(before, position + 1)
    const session = before?.session ?? ++lastSession
    const events = Arr.map(drafts, ({ encoded, type }, index): SessionEvent => {
      const seq = last + 1 + index
      position += 1
      const id = idAt(created, position)
      const checksum = checksumOf({ id, session_id: sessionID, seq, type: encoded.stored, created, data: encoded.text })
      rows.push({ position, session, seq, type: encoded.stored, created, checksum, id: null, data: encoded.text })
      const { data, version } = encoded
      // A draft's type and payload plus an envelope form an event of that type.
      return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
    })
    moved.set(sessionID, { session, seq: last + events.length, incarnation })
    for (const event of events) written.push(event)
    answers.push(Exit.succeed({ incarnation, events }))
  }
  if (!Arr.isNonEmptyArray(written)) return answers
  yield* writeHeads(sql, moved)
  yield* insertEvents(sql, rows)
  const keys = new Map(Array.from(moved, ([id, { session }]) => [id, session]))
  yield* writeProjections(sql, projectors, written, keys)
  for (const [index, answer] of answers.entries()) {
    const request = requests[index]
    if (request?.commit === undefined || Exit.isFailure(answer)) continue
    yield* runHook(sql, request.sessionID, request.commit, answer.value.events)
  }
  return answers
})

/** A failed statement stays the database's failure; any other failure is the hook's. */
const runHook = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  hook: CommitHook<unknown>,
  events: ReadonlyArray<SessionEvent>
) =>
  Effect.mapError(SqlHook.runnerOf(hook)(sql, sessionID, events), (error) =>
    error instanceof SqlError.SqlError ? error : new HookFailed(error)
  )

/**
 * Whether the append itself is at fault (a broken rule, its hook or a projector), so that the database can continue.
 * Defects and interruptions come from hooks or projectors: statements fail with typed errors.
 */
export const isRefused = (cause: Cause.Cause<BatchError>): boolean =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => true,
    onSome: (error) => !(error instanceof SqlError.SqlError) || reasonOf(error) === "constraint"
  })

/** Converts the failure of an append that was written alone to its caller's result. */
export const toResult = (sessionID: SessionID, cause: Cause.Cause<BatchError>): Result =>
  Exit.failCause(Cause.map(cause, (error) => (error instanceof HookFailed ? error : toAppendError(sessionID, error))))

/**
 * Writes the requests except the refused ones, which are found by bisection, rolled back and answered with their error.
 * The others need no more statements than before. If the database fails, this effect and the transaction fail.
 */
export const writeApart = (
  target: Target,
  requests: NonEmptyReadonlyArray<Request>
): Effect.Effect<ReadonlyArray<Result>, BatchError> =>
  Effect.catchAllCause(
    immediately(target.sql)(writeBatch(target, requests)),
    (cause): Effect.Effect<ReadonlyArray<Result>, BatchError> => {
      if (!isRefused(cause)) return Effect.failCause(cause)
      return requests.length === 1
        ? Effect.succeed([toResult(requests[0].sessionID, cause)])
        : Effect.map(
            Effect.forEach(halves(requests), (half) => writeApart(target, half)),
            Arr.flatten
          )
    }
  )

/** Splits the requests into two halves, in order. */
export const halves = (requests: NonEmptyReadonlyArray<Request>): ReadonlyArray<NonEmptyReadonlyArray<Request>> =>
  [requests.slice(0, requests.length >> 1), requests.slice(requests.length >> 1)].filter((half) =>
    Arr.isNonEmptyArray(half)
  )

/** Converts a write failure to the log's error type. */
export const toAppendError = (
  sessionID: SessionID,
  error: SqlError.SqlError | EventRefused
): EventRefused | LogUnavailable => {
  if (error instanceof EventRefused) return error
  return reasonOf(error) === "constraint"
    ? refused(sessionID, brokenRule(error, "event"))
    : unavailable("append")(error)
}

/**
 * Writes a batch of append requests in one transaction: heads, sequence numbers, event rows, projections and commit
 * hooks, in a few statements. Isolates refused requests from the others. Runs inside a write transaction; the queue is
 * in `Writer.ts`. Spec: LG-1..LG-6.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Cause, Effect, Either, Exit, Option } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { EventID, SessionID } from "../domain/Identifiers.ts"
import type { Encoded } from "../events/Registry.ts"
import type { DurableType, SessionEvent } from "../events/SessionEvents.ts"
import { join } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { type SessionKeys, write } from "../projection/SqlTables.ts"
import type { Statements } from "../storage/Connection.ts"
import { directly, immediately, reasonOf } from "../storage/Transaction.ts"
import {
  type CommitHook,
  EventRefused,
  type LogUnavailable,
  OwnerLost,
  type OwnerToken,
  SeqConflict
} from "./EventLog.ts"
import { checksumOf, type EventTypes, insertEvents, type NewEvent, unavailable } from "./EventRow.ts"
import * as Heads from "./Heads.ts"
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
  readonly types: EventTypes
  /** The id of the event at a place. */
  readonly idAt: (created: number, position: number) => EventID
}

/** An append that waits in the queue. */
export interface Request {
  readonly sessionID: SessionID
  readonly drafts: NonEmptyReadonlyArray<EncodedDraft>
  /** Milliseconds since the epoch. */
  readonly created: number
  /** The times of the drafts, in place of `created`. */
  readonly times: ReadonlyArray<number> | undefined
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

/** Why a batch was not written. */
export type BatchError = SqlError.SqlError | EventRefused | HookFailed

const refused = (sessionID: SessionID, { details, table }: { readonly details: string; readonly table: string }) =>
  new EventRefused({ sessionID, table, details })

/** Recognizes the refusals that `writeRows` throws. */
export const isEventRefused = (thrown: unknown): thrown is EventRefused => thrown instanceof EventRefused

/** Recognizes the refusals that `writeEvents` throws. */
export const isRefusal = (thrown: unknown): thrown is EventRefused | HookFailed =>
  isEventRefused(thrown) || thrown instanceof HookFailed

/** Writes the projections of the events. Throws `EventRefused` if they contradict the rows. */
export const writeRows = (
  statements: Statements,
  events: NonEmptyReadonlyArray<SessionEvent>,
  keys: SessionKeys
): void => {
  const { sessionID } = Arr.headNonEmpty(events)
  const misplaced = events.find(({ seq, type }) => (seq === 0) !== (type === "session.created"))
  if (misplaced !== undefined) throw refused(misplaced.sessionID, beginning(misplaced))
  const joined = join(events.flatMap(project))
  if (Either.isLeft(joined)) throw refused(sessionID, joined.left)
  try {
    const refusal = write(statements, joined.right, keys)
    if (refusal !== undefined) throw refused(sessionID, refusal)
  } catch (thrown) {
    throw thrown instanceof SqlError.SqlError && reasonOf(thrown) === "constraint"
      ? refused(sessionID, brokenRule(thrown, "session_message"))
      : thrown
  }
}

/** Runs the projectors in order. */
export const runProjectors = (
  projectors: ReadonlyArray<Projector<never>>,
  events: ReadonlyArray<SessionEvent>
): Effect.Effect<void, SqlError.SqlError | EventRefused> =>
  Effect.forEach(projectors, (projector) => projector.project(events), { discard: true })

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

/** What a batch wrote: each request's result, and the events in order. */
interface Written {
  readonly answers: ReadonlyArray<Result>
  readonly events: ReadonlyArray<SessionEvent>
  /** The only request's hook was checked with its head. */
  readonly checked: boolean
}

/** Why a request cannot be written at this head; undefined if it can. */
const conflict = (
  { expectedSeq, owner, sessionID }: Request,
  head: Heads.Head | undefined
): OwnerLost | SeqConflict | undefined => {
  const seq = head?.seq ?? -1
  return owner !== undefined && (head?.owner_id !== owner.ownerID || head.owner_epoch !== owner.epoch)
    ? new OwnerLost({ sessionID, ...owner })
    : expectedSeq !== undefined && expectedSeq !== seq
      ? new SeqConflict({ sessionID, expected: expectedSeq, actual: seq })
      : undefined
}

/** The hook's condition that is checked with the head: only while no other append of the transaction can change it. */
const headCheckOf = (requests: NonEmptyReadonlyArray<Request>): SqlHook.HeadCheck<unknown> | undefined => {
  const [{ commit }] = requests
  return requests.length > 1 || commit === undefined ? undefined : SqlHook.headOf(commit)
}

/** A hook that is left when the events are written, with the events of its append. */
interface HookAfter {
  readonly hook: CommitHook<unknown>
  readonly sessionID: SessionID
  readonly events: ReadonlyArray<SessionEvent>
}

/** The hooks that are left, in the order of the requests. */
export const hooksAfter = (
  requests: NonEmptyReadonlyArray<Request>,
  { answers, checked }: Written
): ReadonlyArray<HookAfter> =>
  checked
    ? []
    : requests.flatMap(({ commit: hook, sessionID }, index) => {
        const answer = answers[index]
        return hook === undefined || answer === undefined || Exit.isFailure(answer)
          ? []
          : [{ hook, sessionID, events: answer.value.events }]
      })

/**
 * Moves the head of the request's session over its events. Changes nothing if the request contradicts the head. Throws
 * `HookFailed` if the check refuses.
 */
const moveHead = (
  statements: Statements,
  request: Request,
  pending: number,
  check: SqlHook.HeadCheck<unknown> | undefined
): Either.Either<Heads.Taken, OwnerLost | SeqConflict> => {
  const { drafts, expectedSeq, owner, sessionID } = request
  const value = check?.alone?.value ?? check?.value
  const step = {
    count: drafts.length,
    pending,
    expectedSeq,
    owner,
    value,
    parameters: check?.alone?.parameters(drafts.length)
  }
  const taken = Heads.step(statements, sessionID, step)
  if (taken !== undefined) {
    const refusal = check?.refusalOf(taken.value ?? null, sessionID, drafts.length)
    if (refusal !== undefined) throw new HookFailed(refusal)
    return Either.right(taken)
  }
  const contradicted = conflict(request, Heads.selectHead(statements, sessionID))
  return contradicted === undefined ? Either.right(Heads.begin(statements, sessionID, step)) : Either.left(contradicted)
}

/** Writes the events, heads and projections of all requests, in order. Throws `SqlError`, `EventRefused`, `HookFailed`. */
export const writeEvents = (
  { idAt, types }: Target,
  statements: Statements,
  requests: NonEmptyReadonlyArray<Request>
): Written => {
  const check = headCheckOf(requests)
  const keys = new Map<string, number>()
  const rows: Array<NewEvent> = []
  const written: Array<SessionEvent> = []
  const answers: Array<Result> = []
  let checked = false
  for (const request of requests) {
    const { drafts, sessionID, times } = request
    const moved = moveHead(statements, request, written.length, check)
    if (Either.isLeft(moved)) {
      answers.push(Exit.fail(moved.left))
      continue
    }
    const { incarnation, position: before, seq: head, session, value } = moved.right
    checked = value !== undefined
    const events = Arr.map(drafts, ({ encoded, type }, index): SessionEvent => {
      const seq = head - drafts.length + 1 + index
      const position = before + 1 + index
      const created = times?.[index] ?? request.created
      const id = idAt(created, position)
      const { data, stored, text, version } = encoded
      const checksum = checksumOf({ id, session_id: sessionID, seq, type: stored, created, data: text })
      rows.push({ position, session, seq, type: stored, created, checksum, id: null, data: text })
      // A draft's type and payload plus an envelope form an event of that type.
      return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
    })
    keys.set(sessionID, session)
    for (const event of events) written.push(event)
    answers.push(Exit.succeed({ incarnation, events }))
  }
  if (!Arr.isNonEmptyArray(written)) return { answers, events: [], checked }
  insertEvents(statements, types, rows)
  writeRows(statements, written, keys)
  return { answers, events: written, checked }
}

/**
 * Writes all requests, in order, then runs projectors and hooks. A request with a stale `expectedSeq` or a stale owner
 * gets its error and writes nothing. Any other failure fails the whole effect.
 */
export const writeBatch = (
  target: Target,
  requests: NonEmptyReadonlyArray<Request>
): Effect.Effect<ReadonlyArray<Result>, BatchError> =>
  Effect.flatMap(
    directly(target.sql, (statements) => writeEvents(target, statements, requests), isRefusal),
    (written): Effect.Effect<ReadonlyArray<Result>, BatchError> => {
      const { answers, events } = written
      const hooks = hooksAfter(requests, written).map((after) =>
        runHook(target.sql, after.sessionID, after.hook, after.events)
      )
      const projected =
        target.projectors.length === 0 || events.length === 0 ? [] : [runProjectors(target.projectors, events)]
      const rest: ReadonlyArray<Effect.Effect<unknown, BatchError>> = [...projected, ...hooks]
      return rest.length === 0
        ? Effect.succeed(answers)
        : Effect.as(
            Effect.forEach(rest, (step) => step, { discard: true }),
            answers
          )
    }
  )

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

/**
 * Commits a batch of append requests in one synchronous transaction: heads, sequence numbers, event rows, projections
 * and commit hooks, in a few statements. A refused request does not affect the other requests. The queue is in
 * `Writer.ts`. Spec: LG-1..LG-6, LG-21, LG-22, LG-47.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Cause, Effect, Either, Exit, Option, Predicate } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { EventID, SessionID } from "../domain/Identifiers.ts"
import type { EncodedEvent } from "../events/Registry.ts"
import type { DurableType, SessionEvent } from "../events/SessionEvents.ts"
import { join, type Joined } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { type SessionKeys, write } from "../projection/SqlTables.ts"
import { connectionOf, type Statements } from "../storage/Connection.ts"
import { jointly } from "../storage/GroupCommit.ts"
import { inSavepoint, isBusy, reasonOf } from "../storage/Transaction.ts"
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
import { keepNewest } from "../support/Newest.ts"

/** Extra work in each append's transaction, such as a read model of another package. */
export interface Projector {
  readonly name: string
  /**
   * Statements of the `SqlClient` that it gets join the append's transaction; a failure refuses the append. Make the tables
   * before, where the runtime is built. Run only statements here: in SQLite they run at once, and work that waits for
   * anything else is a defect. It runs again with smaller groups, down to a single append, when an append of the commit is
   * refused. `events` can belong to several sessions.
   */
  readonly project: (
    events: ReadonlyArray<SessionEvent>
  ) => Effect.Effect<unknown, EventRefused | SqlError.SqlError, SqlClient.SqlClient>
}

/** The work of a projector on the connection of an append. */
export const projecting = (
  { project }: Projector,
  sql: SqlClient.SqlClient,
  connection: Connection,
  events: ReadonlyArray<SessionEvent>
): Effect.Effect<unknown, EventRefused | SqlError.SqlError> =>
  project(events).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.provideService(SqlClient.TransactionConnection, [connection, 0] as const)
  )

export interface EncodedDraft {
  readonly type: DurableType
  readonly encoded: EncodedEvent
}

export interface Target {
  readonly sql: SqlClient.SqlClient
  readonly projectors: ReadonlyArray<Projector>
  readonly types: EventTypes
  readonly idAt: (created: number, position: number) => EventID
}

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

export type Requests = NonEmptyReadonlyArray<Request>

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

export type Result = Exit.Exit<Commit, Failure>

export const refused = (
  sessionID: SessionID,
  { details, table }: { readonly details: string; readonly table: string }
) => new EventRefused({ sessionID, table, details })

export const isEventRefused = (thrown: unknown): thrown is EventRefused => thrown instanceof EventRefused

/** The changes of the events to the projected rows. Throws `EventRefused` if they contradict each other. */
export const changesOf = (events: NonEmptyReadonlyArray<SessionEvent>): Joined => {
  const misplaced = events.find(({ seq, type }) => (seq === 0) !== (type === "session.created"))
  if (misplaced !== undefined) throw refused(misplaced.sessionID, beginning(misplaced))
  const joined = join(events.flatMap(project))
  if (Either.isLeft(joined)) throw refused(Arr.headNonEmpty(events).sessionID, joined.left)
  return joined.right
}

/** Writes the projections of the events. Throws `EventRefused` if they contradict the rows. */
export const writeRows = (
  statements: Statements,
  events: NonEmptyReadonlyArray<SessionEvent>,
  keys: SessionKeys
): void => {
  const { sessionID } = Arr.headNonEmpty(events)
  const changes = changesOf(events)
  try {
    const refusal = write(statements, changes, keys)
    if (refusal !== undefined) throw refused(sessionID, refusal)
  } catch (thrown) {
    throw thrown instanceof SqlError.SqlError && reasonOf(thrown) === "constraint"
      ? refused(sessionID, brokenRule(thrown, "session_message"))
      : thrown
  }
}

/** Runs the projectors in order, on the client's own connection. Throws what the first failure says. */
export const runProjectors = ({ projectors, sql }: Target, events: ReadonlyArray<SessionEvent>): void => {
  if (projectors.length === 0) return
  const connection = connectionOf(sql)
  if (connection === undefined) throw new TypeError("projectors need a database that Daybook opened")
  for (const projector of projectors) {
    const exit = Effect.runSyncExit(projecting(projector, sql, connection, events))
    if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  }
}

/** A log starts with `session.created` and contains it exactly once (LG-2). */
const beginning = ({ type }: SessionEvent) => ({
  table: "session",
  details: type === "session.created" ? "the session already exists" : "there is no such session to append to"
})

/**
 * Extracts the table and the rule from the driver's message: `UNIQUE constraint failed: session_message.id`, or from
 * PostgreSQL's `Key (id)=(msg_1) already exists.` with its table, where the log's own refusals have a message alone.
 */
export const brokenRule = (error: SqlError.SqlError, otherwise: string) => {
  const { cause } = error
  const said = cause instanceof Error ? cause.message : ""
  if (Predicate.hasProperty(cause, "table") && typeof cause.table === "string") {
    const detail = Predicate.hasProperty(cause, "detail") ? cause.detail : undefined
    const [, column = "a key"] = /^Key \(([^)]*)\)=/.exec(String(detail)) ?? []
    return { table: cause.table, details: detail === undefined ? said : `its ${column} is taken` }
  }
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
export const conflict = (
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
const headCheckOf = (requests: Requests): SqlHook.HeadCheck<unknown> | undefined => {
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
const hooksAfter = (requests: Requests, { answers, checked }: Written): ReadonlyArray<HookAfter> =>
  checked
    ? []
    : requests.flatMap(({ commit: hook, sessionID }, index) => {
        const answer = answers[index]
        return hook === undefined || answer === undefined || Exit.isFailure(answer)
          ? []
          : [{ hook, sessionID, events: answer.value.events }]
      })

/** Moves the session's head over its events, unless the request contradicts it. Throws `HookFailed`. */
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

/** The events of a request behind a position, at the end of its session's new head. Their rows are added to `rows`. */
export const placed = (
  { created: now, drafts, sessionID, times }: Request,
  { position: before, seq: head, session }: Pick<Heads.Taken, "position" | "seq" | "session">,
  idAt: Target["idAt"],
  rows: Array<NewEvent>
): NonEmptyReadonlyArray<SessionEvent> =>
  Arr.map(drafts, ({ encoded, type }, index): SessionEvent => {
    const seq = head - drafts.length + 1 + index
    const position = before + 1 + index
    const created = times?.[index] ?? now
    const id = idAt(created, position)
    const { data, stored, text, version } = encoded
    const checksum = checksumOf({ id, session_id: sessionID, seq, type: stored, created, data: text })
    rows.push({ position, session, seq, type: stored, created, checksum, id: null, data: text })
    // A draft's type and payload plus an envelope form an event of that type.
    return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
  })

/** Writes the events, heads and projections of all requests, in order. Throws `SqlError`, `EventRefused`, `HookFailed`. */
const writeEvents = ({ idAt, types }: Target, statements: Statements, requests: Requests): Written => {
  const check = headCheckOf(requests)
  const keys = new Map<string, number>()
  const rows: Array<NewEvent> = []
  const written: Array<SessionEvent> = []
  const answers: Array<Result> = []
  let checked = false
  for (const request of requests) {
    const { sessionID } = request
    const moved = moveHead(statements, request, written.length, check)
    if (Either.isLeft(moved)) {
      answers.push(Exit.fail(moved.left))
      continue
    }
    const { incarnation, session, value } = moved.right
    checked = value !== undefined
    const events = placed(request, moved.right, idAt, rows)
    keys.set(sessionID, session)
    for (const event of events) written.push(event)
    answers.push(Exit.succeed({ incarnation, events }))
  }
  if (!Arr.isNonEmptyArray(written)) return { answers, events: [], checked }
  insertEvents(statements, types, rows)
  writeRows(statements, written, keys)
  return { answers, events: written, checked }
}

/** Checks the hooks in order. Throws `HookFailed` if one refuses its append. */
const checkHooks = (statements: Statements, hooks: ReadonlyArray<HookAfter>): void => {
  const checkOf = SqlHook.checksTogether()
  for (const { events, hook, sessionID } of hooks) {
    const refusal = checkOf(hook)(statements, sessionID, events)
    if (refusal !== undefined) throw new HookFailed(refusal)
  }
}

/**
 * Writes all requests, in order, then runs projectors and checks hooks. A request with a stale `expectedSeq` or a stale
 * owner gets its error and writes nothing. Throws what refuses any of the others, and what fails.
 */
const writeAll = (target: Target, statements: Statements, requests: Requests): ReadonlyArray<Result> => {
  const written = writeEvents(target, statements, requests)
  if (written.events.length > 0) runProjectors(target, written.events)
  checkHooks(statements, hooksAfter(requests, written))
  return written.answers
}

/**
 * Whether an append itself is at fault (a broken rule, its hook or a projector), so that the database can continue.
 * Defects come from hooks or projectors: statements throw `SqlError`.
 */
export const isRefusal = (thrown: unknown): boolean =>
  !(thrown instanceof SqlError.SqlError) || reasonOf(thrown) === "constraint"

/** The result of an append that was written alone and threw this. */
export const failureOf = (sessionID: SessionID, thrown: unknown): Result =>
  thrown instanceof HookFailed
    ? Exit.fail(thrown)
    : thrown instanceof SqlError.SqlError || isEventRefused(thrown)
      ? Exit.fail(toAppendError(sessionID, thrown))
      : Exit.die(thrown)

/**
 * Writes the requests except the refused ones, which are found by bisection, rolled back and answered with their error.
 * The others need no more statements than before. Throws if the database fails; the transaction is lost then.
 */
const writeApart = (target: Target, statements: Statements, requests: Requests): ReadonlyArray<Result> => {
  try {
    return inSavepoint(statements, () => writeAll(target, statements, requests))
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    return requests.length === 1
      ? [failureOf(requests[0].sessionID, thrown)]
      : halves(requests).flatMap((half) => writeApart(target, statements, half))
  }
}

export const halves = (requests: Requests): ReadonlyArray<Requests> =>
  [requests.slice(0, requests.length >> 1), requests.slice(requests.length >> 1)].filter((half) =>
    Arr.isNonEmptyArray(half)
  )

/** Broken invariant: a commit must answer every request. */
export const unanswered: Result = Exit.die("a commit left an append unanswered")

/** Writes the suspects after the others, each separately, and returns the results in request order. */
const writeSplit = (
  target: Target,
  statements: Statements,
  requests: Requests,
  isSuspect: (request: Request) => boolean
): ReadonlyArray<Result> => {
  const [trusted, suspected] = Arr.partition(requests, isSuspect)
  const groups = [trusted, ...suspected.map((request) => [request])].filter((group) => Arr.isNonEmptyArray(group))
  const results = groups.flatMap((group) => writeApart(target, statements, group))
  const found = new Map([...trusted, ...suspected].map((request, index) => [request, results[index]]))
  return requests.map((request) => found.get(request) ?? unanswered)
}

/** Maximum number of suspect sessions. When it is exceeded, the oldest ones are trusted again. */
const mostSuspects = 1024

/** True for refused events and hook failures. False for conflicts, which are cheap to answer, and for database failures. */
const wasRefused = (result: Result): boolean =>
  Exit.isFailure(result) &&
  Option.match(Cause.failureOption(result.cause), {
    onNone: () => true,
    onSome: ({ _tag }) => _tag === "EventRefused" || _tag === "HookFailed"
  })

/** Remembers the sessions whose last append was refused (LG-21). */
export const makeSuspects = () => {
  // In the order of their last refusal.
  const sessions = new Set<SessionID>()
  return {
    has: (sessionID: SessionID) => sessions.has(sessionID),
    record: (sessionID: SessionID, result: Result) => {
      sessions.delete(sessionID)
      if (!wasRefused(result)) return
      sessions.add(sessionID)
      keepNewest(sessions, mostSuspects)
    }
  }
}

export type Suspects = ReturnType<typeof makeSuspects>

/** Why a batch is written again by halves. */
class Refused {
  readonly cause: unknown
  constructor(cause: unknown) {
    this.cause = cause
  }
}

const isRefused = (thrown: unknown): thrown is Refused => thrown instanceof Refused

/** Writes the requests; the suspects apart. Throws `Refused` if one of several is at fault. */
const writeTogether = (
  target: Target,
  suspects: Suspects,
  statements: Statements,
  requests: Requests
): ReadonlyArray<Result> => {
  const isSuspect = ({ sessionID }: Request) => suspects.has(sessionID)
  if (requests.length > 1 && requests.some(isSuspect)) return writeSplit(target, statements, requests, isSuspect)
  try {
    return writeAll(target, statements, requests)
  } catch (thrown) {
    throw isRefusal(thrown) ? new Refused(thrown) : thrown
  }
}

const inCommit = ({ sql, types }: Target, work: (statements: Statements) => ReadonlyArray<Result>) =>
  jointly(
    sql,
    (statements) => {
      types.begin()
      return work(statements)
    },
    isRefused
  )

/** The results after a commit of several requests failed: by halves after a refusal, else each alone (LG-22). */
const again = (
  target: Target,
  suspects: Suspects,
  requests: Requests,
  error: SqlError.SqlError | Refused
): Effect.Effect<ReadonlyArray<Result>> => {
  const all = (error: SqlError.SqlError) => requests.map(({ sessionID }) => failureOf(sessionID, error))
  if (isRefused(error)) {
    if (requests.length === 1) return Effect.succeed([failureOf(requests[0].sessionID, error.cause)])
    const byHalves = (statements: Statements) =>
      halves(requests).flatMap((half) => writeApart(target, statements, half))
    return Effect.catchAll(inCommit(target, byHalves), (failure) =>
      isRefused(failure) ? Effect.die(failure.cause) : again(target, suspects, requests, failure)
    )
  }
  return requests.length === 1 || isBusy(error)
    ? Effect.succeed(all(error))
    : Effect.map(
        Effect.forEach(requests, (request) => commit(target)(suspects, () => [request])),
        Arr.flatten
      )
}

/** Commits the requests that wait when the next commit begins, and returns their results in order. */
export const commit =
  (target: Target) =>
  (suspects: Suspects, requests: () => ReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Result>> =>
    Effect.suspend(() => {
      let taken: ReadonlyArray<Request> = []
      const take = () => (taken = taken.length === 0 ? requests() : taken)
      const work = (statements: Statements) => {
        const all = take()
        return Arr.isNonEmptyReadonlyArray(all) ? writeTogether(target, suspects, statements, all) : []
      }
      return Effect.catchAll(inCommit(target, work), (error) => {
        const all = take()
        return Arr.isNonEmptyReadonlyArray(all) ? again(target, suspects, all, error) : Effect.succeed([])
      })
    })

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

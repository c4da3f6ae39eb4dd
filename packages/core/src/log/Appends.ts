/**
 * One transaction's worth of appends: heads, sequence numbers, rows, projections and commit hooks of any number of
 * requests, as a few statements, and how refused ones are kept apart from the others. Called inside a write
 * transaction; knows nothing of queues. Spec: LG-1..LG-6.
 */
import { SqlError, type SqlClient } from "@effect/sql"
import { Array as Arr, Cause, Effect, Either, Exit, Option, Predicate } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Encoded } from "../events/Registry.ts"
import type { DurableType, SessionEvent } from "../events/SessionEvents.ts"
import type { EventID, SessionID } from "../Identifiers.ts"
import { join, type Refusal } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { eachRun, insertRows, write } from "../projection/SqlTables.ts"
import { execute, executeRaw, immediately } from "../storage/Database.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { EventRefused, OwnerLost, SeqConflict, type LogUnavailable, type OwnerToken } from "./EventLog.ts"
import { checksumOf } from "./Checksum.ts"
import { columns, unavailable } from "./EventRow.ts"
import type { Commit } from "./Tails.ts"

/**
 * More to do with each commit's events, in the same transaction: a read model of another package. What `R` needs is
 * given by the log.
 */
export interface Projector<R = SqlClient.SqlClient> {
  readonly name: string
  /**
   * Statements on the given `SqlClient` join the append's transaction; its tables must be there, so begin with `CREATE
   * TABLE IF NOT EXISTS`. Only SQL belongs here: it may run again when a neighbour in the same commit is refused. The
   * events are of several sessions; when it refuses them, it is asked again about fewer, down to one append.
   */
  readonly project: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, SqlError.SqlError | EventRefused, R>
}

export interface EncodedDraft {
  readonly type: DurableType
  readonly encoded: Encoded
  readonly id: EventID
}

/** An append that waits to be written. */
export interface Request {
  readonly sessionID: SessionID
  readonly drafts: NonEmptyReadonlyArray<EncodedDraft>
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly expectedSeq: number | undefined
  readonly owner: OwnerToken | undefined
  /** The caller's hook; its typed failures travel inside, to be answered to that caller alone. */
  readonly commit: ((events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<void, unknown>) | undefined
}

/** A hook's own failure, not the log's. */
export class HookFailed {
  readonly _tag = "HookFailed"
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/** Why one append was not written; the database itself may have failed as well. */
export type Failure = SeqConflict | OwnerLost | EventRefused | LogUnavailable | HookFailed

/** What became of one append. */
export type Result = Exit.Exit<Commit, Failure>

type BatchError = SqlError.SqlError | EventRefused | HookFailed

type Head = {
  readonly seq: number
  readonly incarnation: number | null
  readonly owner_id: string | null
  readonly owner_epoch: number
}

/** Under this name, which no session has, the last position comes with the heads: one statement less. */
const lastPosition = ""

const selectHeads = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => {
  const heads = new Map<string, Head>()
  return Effect.as(
    eachRun(ids, (run) =>
      Effect.map(
        execute<Head & { readonly session_id: string }>(
          sql,
          `SELECT '${lastPosition}' AS session_id, seq, NULL AS incarnation, NULL AS owner_id, 0 AS owner_epoch ` +
            "FROM sqlite_sequence WHERE name = 'event' UNION ALL " +
            "SELECT session_id, seq, incarnation, owner_id, owner_epoch FROM event_sequence " +
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

/** A head that a write moves. The first event's position makes it another incarnation than any before it. */
export interface Moved {
  readonly seq: number
  readonly incarnation: number
}

/** Moves the heads of the sessions, making those that are new. */
export const writeHeads = (sql: SqlClient.SqlClient, heads: ReadonlyMap<string, Moved>) =>
  eachRun([...heads], (run) =>
    executeRaw(
      sql,
      `INSERT INTO event_sequence (session_id, seq, incarnation) VALUES ${run.map(() => "(?, ?, ?)").join(", ")} ` +
        "ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, incarnation = excluded.incarnation",
      run.flatMap(([id, { incarnation, seq }]) => [id, seq, incarnation])
    )
  )

/** A head with events keeps its incarnation; one without, which is only claimed, begins one with its next event. */
export const incarnationOf = (
  head: { readonly seq: number; readonly incarnation: number | null } | undefined,
  position: number
): number => (head === undefined || head.seq < 0 ? position : (head.incarnation ?? 0))

const refused = (sessionID: SessionID, { details, table }: { readonly details: string; readonly table: string }) =>
  new EventRefused({ sessionID, table, details })

const isRefusal = (error: unknown): error is Refusal =>
  Predicate.isRecord(error) && !Predicate.hasProperty(error, "_tag") && typeof error["details"] === "string"

/** Writes the projections of the events, then the further projectors in their order. */
export const writeProjections = (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  events: NonEmptyReadonlyArray<SessionEvent>
): Effect.Effect<void, SqlError.SqlError | EventRefused> => {
  const { sessionID } = Arr.headNonEmpty(events)
  const misplaced = events.find(({ seq, type }) => (seq === 0) !== (type === "session.created"))
  if (misplaced !== undefined) return refused(misplaced.sessionID, beginning(misplaced))
  const joined = join(events.flatMap(project))
  if (Either.isLeft(joined)) return refused(sessionID, joined.left)
  const core = Effect.mapError(write(sql, joined.right), (error) =>
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

/** A log begins with the session's creation, and holds it once (LG-2). */
const beginning = ({ type }: SessionEvent) => ({
  table: "session",
  details: type === "session.created" ? "the session exists already" : "there is no such session to append to"
})

/** The table and the rule that the driver names: `UNIQUE constraint failed: session_message.id`. */
const brokenRule = (error: SqlError.SqlError, otherwise: string) => {
  const said = error.cause instanceof Error ? error.cause.message : ""
  const [, table = otherwise, column = "a key"] = /: (\w+)\.(\w+)/.exec(said) ?? []
  return { table, details: said.startsWith("UNIQUE") ? `its ${column} is taken` : said }
}

/**
 * Writes all requests, in order. Requests that expected another head, or that an old owner made, are answered so and
 * write nothing; any other failure fails the whole effect.
 */
export const writeBatch = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  requests: NonEmptyReadonlyArray<Request>
) {
  const heads = yield* selectHeads(sql, [...new Set(requests.map(({ sessionID }) => sessionID))])
  let position = heads.get(lastPosition)?.seq ?? 0
  const moved = new Map<string, Moved>()
  const rows: Array<Record<(typeof columns)[number], string | number>> = []
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
    const events = Arr.map(drafts, ({ encoded, id, type }, index): SessionEvent => {
      const seq = last + 1 + index
      position += 1
      const row = { position, id, session_id: sessionID, seq, type: encoded.stored, created, data: encoded.text }
      rows.push({ ...row, checksum: checksumOf(row) })
      const { data, version } = encoded
      // A draft's type with its payload, in an envelope, is an event of that type.
      return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
    })
    moved.set(sessionID, { seq: last + events.length, incarnation })
    for (const event of events) written.push(event)
    answers.push(Exit.succeed({ incarnation, events }))
  }
  if (!Arr.isNonEmptyArray(written)) return answers
  yield* writeHeads(sql, moved)
  yield* insertRows(sql, "event", columns, rows)
  yield* writeProjections(sql, projectors, written)
  for (const [index, answer] of answers.entries()) {
    const commit = requests[index]?.commit
    if (commit !== undefined && Exit.isSuccess(answer)) {
      yield* Effect.mapError(commit(answer.value.events), (error) => new HookFailed(error))
    }
  }
  return answers
})

/**
 * Whether an append itself is at fault, by a rule that it breaks, its hook or a projector, and the database goes on. A
 * defect and an interruption are a hook's or a projector's: statements fail typed.
 */
export const isRefused = (cause: Cause.Cause<BatchError>): boolean =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => true,
    onSome: (error) => !(error instanceof SqlError.SqlError) || reasonOf(error) === "constraint"
  })

/** What an append that was written by itself failed with, for its caller. */
export const toResult = (sessionID: SessionID, cause: Cause.Cause<BatchError>): Result =>
  Exit.failCause(Cause.map(cause, (error) => (error instanceof HookFailed ? error : toAppendError(sessionID, error))))

/**
 * Writes the requests, but for those that are refused: they are found by halving, undone and answered. The rest is
 * written in as few statements as before. Fails when the database fails, and the transaction with it.
 */
export const writeApart = (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  requests: NonEmptyReadonlyArray<Request>
): Effect.Effect<ReadonlyArray<Result>, BatchError> =>
  Effect.catchAllCause(
    immediately(sql)(writeBatch(sql, projectors, requests)),
    (cause): Effect.Effect<ReadonlyArray<Result>, BatchError> => {
      if (!isRefused(cause)) return Effect.failCause(cause)
      return requests.length === 1
        ? Effect.succeed([toResult(requests[0].sessionID, cause)])
        : Effect.map(
            Effect.forEach(halves(requests), (half) => writeApart(sql, projectors, half)),
            Arr.flatten
          )
    }
  )

/** The two halves of the requests, in order. */
export const halves = (requests: NonEmptyReadonlyArray<Request>): ReadonlyArray<NonEmptyReadonlyArray<Request>> =>
  [requests.slice(0, requests.length >> 1), requests.slice(requests.length >> 1)].filter((half) =>
    Arr.isNonEmptyArray(half)
  )

/** The log's own error for what a write failed with. */
export const toAppendError = (
  sessionID: SessionID,
  error: SqlError.SqlError | EventRefused
): EventRefused | LogUnavailable => {
  if (error instanceof EventRefused) return error
  return reasonOf(error) === "constraint"
    ? refused(sessionID, brokenRule(error, "event"))
    : unavailable("append")(error)
}

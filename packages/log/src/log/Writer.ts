/**
 * Group commit. Appends of all sessions go through one queue; one fiber takes the waiting ones, writes them in one
 * transaction with one fsync, and answers each caller:
 *
 *   append -> queue -> [take one, yield, take the rest] -> transaction -> announce -> answers
 *                                                             | refused: again, without the refused appends
 *                                                             | the database failed: each again, alone
 *
 * After a refusal, the session's appends are written after the others, in the same transaction, until one succeeds. So
 * a session that is refused repeatedly costs the others only its own attempt. Spec: LG-5, LG-6.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Cause, Chunk, Effect, Exit, Metric, Option, Queue } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { immediately, retryBusy } from "../storage/Database.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { fairly } from "../support/FairScheduler.ts"
import * as Metrics from "../support/Metrics.ts"
import {
  type Failure,
  halves,
  isRefused,
  type Projector,
  type Request,
  type Result,
  toResult,
  writeApart,
  writeBatch
} from "./Appends.ts"
import { LogUnavailable } from "./EventLog.ts"
import { unavailable } from "./EventRow.ts"
import type { Commit } from "./Tails.ts"

type Waiting = {
  readonly request: Request
  readonly answer: (result: Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>) => void
}

/** Maximum number of appends per transaction. */
const batchLimit = 256

/** Maximum number of suspect sessions. When it is exceeded, the oldest ones are trusted again. */
const suspectLimit = 1024

/** Broken invariant: the batch writer must answer every request. */
const unanswered: Result = Exit.die("the writer left an append unanswered")

export interface Writer {
  /** Writes the request and returns when it is durable. Not interruptible once queued. */
  readonly submit: (request: Request) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>
}

/** Starts the writer in the current scope. `announce` receives the commits before any caller is answered. */
export const make = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  announce: (commits: ReadonlyArray<Commit>) => void
) {
  // Bounded by the number of callers: each waits for its answer.
  const queue = yield* Queue.unbounded<Waiting>()

  /** Sessions whose last append was refused. */
  const suspects = new Set<string>()

  const remember = ({ sessionID }: Request, result: Result) => {
    suspects.delete(sessionID)
    if (!wasRefused(result)) return
    suspects.add(sessionID)
    for (const oldest of suspects) {
      if (suspects.size <= suspectLimit) return
      suspects.delete(oldest)
    }
  }

  const alone = (request: Request): Effect.Effect<Result> =>
    retryBusy(immediately(sql)(writeBatch(sql, projectors, [request]))).pipe(
      Effect.matchCause({
        onFailure: (cause) => toResult(request.sessionID, cause),
        onSuccess: ([result]) => result ?? unanswered
      })
    )

  /** Writes the groups in order, in one transaction, and leaves out the refused requests. */
  const apart = (groups: ReadonlyArray<NonEmptyReadonlyArray<Request>>) =>
    retryBusy(
      immediately(sql)(
        Effect.map(
          Effect.forEach(groups, (group) => writeApart(sql, projectors, group)),
          Arr.flatten
        )
      )
    )

  const whole = (requests: NonEmptyReadonlyArray<Request>) =>
    retryBusy(immediately(sql)(writeBatch(sql, projectors, requests))).pipe(
      Effect.map((results): ReadonlyArray<Result> => results),
      Effect.catchAllCause((cause) => (isRefused(cause) ? apart(halves(requests)) : Effect.failCause(cause)))
    )

  /** Writes the suspects after the others, each separately, and returns the results in request order. */
  const split = (
    requests: NonEmptyReadonlyArray<Request>,
    trusted: ReadonlyArray<Request>,
    suspected: ReadonlyArray<Request>
  ) =>
    Effect.map(
      apart([trusted, ...suspected.map(Arr.of)].filter((group) => Arr.isNonEmptyReadonlyArray(group))),
      (results): ReadonlyArray<Result> => {
        const found = new Map([...trusted, ...suspected].map((request, index) => [request, results[index]]))
        return requests.map((request) => found.get(request) ?? unanswered)
      }
    )

  const together = (requests: NonEmptyReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Result>> => {
    if (requests.length === 1) return Effect.map(alone(requests[0]), Arr.of)
    const [trusted, suspected] = Arr.partition(requests, ({ sessionID }) => suspects.has(sessionID))
    return Effect.catchAllCause(
      suspected.length === 0 ? whole(requests) : split(requests, trusted, suspected),
      (cause): Effect.Effect<ReadonlyArray<Result>> => {
        // Busy: retrying one by one would only repeat the wait.
        const failure = Option.getOrUndefined(Cause.failureOption(cause))
        return failure instanceof SqlError.SqlError && reasonOf(failure) === "busy"
          ? Effect.succeed(requests.map(() => Exit.fail(unavailable("append")(failure))))
          : Effect.forEach(requests, alone)
      }
    )
  }

  const step = Effect.fnUntraced(function* (first: Waiting) {
    // Lets callers that the last commit answered append again before the batch is closed.
    yield* Effect.yieldNow()
    const rest = yield* Queue.takeUpTo(queue, batchLimit - 1)
    const batch: Arr.NonEmptyArray<Waiting> = [first, ...Chunk.toReadonlyArray(rest)]
    const results = yield* together(Arr.map(batch, ({ request }) => request))
    const commits = results.flatMap((result) => (Exit.isSuccess(result) ? [result.value] : []))
    // Suspects were written last, wherever they were in the batch.
    commits.sort((a, b) => a.events[0].position - b.events[0].position)
    announce(commits)
    for (const [index, { answer, request }] of batch.entries()) {
      const result = results[index] ?? unanswered
      remember(request, result)
      answer(Exit.map(result, ({ events }) => events))
    }
    yield* Metric.update(Metrics.batchSize, batch.length)
    yield* Metric.incrementBy(
      Metrics.appends,
      commits.reduce((total, { events }) => total + events.length, 0)
    )
  })

  const closed = new LogUnavailable({ operation: "append", reason: "closed", cause: "the database is closed" })

  // Finishes and answers a batch already taken, even while the scope closes. Queued requests fail as closed.
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      const left = yield* Queue.takeAll(queue)
      yield* Queue.shutdown(queue)
      for (const { answer } of left) answer(closed)
    })
  )
  yield* Effect.uninterruptibleMask((restore) => Effect.flatMap(restore(Queue.take(queue)), step)).pipe(
    Effect.catchAllCause((cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.failCause(cause) : Effect.logError(cause)
    ),
    Effect.forever,
    // A caller that appends without pause waits on this fiber, so this fiber must yield to the event loop (EX-14).
    fairly,
    Effect.forkScoped
  )

  const submit = (request: Request) =>
    Effect.uninterruptible(
      Effect.async<NonEmptyReadonlyArray<SessionEvent>, Failure>((answer) => {
        if (!queue.unsafeOffer({ request, answer })) answer(closed)
      })
    )

  return { submit } satisfies Writer
})

/**
 * True for refused events and hook failures. False for conflicts, which are cheap to answer, and for database failures.
 */
const wasRefused = (result: Result): boolean =>
  Exit.isFailure(result) &&
  Option.match(Cause.failureOption(result.cause), {
    onNone: () => true,
    onSome: ({ _tag }) => _tag === "EventRefused" || _tag === "HookFailed"
  })

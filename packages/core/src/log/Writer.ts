/**
 * Group commit. Appends of all sessions meet in one queue; one fiber takes what waits, writes it in one
 * transaction with one fsync, and answers each caller:
 *
 *   append -> queue -> [take one, yield, take the rest] -> transaction -> announce -> answers
 *                                                             | fails, more than one: each again, alone
 *
 * so that a neighbour's failure is nobody else's. Spec: LG-5, LG-6.
 */
import { SqlError, type SqlClient } from "@effect/sql"
import { Array as Arr, Cause, Chunk, Effect, Either, Exit, Metric, Option, Queue } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"
import * as Metrics from "../Metrics.ts"
import { immediately, retryBusy } from "../storage/Database.ts"
import { toAppendError, writeBatch, type Answer, type HookFailed, type Projector, type Request } from "./Appends.ts"
import { reasonOf } from "../storage/StorageReason.ts"
import { LogUnavailable, type AppendError } from "./EventLog.ts"
import { unavailable } from "./EventRow.ts"

type Failure = Exclude<AppendError, { readonly _tag: "InvalidDurableEvent" }> | HookFailed
type Result = Exit.Exit<NonEmptyReadonlyArray<SessionEvent>, Failure>
type Waiting = {
  readonly request: Request
  readonly answer: (result: Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>) => void
}

/** Appends in one transaction. */
const batchLimit = 256

/** A broken invariant of the batch writer: it answers every request. */
const unanswered: Result = Exit.die("the writer left an append unanswered")

export interface Writer {
  /** Writes the request and answers when it is durable. Not interruptible once it is queued. */
  readonly submit: (request: Request) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>
}

/** Starts the writer in the current scope. `announce` sees each commit's events before any caller is answered. */
export const make = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  projectors: ReadonlyArray<Projector<never>>,
  announce: (events: NonEmptyReadonlyArray<SessionEvent>) => void
) {
  // No longer than there are callers: each of them waits for its answer.
  const queue = yield* Queue.unbounded<Waiting>()

  const transaction = (requests: NonEmptyReadonlyArray<Request>) =>
    retryBusy(immediately(sql)(writeBatch(sql, projectors, requests)))

  const alone = (request: Request): Effect.Effect<Result> =>
    transaction([request]).pipe(
      Effect.mapError((error) => toAppendError(request.sessionID, error)),
      Effect.flatMap(([answer]) => answer ?? unanswered),
      Effect.exit
    )

  const together = (requests: NonEmptyReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Result>> =>
    requests.length === 1
      ? Effect.map(alone(requests[0]), Arr.of)
      : Effect.matchCauseEffect(transaction(requests), {
          onFailure: (cause): Effect.Effect<ReadonlyArray<Result>> => {
            // Nobody's fault, and each alone would wait as long again.
            const failure = Option.getOrUndefined(Cause.failureOption(cause))
            return failure instanceof SqlError.SqlError && reasonOf(failure) === "busy"
              ? Effect.succeed(requests.map(() => Exit.fail(unavailable("append")(failure))))
              : // Rolled back: one of them is at fault, and each finds out for itself.
                Effect.forEach(requests, alone)
          },
          onSuccess: (answers: ReadonlyArray<Answer>) => Effect.succeed(answers.map(toExit))
        })

  const toExit = (answer: Answer): Result =>
    Either.isRight(answer) ? Exit.succeed(answer.right) : Exit.fail(answer.left)

  const step = Effect.fnUntraced(function* (first: Waiting) {
    // Callers that the last commit answered get to append again before the batch is closed.
    yield* Effect.yieldNow()
    const rest = yield* Queue.takeUpTo(queue, batchLimit - 1)
    const batch: Arr.NonEmptyArray<Waiting> = [first, ...Chunk.toReadonlyArray(rest)]
    const results = yield* together(Arr.map(batch, ({ request }) => request))
    const committed = results.flatMap((result) => (Exit.isSuccess(result) ? result.value : []))
    if (Arr.isNonEmptyReadonlyArray(committed)) announce(committed)
    for (const [index, { answer }] of batch.entries()) {
      answer(results[index] ?? unanswered)
    }
    yield* Metric.update(Metrics.batchSize, batch.length)
    yield* Metric.incrementBy(Metrics.appends, committed.length)
  })

  const closed = new LogUnavailable({ operation: "append", reason: "closed", cause: "the database is closed" })

  // A batch that was taken is finished and answered even while the scope closes; what waits behind it is told.
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

/**
 * Group commit. Appends of all sessions go through one queue; one fiber takes the waiting ones, writes them in one
 * transaction with one fsync, and answers each caller:
 *
 *   append -> queue -> [take one, yield, take the rest] -> transaction -> announce -> answers
 *                                                             | refused: again, without the refused appends
 *                                                             | the database failed: each again, alone
 *
 * After a refusal, the session's appends are written after the others, in the same transaction, until one succeeds. So
 * a session that is refused repeatedly costs the others only its own attempt. How a batch is committed: `Batches.ts`. Spec: LG-5, LG-6.
 */
import { Array as Arr, Cause, Chunk, Effect, Exit, Metric, Queue } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { fairly } from "../support/FairScheduler.ts"
import * as Metrics from "../support/Metrics.ts"
import type { Failure, Request, Target } from "./Appends.ts"
import * as Batches from "./Batches.ts"
import { LogUnavailable } from "./EventLog.ts"
import * as Suspects from "./Suspects.ts"
import type { Commit } from "./Tails.ts"

type Waiting = {
  readonly request: Request
  readonly answer: (result: Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>) => void
}

/** Maximum number of appends per transaction. */
const batchLimit = 256

const closed = new LogUnavailable({ operation: "append", reason: "closed", cause: "the database is closed" })

export interface Writer {
  /** Writes the request and returns when it is durable. Not interruptible once queued. */
  readonly submit: (request: Request) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Failure>
}

/** Starts the writer in the current scope. `announce` receives the commits before any caller is answered. */
export const make = Effect.fnUntraced(function* (target: Target, announce: (commits: ReadonlyArray<Commit>) => void) {
  // Bounded by the number of callers: each waits for its answer.
  const queue = yield* Queue.unbounded<Waiting>()
  const suspects = Suspects.make()
  const commit = Batches.make(target, suspects)

  /** Commits the waiting requests, announces them in the order of positions, then answers. */
  const step = Effect.fnUntraced(function* (first: Waiting) {
    // Lets callers that the last commit answered append again before the batch is closed.
    yield* Effect.yieldNow()
    const rest = yield* Queue.takeUpTo(queue, batchLimit - 1)
    const batch: Arr.NonEmptyArray<Waiting> = [first, ...Chunk.toReadonlyArray(rest)]
    const results = yield* commit(Arr.map(batch, ({ request }) => request))
    const commits = results.flatMap((result) => (Exit.isSuccess(result) ? [result.value] : []))
    // Suspects were written last, wherever they were in the batch.
    commits.sort((a, b) => a.events[0].position - b.events[0].position)
    announce(commits)
    for (const [index, { answer, request }] of batch.entries()) {
      const result = results[index] ?? Batches.unanswered
      suspects.record(request.sessionID, result)
      answer(Exit.map(result, ({ events }) => events))
    }
    yield* Metric.update(Metrics.batchSize, batch.length)
    yield* Metric.incrementBy(
      Metrics.appends,
      commits.reduce((total, { events }) => total + events.length, 0)
    )
  })

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

/**
 * Group commit. Appends of all sessions wait in one queue; the waiting ones are written in one transaction with one
 * fsync, then each caller is answered:
 *
 *   append -> queue -> group commit -> transaction (`commit`) -> announce -> answers
 *
 * After a refusal, the session's appends are written after the others, in the same transaction, until one succeeds. So a
 * session that is refused repeatedly costs the others only its own attempt. Spec: LG-5, LG-6, LG-48.
 */
import { Effect, Exit, Fiber, Runtime } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../events/SessionEvents.ts"
import * as EventLoop from "../support/EventLoop.ts"
import * as Metrics from "../support/Metrics.ts"
import * as Appends from "./Appends.ts"
import { LogUnavailable } from "./EventLog.ts"
import type * as Tails from "./Tails.ts"

type Waiting = {
  readonly request: Appends.Request
  readonly answer: (result: Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Appends.Failure>) => void
}

/** Maximum number of appends per transaction. */
const batchLimit = 256

const closed = new LogUnavailable({ operation: "append", reason: "closed", cause: "the database is closed" })

export interface Writer {
  /** Writes the request and returns when it is durable. Not interruptible once queued. */
  readonly submit: (request: Appends.Request) => Effect.Effect<NonEmptyReadonlyArray<SessionEvent>, Appends.Failure>
}

const requestOf = ({ request }: Waiting): Appends.Request => request

/** Writes the requests that wait when the next commit begins, in one transaction, and answers each, in order. */
export type Commit = (
  suspects: Appends.Suspects,
  requests: () => ReadonlyArray<Appends.Request>
) => Effect.Effect<ReadonlyArray<Appends.Result>>

/** Starts the writer in the current scope. `announce` receives the commits before any caller is answered. */
export const make = Effect.fnUntraced(function* (
  commit: Commit,
  announce: (commits: ReadonlyArray<Tails.Commit>) => void
) {
  const runtime = yield* Effect.runtime<never>()
  // A caller that appends without pause waits on the writer, which must yield to the event loop (EX-14).
  const scheduler = yield* EventLoop.current
  const suspects = Appends.makeSuspects()
  // Bounded by the number of callers: each waits for its answer.
  let waiting: Array<Waiting> = []
  let state: "idle" | "writing" | "closed" = "idle"
  let inHand: Fiber.RuntimeFiber<unknown> | undefined

  /** Announces the commits in the order of positions, then answers. */
  const settle = (batch: ReadonlyArray<Waiting>, results: ReadonlyArray<Appends.Result>): void => {
    const commits = results.flatMap((result) => (Exit.isSuccess(result) ? [result.value] : []))
    // Suspects were written last, wherever they were in the batch.
    if (commits.length > 0) EventLoop.committed()
    if (commits.length > 1) commits.sort((a, b) => a.events[0].position - b.events[0].position)
    announce(commits)
    let events = 0
    for (const { events: stored } of commits) events += stored.length
    Metrics.batchSize.unsafeUpdate(batch.length, [])
    Metrics.appends.unsafeUpdate(events, [])
    for (const [index, { answer, request }] of batch.entries()) {
      const result = results[index] ?? Appends.unanswered
      suspects.record(request.sessionID, result)
      answer(Exit.map(result, (commit) => commit.events))
    }
  }

  const next = (): void => {
    if (state === "closed") return
    state = "idle"
    if (waiting.length > 0) begin()
  }

  // All that the event loop brings until the commit begins can join, and so can those that the last commit answered.
  const begin = (): void => {
    state = "writing"
    let batch: ReadonlyArray<Waiting> = []
    const take = () => {
      batch = waiting.slice(0, batchLimit)
      waiting = waiting.slice(batchLimit)
      return batch.map(requestOf)
    }
    const written = Effect.exit(commit(suspects, take)).pipe(
      Effect.map((exit) => {
        inHand = undefined
        settle(batch, Exit.isSuccess(exit) ? exit.value : batch.map(() => Exit.failCause(exit.cause)))
        next()
      }),
      Effect.uninterruptible
    )
    inHand = Runtime.runFork(runtime)(written, { scheduler })
  }

  // Finishes and answers the batch in hand, even while the scope closes. Waiting requests fail as closed.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      state = "closed"
      for (const { answer } of waiting) answer(closed)
      waiting = []
      return inHand === undefined ? Effect.void : Fiber.await(inHand)
    })
  )

  const submit = (request: Appends.Request) =>
    Effect.uninterruptible(
      Effect.async<NonEmptyReadonlyArray<SessionEvent>, Appends.Failure>((answer) => {
        if (state === "closed") return answer(closed)
        waiting.push({ request, answer })
        if (state === "idle") begin()
      })
    )

  return { submit } satisfies Writer
})

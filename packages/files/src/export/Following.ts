/**
 * Runs the exporter's loop: waits for the feed, exports one batch at a time at least 50 ms apart, sweeps in between,
 * and retries after any failure or defect. Callers that wait for a position return when it is reached or the export
 * fails. Spec: FI-84..FI-86, FI-90, FI-91 in specs/files.md.
 */
import { Cause, Clock, Deferred, Effect, Queue, Schedule, type Scope, Stream } from "effect"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { ExportError } from "../layout/Errors.ts"
import type { FollowerState } from "../record/FollowerStatus.ts"

interface Batch {
  readonly position: number
  readonly hasMore: boolean
  /** The root was taken again, so the status must be written again. */
  readonly anew?: boolean
}

export interface FollowingOptions {
  readonly log: EventLog["Type"]
  /** The position that the files have reached. */
  readonly position: Effect.Effect<number, ExportError>
  /** Runs once before following. */
  readonly first: Effect.Effect<{ readonly position: number }, ExportError>
  readonly batch: Effect.Effect<Batch, ExportError>
  /** Retries the sessions that are behind. */
  readonly retry: Effect.Effect<void, ExportError>
  /** Checks some files and restores changed ones; returns whether the next sweep should follow soon. */
  readonly sweep: Effect.Effect<boolean, ExportError>
  /** Publishes the state of the loop for other processes. */
  readonly say: (state: FollowerState) => Effect.Effect<void>
}

export interface Following {
  readonly follow: Effect.Effect<never>
  readonly reached: (position: number) => Effect.Effect<void>
}

/** The pause between batches; it bounds how often values and indexes are replaced. */
const pause = "50 millis"
/** How often removals are polled: the feed does not signal them. */
const removalsEvery = "1 second"
const retryEvery = 30_000
/** How often, in milliseconds, some files are checked; after a change the next batch checks more. */
const sweepEvery = 10_000
/** From 200 ms, doubling, to at most 30 seconds. */
const backoff = Schedule.union(Schedule.exponential("200 millis"), Schedule.spaced("30 seconds"))
/** Failed attempts between two log messages: about ten minutes. */
const remindAfter = 20

interface Waiting {
  readonly position: number
  readonly done: Deferred.Deferred<void>
}

/** The failure as a sentence for the log. */
const sentenceOf = (cause: Cause.Cause<ExportError>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Makes the loop and the wait for a position; starts nothing. */
export const make = Effect.fnUntraced(function* ({
  batch,
  first,
  log,
  position,
  retry,
  say,
  sweep
}: FollowingOptions): Effect.fn.Return<Following, never, Scope.Scope> {
  const bell = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  const ring = Effect.asVoid(Queue.offer(bell, undefined))
  const waiting = new Set<Waiting>()
  let state: "idle" | "following" | "failing" = "idle"
  /** The position of the last successful batch. */
  let at = 0
  /** Attempts and message of the current failure. */
  let [attempts, error] = [0, ""]

  const release = (through: number) =>
    Effect.forEach(
      [...waiting].filter(({ position }) => position <= through),
      (one) =>
        Effect.zipRight(
          Effect.sync(() => waiting.delete(one)),
          Deferred.succeed(one.done, undefined)
        ),
      { discard: true }
    )

  const become = (next: FollowerState["state"], error?: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (since) =>
      say({ version: 1, pid: process.pid, state: next, position: at, since, ...(error === undefined ? {} : { error }) })
    )

  const said = (cause: Cause.Cause<ExportError>) =>
    Effect.logError(`the session files are not current since position ${at} of the log: ${sentenceOf(cause)}`).pipe(
      // A defect is logged with its trace.
      Cause.isDie(cause) ? Effect.zipRight(Effect.logError(cause)) : (logged) => logged
    )

  /** Logs a failure once, and again when it changes or lasts. Releases every waiting caller. */
  const failed = (cause: Cause.Cause<ExportError>) =>
    Effect.gen(function* () {
      const sentence = sentenceOf(cause)
      const isNew = state !== "failing" || sentence !== error
      attempts += 1
      if (isNew || attempts % remindAfter === 0) yield* said(cause)
      if (isNew) yield* become("failing", sentence)
      state = "failing"
      error = sentence
      yield* release(Number.POSITIVE_INFINITY)
    })

  const recovered = Effect.suspend(() => {
    const was = state
    const failures = attempts
    state = "following"
    attempts = 0
    if (was !== "failing") return Effect.void
    return Effect.zipRight(
      Effect.logInfo(`the session files are written again, after ${failures} failed attempts`),
      become("following")
    )
  })

  /** Retries until success, defects included: the schedule never ends. */
  const persistently = <A>(work: Effect.Effect<A, ExportError>): Effect.Effect<A> =>
    Effect.sandbox(work).pipe(
      Effect.tapError(failed),
      Effect.retry(backoff),
      Effect.tap(() => recovered),
      Effect.orDie
    )

  /** Rings for every commit. Errors of the feed are ignored here, because the batch reads the same events. */
  const listen = Effect.gen(function* () {
    const from = yield* position
    yield* Stream.runForEach(log.feed({ after: from }), () => ring)
  }).pipe(Effect.sandbox, Effect.ignore, Effect.repeat(Schedule.spaced("1 second")))

  const follow = Effect.gen(function* () {
    state = "following"
    yield* become("following")
    const caught = yield* persistently(first)
    at = caught.position
    yield* release(caught.position)
    yield* Effect.forkScoped(listen)
    yield* Effect.forkScoped(Effect.repeat(ring, Schedule.spaced(removalsEvery)))
    let retried = yield* Clock.currentTimeMillis
    let swept = retried
    let soon = false
    while (true) {
      yield* Queue.take(bell)
      let more = true
      while (more) {
        const pulled = yield* persistently(batch)
        at = pulled.position
        yield* release(pulled.position)
        if (pulled.anew === true) yield* become("following")
        const now = yield* Clock.currentTimeMillis
        if (!pulled.hasMore && now - retried >= retryEvery) {
          retried = now
          yield* persistently(retry)
        }
        if (soon || now - swept >= sweepEvery) {
          swept = now
          soon = yield* persistently(sweep)
        }
        more = pulled.hasMore
        yield* Effect.sleep(pause)
      }
    }
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.suspend(() => {
        state = "idle"
        return Effect.zipRight(become("stopped"), release(Number.POSITIVE_INFINITY))
      })
    )
  )

  const reached = (wanted: number) =>
    Effect.gen(function* () {
      if (state === "idle") {
        const all = Effect.repeat(batch, { while: ({ hasMore }) => hasMore })
        return yield* Effect.catchAllCause(all, said)
      }
      const now = yield* Effect.orElseSucceed(position, () => -1)
      if (now >= wanted || state === "failing") return yield* ring
      const done = yield* Deferred.make<void>()
      const one = { position: wanted, done }
      waiting.add(one)
      yield* ring
      yield* Effect.ensuring(
        Deferred.await(done),
        Effect.sync(() => waiting.delete(one))
      )
    })
  return { follow, reached }
})

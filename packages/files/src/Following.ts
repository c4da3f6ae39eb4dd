/**
 * The exporter's loop: waits for the feed, lets one batch go at a time and none sooner than 50 ms after the one before,
 * sweeps in between, and goes on after any failure, faults of our own included. Those who wait for a place hear when it is
 * reached, or that it cannot be now. Spec: FI-84..FI-86, FI-90, FI-91 in specs/files.md.
 */
import type { EventLog } from "@daybook/core"
import { Cause, Clock, Deferred, Effect, Queue, Schedule, Stream, type Scope } from "effect"
import type { ExportError } from "./Errors.ts"
import type { FollowerState } from "./FollowerStatus.ts"

interface Batch {
  readonly position: number
  readonly hasMore: boolean
  /** The root was taken again: what was said of the loop is gone. */
  readonly anew?: boolean
}

export interface FollowingOptions {
  readonly log: EventLog["Type"]
  /** Where the files are. */
  readonly position: Effect.Effect<number, ExportError>
  /** What is done once, before following. */
  readonly first: Effect.Effect<{ readonly position: number }, ExportError>
  readonly batch: Effect.Effect<Batch, ExportError>
  /** What failed for single sessions, again. */
  readonly retry: Effect.Effect<void, ExportError>
  /** Looks at the files of some sessions and puts back what is not as it was left; whether the next are to follow soon. */
  readonly sweep: Effect.Effect<boolean, ExportError>
  /** Says what the loop does, for other processes. */
  readonly say: (state: FollowerState) => Effect.Effect<void>
}

export interface Following {
  readonly follow: Effect.Effect<never>
  readonly reached: (position: number) => Effect.Effect<void>
}

/** Between batches: values and indexes are replaced at most so often, whatever the log does. */
const pause = "50 millis"
/** Removals ring no bell: they are looked at so often. */
const removalsEvery = "1 second"
const retryEvery = 30_000
/** Some files are looked at so often; where one was changed, the next are looked at with the next bell. */
const sweepEvery = 10_000
/** 200 ms, twice as long each time, half a minute at most. */
const backoff = Schedule.union(Schedule.exponential("200 millis"), Schedule.spaced("30 seconds"))
/** After so many attempts it is said again that they fail: each ten minutes. */
const remindAfter = 20

interface Waiting {
  readonly position: number
  readonly done: Deferred.Deferred<void>
}

/** What is wrong, in a sentence. */
const sentenceOf = (cause: Cause.Cause<ExportError>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** The loop, and the place to wait at; nothing runs yet. */
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
  /** Where the files were when they were last current. */
  let at = 0
  /** Of the failure that is under way. */
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
      // A fault of our own: where it is has to be found.
      Cause.isDie(cause) ? Effect.zipRight(Effect.logError(cause)) : (logged) => logged
    )

  /** Says once what went wrong, and again when it changes or lasts, and lets nobody wait for it. */
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

  /** Until it succeeds, whatever stands in the way, defects included: the schedule has no end. */
  const persistently = <A>(work: Effect.Effect<A, ExportError>): Effect.Effect<A> =>
    Effect.sandbox(work).pipe(
      Effect.tapError(failed),
      Effect.retry(backoff),
      Effect.tap(() => recovered),
      Effect.orDie
    )

  /** Rings for every commit. What it says, and what stands in its way, is found when the batch reads it again. */
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

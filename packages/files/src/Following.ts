/**
 * The exporter's loop: waits for the feed, lets one batch go at a time and none sooner than 50 ms after the one before,
 * and goes on after a failure. Those who wait for a place hear when it is reached, or that it cannot be now.
 * Spec: FI-84..FI-86 in specs/files.md.
 */
import type { EventLog } from "@daybook/core"
import { Clock, Deferred, Effect, Queue, Schedule, Stream, type Scope } from "effect"
import type { ExportError } from "./Errors.ts"

export interface FollowingOptions {
  readonly log: EventLog["Type"]
  /** Where the files are. */
  readonly position: Effect.Effect<number, ExportError>
  /** What is done once, before following. */
  readonly first: Effect.Effect<{ readonly position: number }, ExportError>
  readonly batch: Effect.Effect<{ readonly position: number; readonly hasMore: boolean }, ExportError>
  /** What failed for single sessions, again. */
  readonly retry: Effect.Effect<void, ExportError>
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
/** 200 ms, twice as long each time, half a minute at most. */
const backoff = Schedule.union(Schedule.exponential("200 millis"), Schedule.spaced("30 seconds"))

interface Waiting {
  readonly position: number
  readonly done: Deferred.Deferred<void>
}

/** The loop, and the place to wait at; nothing runs yet. */
export const make = Effect.fnUntraced(function* ({
  batch,
  first,
  log,
  position,
  retry
}: FollowingOptions): Effect.fn.Return<Following, never, Scope.Scope> {
  const bell = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  const ring = Effect.asVoid(Queue.offer(bell, undefined))
  const waiting = new Set<Waiting>()
  let state: "idle" | "following" | "failing" = "idle"

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

  const said = (error: ExportError) => Effect.logError(`the session files are not current: ${error.message}`)

  /** Says once what went wrong, and lets nobody wait for it. */
  const failed = (error: ExportError) =>
    Effect.gen(function* () {
      if (state !== "failing") yield* said(error)
      state = "failing"
      yield* release(Number.POSITIVE_INFINITY)
    })

  const recovered = Effect.suspend(() => {
    const log = state === "failing" ? Effect.logInfo("the session files are written again") : Effect.void
    state = "following"
    return log
  })

  /** Until it succeeds: the schedule has no end. */
  const persistently = <A>(work: Effect.Effect<A, ExportError>): Effect.Effect<A> =>
    work.pipe(
      Effect.tapError(failed),
      Effect.retry(backoff),
      Effect.tap(() => recovered),
      Effect.orDie
    )

  /** Rings for every commit. What it says, and what stands in its way, is found when the batch reads it again. */
  const listen = Effect.gen(function* () {
    const from = yield* position
    yield* Stream.runForEach(log.feed({ after: from }), () => ring)
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("1 second")))

  const follow = Effect.gen(function* () {
    state = "following"
    const caught = yield* persistently(first)
    yield* release(caught.position)
    yield* Effect.forkScoped(listen)
    yield* Effect.forkScoped(Effect.repeat(ring, Schedule.spaced(removalsEvery)))
    let retried = yield* Clock.currentTimeMillis
    while (true) {
      yield* Queue.take(bell)
      let more = true
      while (more) {
        const pulled = yield* persistently(batch)
        yield* release(pulled.position)
        more = pulled.hasMore
        const now = yield* Clock.currentTimeMillis
        if (!more && now - retried >= retryEvery) {
          retried = now
          yield* persistently(retry)
        }
        yield* Effect.sleep(pause)
      }
    }
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.suspend(() => {
        state = "idle"
        return release(Number.POSITIVE_INFINITY)
      })
    )
  )

  const reached = (wanted: number) =>
    Effect.gen(function* () {
      if (state === "idle") {
        const all = Effect.repeat(batch, { while: ({ hasMore }) => hasMore })
        return yield* Effect.catchAll(all, said)
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

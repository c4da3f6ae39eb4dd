/**
 * Runs the exporter's loop: waits for the feed, exports one batch at a time at least 50 ms apart, sweeps in between,
 * and retries after any failure or defect. Callers that wait for a position return when it is reached or the export
 * fails. Spec: FI-84..FI-86, FI-90, FI-91 in specs/files.md.
 */
import { Cause, Clock, Deferred, Effect, Queue, Schedule, type Scope, Stream } from "effect"
import type { EventLog } from "@daybook/log/log/EventLog"
import { messageOf } from "@daybook/log/support/SystemError"
import type { ExportError } from "../layout/Errors.ts"
import type { FollowerState } from "../record/LedgerFile.ts"

interface Batch {
  readonly position: number
  readonly hasMore: boolean
  /** The root was taken again, so the status must be written again. */
  readonly anew?: boolean
}

export interface FollowingOptions {
  readonly log: EventLog["Type"]
  readonly position: Effect.Effect<number, ExportError>
  /** Runs once before following. */
  readonly first: Effect.Effect<{ readonly position: number }, ExportError>
  readonly batch: Effect.Effect<Batch, ExportError>
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

type Waiter = { readonly position: number; readonly done: Deferred.Deferred<void> }

const sentenceOf = (cause: Cause.Cause<ExportError>): string => {
  const error = Cause.squash(cause)
  return messageOf(error)
}

/** The loop between two steps. */
interface Loop {
  readonly options: FollowingOptions
  readonly bell: Queue.Queue<void>
  readonly waiting: Set<Waiter>
  state: "idle" | "following" | "failing"
  /** The position of the last successful batch. */
  at: number
  attempts: number
  error: string
}

const ring = ({ bell }: Loop) => Effect.asVoid(Queue.offer(bell, undefined))

/** Releases the callers that wait for a position up to this one. */
const release = ({ waiting }: Loop, through: number) =>
  Effect.forEach(
    [...waiting].filter(({ position }) => position <= through),
    (one) =>
      Effect.zipRight(
        Effect.sync(() => waiting.delete(one)),
        Deferred.succeed(one.done, undefined)
      ),
    { discard: true }
  )

const become = ({ at, options }: Loop, state: FollowerState["state"], error?: string) =>
  Effect.flatMap(Clock.currentTimeMillis, (since) =>
    options.say({
      version: 1,
      pid: process.pid,
      state,
      position: at,
      since,
      ...(error === undefined ? {} : { error })
    })
  )

const logged = ({ at }: Loop, cause: Cause.Cause<ExportError>) =>
  Effect.logError(`the session files are not current since position ${at} of the log: ${sentenceOf(cause)}`).pipe(
    // A defect is logged with its trace.
    Cause.isDie(cause) ? Effect.zipRight(Effect.logError(cause)) : (message) => message
  )

/** Logs a failure once, and again when it changes or lasts. Releases every waiting caller. */
const failed = Effect.fnUntraced(function* (loop: Loop, cause: Cause.Cause<ExportError>) {
  const sentence = sentenceOf(cause)
  const isNew = loop.state !== "failing" || sentence !== loop.error
  loop.attempts += 1
  if (isNew || loop.attempts % remindAfter === 0) yield* logged(loop, cause)
  if (isNew) yield* become(loop, "failing", sentence)
  loop.state = "failing"
  loop.error = sentence
  yield* release(loop, Number.POSITIVE_INFINITY)
})

const recovered = (loop: Loop) =>
  Effect.suspend(() => {
    const { attempts, state } = loop
    loop.state = "following"
    loop.attempts = 0
    if (state !== "failing") return Effect.void
    return Effect.zipRight(
      Effect.logInfo(`the session files are written again, after ${attempts} failed attempts`),
      become(loop, "following")
    )
  })

/** Retries until success, defects included: the schedule never ends. */
const persistently = <A>(loop: Loop, work: Effect.Effect<A, ExportError>): Effect.Effect<A> =>
  Effect.sandbox(work).pipe(
    Effect.tapError((cause) => failed(loop, cause)),
    Effect.retry(backoff),
    Effect.tap(() => recovered(loop)),
    Effect.orDie
  )

/** Rings for every commit. Errors of the feed are ignored here, because the batch reads the same events. */
const listen = (loop: Loop) =>
  Effect.gen(function* () {
    const { log, position } = loop.options
    const from = yield* position
    yield* Stream.runForEach(log.feed({ after: from }), () => ring(loop))
  }).pipe(Effect.sandbox, Effect.ignore, Effect.repeat(Schedule.spaced("1 second")))

/** Exports batch after batch, with retries and sweeps in between. */
const run = Effect.fnUntraced(function* (loop: Loop) {
  const { batch, retry, sweep } = loop.options
  let retried = yield* Clock.currentTimeMillis
  let swept = retried
  let soon = false
  while (true) {
    yield* Queue.take(loop.bell)
    let more = true
    while (more) {
      const pulled = yield* persistently(loop, batch)
      loop.at = pulled.position
      yield* release(loop, pulled.position)
      if (pulled.anew === true) yield* become(loop, "following")
      const now = yield* Clock.currentTimeMillis
      if (!pulled.hasMore && now - retried >= retryEvery) {
        retried = now
        yield* persistently(loop, retry)
      }
      if (soon || now - swept >= sweepEvery) {
        swept = now
        soon = yield* persistently(loop, sweep)
      }
      more = pulled.hasMore
      yield* Effect.sleep(pause)
    }
  }
})

const follow = (loop: Loop): Effect.Effect<never> =>
  Effect.gen(function* () {
    loop.state = "following"
    yield* become(loop, "following")
    const { position } = yield* persistently(loop, loop.options.first)
    loop.at = position
    yield* release(loop, position)
    yield* Effect.forkScoped(listen(loop))
    yield* Effect.forkScoped(Effect.repeat(ring(loop), Schedule.spaced(removalsEvery)))
    return yield* run(loop)
  }).pipe(
    Effect.scoped,
    Effect.ensuring(
      Effect.suspend(() => {
        loop.state = "idle"
        return Effect.zipRight(become(loop, "stopped"), release(loop, Number.POSITIVE_INFINITY))
      })
    )
  )

/** Waits until the files have reached the position; without a loop, exports up to it. */
const reached = Effect.fnUntraced(function* (loop: Loop, wanted: number) {
  const { batch, position } = loop.options
  if (loop.state === "idle") {
    const all = Effect.repeat(batch, { while: ({ hasMore }) => hasMore })
    return yield* Effect.catchAllCause(Effect.asVoid(all), (cause) => logged(loop, cause))
  }
  const now = yield* Effect.orElseSucceed(position, () => -1)
  if (now >= wanted || loop.state === "failing") return yield* ring(loop)
  const one: Waiter = { position: wanted, done: yield* Deferred.make<void>() }
  loop.waiting.add(one)
  yield* ring(loop)
  yield* Effect.ensuring(
    Deferred.await(one.done),
    Effect.sync(() => loop.waiting.delete(one))
  )
})

/** Makes the loop and the wait for a position; starts nothing. */
export const make = Effect.fnUntraced(function* (
  options: FollowingOptions
): Effect.fn.Return<Following, never, Scope.Scope> {
  const bell = yield* Effect.acquireRelease(Queue.sliding<void>(1), Queue.shutdown)
  const loop: Loop = { options, bell, waiting: new Set(), state: "idle", at: 0, attempts: 0, error: "" }
  return { follow: follow(loop), reached: (position) => reached(loop, position) }
})

/**
 * Runs consumers: code that applies the events of a session or of the feed to state of its own, and continues after a
 * restart where it stopped. Each consumer has a name and a durable cursor (`ConsumerStore.ts`). Spec:
 * specs/log.md.
 *
 * @module @daybook/log/consumer/Consumer
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Duration, Effect, Metric, Schedule, Schema } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type SessionNotFound
} from "../log/EventLog.ts"
import { clamp } from "../support/Clamp.ts"
import * as EventLoop from "../support/EventLoop.ts"
import * as Metrics from "../support/Metrics.ts"
import { type ConsumerMismatch, type ConsumerReplaced, ConsumerStore } from "./ConsumerStore.ts"
import * as Delivery from "./Delivery.ts"

export {
  ConsumerMismatch,
  ConsumerReplaced,
  ConsumerStatus,
  ConsumerStore,
  type Hold,
  PoisonEvent,
  SkippedEvent
} from "./ConsumerStore.ts"
export { ConsumerStopped } from "./Delivery.ts"

/** What a consumer follows, and how it applies it. */
export interface Options<E = never, R = never> {
  /** Identifies the consumer in its database: 1 to 96 characters of `[A-Za-z0-9._-]`. */
  readonly name: string
  /** The session to follow. Default: the feed of all sessions. */
  readonly sessionID?: SessionID | undefined
  /** Where a new consumer starts. Default: `beginning`. A known one continues at its cursor. */
  readonly start?: "beginning" | "end"
  /** Whether to wait for new events after the stored ones are applied. Default: true. Otherwise it returns. */
  readonly follow?: boolean
  /** Applies events, in order. In the feed a batch may hold events of several sessions. */
  readonly apply: (events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<unknown, E, R>
  /** Deletes the state derived from a removed session. Later events with its id belong to a new session. */
  readonly onRemoved?: (sessionID: SessionID) => Effect.Effect<unknown, E, R>
  /**
   * Replaces the state by one that reflects everything up to `error.floor`, where the consumer continues: from
   * `SessionStore.snapshot` of its session, or of each session of the feed (RT-14). Without it, a consumer whose next
   * events were pruned fails with `CursorExpired`.
   */
  readonly fromSnapshot?: (error: CursorExpired) => Effect.Effect<unknown, E, R>
  /** Maximum number of events in a batch. Default: 256; maximum: 512. */
  readonly batchSize?: number
  /** How long to collect events after the first new one. Default: not at all. */
  readonly linger?: Duration.DurationInput
  /** When a failed call is repeated. Default: 8 times, after growing and jittered pauses, for about a minute. */
  readonly retry?: Schedule.Schedule<unknown, unknown>
  /** Maximum time of one call; then it is interrupted and has failed. Default: 30 seconds. */
  readonly timeout?: Duration.DurationInput
  /** What to do with an event that cannot be applied. `skip` records it. Default: `stop`. */
  readonly onPoison?: "stop" | "skip"
}

export type RunError =
  | ConsumerMismatch
  | ConsumerReplaced
  | Delivery.ConsumerStopped
  | CursorAhead
  | CursorExpired
  | EventUnreadable
  | InvalidInput
  | LogUnavailable
  | SessionNotFound

const isName = Schema.is(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9._-]{1,96}$/)))

/** From 200 ms, doubling, to at most 30 seconds. */
const standardRetry = Schedule.exponential("200 millis").pipe(
  Schedule.union(Schedule.spaced("30 seconds")),
  Schedule.jittered,
  Schedule.intersect(Schedule.recurs(8))
)

const nameOf = ({ name }: { readonly name: string }) =>
  isName(name)
    ? Effect.succeed(name)
    : new InvalidInput({ field: "name", details: "a consumer's name is 1 to 96 characters of [A-Za-z0-9._-]" })

/** Applies portion after portion, and waits at the end of the source. */
const follow = <E, R, R2>(options: Options<E, R>, makeAttempt: Delivery.MakeAttempt<R, R2>) =>
  Effect.gen(function* () {
    const [log, store] = [yield* EventLog, yield* ConsumerStore]
    const { linger = 0, sessionID, start = "beginning" } = options
    const name = yield* nameOf(options)
    const claim = yield* store.claim({ name, sessionID, start })
    const changed = yield* log.changes(sessionID)
    const limit = clamp(options.batchSize, 256, 512)
    const deliver = Delivery.make(
      { ...options, retry: options.retry ?? standardRetry, timeout: options.timeout ?? "30 seconds" },
      makeAttempt(store, claim)
    )(store, claim)
    const lag = Metric.tagged(Metrics.consumerLag, "consumer", name)
    let place = claim.place
    while (true) {
      const { hasMore, steps } = yield* Delivery.next(log, sessionID, place, limit)
      // A spurious signal may come from the instance that replaced this one.
      if (steps.length === 0) yield* store.check(claim)
      for (const step of steps) {
        // Behind its source it applies step after step: appends and timers of the process go between.
        yield* EventLoop.giveWay
        yield* deliver(step)
        if (step.kind === "end") return
        place = step.to
      }
      const status = yield* store.get(name)
      yield* Metric.set(lag, status?.lag ?? 0)
      if (hasMore) continue
      if (options.follow === false) return
      yield* changed
      if (!Duration.equals(linger, Duration.zero)) yield* Effect.sleep(linger)
    }
  }).pipe(Effect.scoped, EventLoop.sharing)

/**
 * Follows its source and applies events to state outside the log's database. The cursor is stored after the events are
 * applied, so a crash in between delivers them again: use their positions as idempotency keys (CN-3). It returns when
 * its session is removed, or when the stored events are applied with `follow: false`.
 *
 * @example
 * ```ts
 * import { Consumer, Store } from "@daybook/log"
 * import { Console, Effect } from "effect"
 *
 * export const print = Consumer.run({
 *   name: "print",
 *   apply: (events) => Effect.forEach(events, ({ position, type }) => Console.log(`${position} ${type}`))
 * }).pipe(Effect.provide(Store.layer({ filename: "daybook.sqlite" })))
 * ```
 */
export const run = <E = never, R = never>(
  options: Options<E, R>
): Effect.Effect<void, RunError, EventLog | ConsumerStore | R> => follow(options, Delivery.outside<R>)

/**
 * Follows its source and applies events with statements of the log's own database: they and the cursor are stored in one
 * transaction, so each event is applied exactly once (CN-2). The statements use `SqlClient` from the context. The
 * transaction blocks appends: run statements and nothing else. An append in it is a defect.
 *
 * @example
 * ```ts
 * import { Consumer } from "@daybook/log"
 * import { SqlClient } from "@effect/sql"
 * import { Effect } from "effect"
 *
 * export const count = Consumer.runInTransaction({
 *   name: "count",
 *   apply: (events) =>
 *     Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE acme_count SET events = events + ${events.length}`)
 * })
 * ```
 */
export const runInTransaction = <E = never, R = never>(
  options: Options<E, R>
): Effect.Effect<void, RunError, EventLog | ConsumerStore | Exclude<R, SqlClient.SqlClient>> =>
  follow(options, Delivery.inTransaction<R>)

/** Every consumer of the database: cursor, lag, state, and number of skipped events. */
export const list = EventLoop.sharing(Effect.flatMap(ConsumerStore, (store) => store.list))

/** The events that a consumer skipped, after a cursor, at most 512. */
export const skipped = (name: string, after?: number) =>
  EventLoop.sharing(Effect.flatMap(ConsumerStore, (store) => store.skipped(name, after)))

/** Forgets a consumer: its running instance ends, and its cursor no longer holds events back from pruning. */
export const remove = (name: string) => EventLoop.sharing(Effect.flatMap(ConsumerStore, (store) => store.remove(name)))

/** Which consumers still need events of the session, and after which sequence number. */
export const holds = (sessionID: SessionID) =>
  EventLoop.sharing(Effect.flatMap(ConsumerStore, (store) => store.holds(sessionID)))

/** Consumers: cursors, transactions, failures, removals and replaced instances (CN-1..CN-16). */
import type * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Layer, Metric, Schedule, TestClock } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import { ConsumerStore } from "../../packages/log/src/consumer/ConsumerStore.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import { consumerLag } from "../../packages/log/src/support/Metrics.ts"
import { begin, renamed, session, unique } from "./Samples.ts"

/** One implementation of consumers, beside its log and its database. */
export interface ConsumerLayer<E> {
  /** For the titles. */
  readonly name: string
  readonly layer: Layer.Layer<ConsumerStore | EventLog | SqlClient.SqlClient, E>
  /** A table beside the log: adds the event of a session. */
  readonly derive: (sessionID: SessionID, seq: number) => Effect.Effect<unknown, unknown, SqlClient.SqlClient>
  /** The events of a session in that table, in the order in which they were added. */
  readonly derived: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<number>, unknown, SqlClient.SqlClient>
}

/** Runs the consumer until it waits for new events, then ends it. A consumer that ends by itself gives its result. */
export const drain = <E, R>(consumer: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const idle = yield* Deferred.make<void>()
    const waiting = Effect.zipRight(Deferred.succeed(idle, undefined), Effect.never)
    const observed = EventLog.of({ ...log, changes: (id) => Effect.as(log.changes(id), waiting) })
    yield* Effect.raceFirst(Deferred.await(idle), Effect.provideService(consumer, EventLog, observed))
  })

/** Starts the consumer and returns when it waits for new events. */
const start = <E, R>(consumer: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const idle = yield* Deferred.make<void>()
    const changes = (id?: SessionID) =>
      Effect.map(log.changes(id), (changed) => Effect.zipRight(Deferred.succeed(idle, undefined), changed))
    const fiber = yield* Effect.fork(Effect.provideService(consumer, EventLog, EventLog.of({ ...log, changes })))
    yield* Deferred.await(idle)
    return fiber
  })

/** A consumer outside the database that keeps the sequence numbers of its events. */
const collecting = (options: Partial<Consumer.Options<unknown, never>> = {}) => {
  const name = options.name ?? unique()
  const seen: Array<number> = []
  const apply = (events: ReadonlyArray<SessionEvent>) =>
    Effect.sync(() => void seen.push(...events.map(({ seq }) => seq)))
  return { name, seen, run: Consumer.run({ retry: Schedule.recurs(0), apply, ...options, name }) }
}

const statusOf = (name: string) => Effect.flatMap(ConsumerStore, (store) => store.get(name))

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

const append = (id: SessionID, ...titles: ReadonlyArray<string>) =>
  Effect.flatMap(EventLog, (log) => Effect.forEach(titles, (title) => log.append(id, [renamed(title)])))

/** Fails for the event with this title. */
const failingAt = (title: string, seen: Array<number>) => (events: ReadonlyArray<SessionEvent>) =>
  Effect.suspend(() => {
    if (events.some(({ data }) => "title" in data && data.title === title)) return Effect.fail(new Error("too odd"))
    seen.push(...events.map(({ seq }) => seq))
    return Effect.void
  })

const cursors = <E>({ layer, name }: ConsumerLayer<E>): void =>
  it.layer(layer)(`cursors of consumers, ${name}`, (it) => {
    it.effect(
      "CN-1: a consumer applies its session's events in order, and continues at its cursor in the next run",
      () =>
        Effect.gen(function* () {
          const id = session()
          yield* begin(id, 600)
          const { name, run, seen } = collecting({ sessionID: id })
          yield* drain(run)
          yield* append(id, "later")
          yield* drain(run)
          assert.deepStrictEqual(seen, range(0, 601))
          assert.deepInclude(yield* statusOf(name), { cursor: 601, lag: 0, sessionID: id, state: "idle" })
        })
    )

    it.effect("CN-1: a consumer that has caught up applies what is appended next, also in other sessions", () =>
      Effect.gen(function* () {
        const [log, one, two] = [yield* EventLog, session(), session()]
        const last = yield* Deferred.make<void>()
        const seen: Array<string> = []
        const apply = (events: ReadonlyArray<SessionEvent>) =>
          Effect.sync(() => {
            for (const { seq, sessionID } of events) seen.push(`${sessionID} ${seq}`)
            if (seen.length === 4) Deferred.unsafeDone(last, Effect.void)
          })
        const fiber = yield* start(Consumer.run({ name: unique(), start: "end", apply }))
        yield* begin(one, 1)
        yield* begin(two)
        yield* log.append(one, [renamed("x")])
        yield* Deferred.await(last)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(
          [...new Set(seen)].toSorted(),
          [`${one} 0`, `${one} 1`, `${one} 2`, `${two} 0`].toSorted()
        )
      })
    )

    it.effect("CN-18: a consumer that does not follow returns when it has applied the stored events", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 520)
        const { run, seen } = collecting({ sessionID: id, follow: false })
        yield* run
        assert.deepStrictEqual(seen, range(0, 520))
      })
    )

    it.effect("CN-4: a batch holds at most as many events as the consumer wants", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 9)
        const sizes: Array<number> = []
        const apply = (events: ReadonlyArray<SessionEvent>) => Effect.sync(() => void sizes.push(events.length))
        yield* drain(Consumer.run({ name: unique(), sessionID: id, batchSize: 4, apply }))
        assert.deepStrictEqual(sizes, [4, 4, 2])
      })
    )

    it.effect("CN-4: a consumer that lingers collects the events that follow the first new one", () =>
      Effect.gen(function* () {
        const [log, id, done] = [yield* EventLog, session(), yield* Deferred.make<void>()]
        yield* begin(id)
        const sizes: Array<number> = []
        const apply = (events: ReadonlyArray<SessionEvent>) =>
          Effect.sync(() => {
            if (sizes.push(events.length) === 2) Deferred.unsafeDone(done, Effect.void)
          })
        const fiber = yield* start(Consumer.run({ name: unique(), sessionID: id, linger: "1 second", apply }))
        yield* append(id, "one", "two", "three")
        yield* TestClock.adjust("999 millis")
        assert.deepStrictEqual(sizes, [1])
        yield* log.append(id, [renamed("four")])
        yield* TestClock.adjust("2 seconds")
        yield* Deferred.await(done)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(sizes, [1, 4])
      })
    )

    it.effect("CN-11: the lag is what the cursor is behind, readable and as a metric", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 4)
        const { name, run } = collecting({ sessionID: id })
        yield* drain(run)
        const gauge = Metric.tagged(consumerLag, "consumer", name)
        assert.strictEqual((yield* Metric.value(gauge)).value, 0)
        yield* append(id, "a", "b", "c")
        assert.deepInclude(yield* statusOf(name), { cursor: 4, lag: 3 })
        yield* drain(collecting({ name, sessionID: id, batchSize: 1, apply: () => Effect.interrupt }).run).pipe(
          Effect.exit
        )
        assert.deepInclude(yield* statusOf(name), { cursor: 4, lag: 3, state: "idle" })
      })
    )

    it.effect("CN-13: until a consumer has applied an event, it holds the event back from pruning", () =>
      Effect.gen(function* () {
        const [id, other] = [session(), session()]
        yield* begin(id, 4)
        const ofSession = collecting({ sessionID: id })
        const ofFeed = collecting({ name: `feed-${unique()}`, start: "end" })
        yield* drain(ofFeed.run)
        yield* append(id, "a")
        yield* drain(ofSession.run)
        yield* begin(other)
        const holds = yield* Consumer.holds(id)
        assert.deepInclude(holds, { consumer: ofSession.name, seq: 5 })
        assert.deepInclude(holds, { consumer: ofFeed.name, seq: 4 })
        assert.deepInclude(yield* Consumer.holds(other), { consumer: ofFeed.name, seq: -1 })
        yield* drain(ofFeed.run)
        assert.deepInclude(yield* Consumer.holds(other), { consumer: ofFeed.name, seq: 0 })
        assert.isFalse((yield* Consumer.holds(other)).some(({ consumer }) => consumer === ofSession.name))
      })
    )

    it.effect("CN-14: a removed consumer holds nothing, and starts again from the beginning", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 2)
        const { name, run, seen } = collecting({ sessionID: id })
        yield* drain(run)
        assert.isTrue(yield* Consumer.remove(name))
        assert.isFalse(yield* Consumer.remove(name))
        assert.deepStrictEqual(
          yield* Consumer.holds(id),
          [...(yield* Consumer.holds(id))].filter((hold) => hold.consumer !== name)
        )
        assert.isUndefined((yield* Consumer.list).find((status) => status.name === name))
        yield* drain(run)
        assert.deepStrictEqual(seen, [...range(0, 2), ...range(0, 2)])
      })
    )

    it.effect("CN-15: an invalid name, another source, and a session that does not exist are refused", () =>
      Effect.gen(function* () {
        const [id, other] = [session(), session()]
        yield* begin(id)
        yield* begin(other)
        for (const name of ["", "a b", "x".repeat(97), "a/b"]) {
          assert.strictEqual((yield* Effect.flip(drain(collecting({ name }).run)))._tag, "InvalidInput")
        }
        const { name, run } = collecting({ sessionID: id })
        yield* drain(run)
        for (const sessionID of [other, undefined]) {
          const refused = yield* Effect.flip(drain(collecting({ name, sessionID }).run))
          assert.deepInclude(refused, { _tag: "ConsumerMismatch", follows: id })
        }
        const missing = collecting({ sessionID: session() })
        assert.strictEqual((yield* Effect.flip(drain(missing.run)))._tag, "SessionNotFound")
        assert.isUndefined(yield* statusOf(missing.name))
      })
    )
  })

const effects = <E>({ derive, derived: written, layer, name }: ConsumerLayer<E>): void =>
  it.layer(layer)(`effects of consumers, ${name}`, (it) => {
    const write = (events: ReadonlyArray<SessionEvent>) =>
      Effect.forEach(events, ({ seq, sessionID }) => derive(sessionID, seq), { discard: true })

    it.effect("CN-2: statements and cursor are stored together: a crash after the statements leaves neither", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 5)
        const options = { name: unique(), sessionID: id, batchSize: 2 }
        let calls = 0
        const crashing = Consumer.runInTransaction({
          ...options,
          apply: (events) => Effect.zipRight(write(events), ++calls === 2 ? Effect.interrupt : Effect.void)
        })
        assert.isTrue(Exit.isInterrupted(yield* Effect.exit(drain(crashing))))
        assert.deepStrictEqual(yield* written(id), [0, 1])
        assert.deepInclude(yield* statusOf(options.name), { cursor: 1 })
        yield* drain(Consumer.runInTransaction({ ...options, apply: write }))
        assert.deepStrictEqual(yield* written(id), range(0, 5))
      })
    )

    it.effect("CN-2: a failed call in a transaction leaves no statement behind, and its repetition applies once", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        let calls = 0
        const apply = (events: ReadonlyArray<SessionEvent>) =>
          Effect.zipRight(
            write(events),
            Effect.suspend(() => (++calls < 3 ? Effect.fail("not yet") : Effect.void))
          )
        yield* drain(Consumer.runInTransaction({ name: unique(), sessionID: id, apply, retry: Schedule.recurs(2) }))
        assert.deepStrictEqual([calls, yield* written(id)], [3, [0]])
      })
    )

    it.effect("CN-400: while a consumer catches up in transactions, appends go between its batches", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        yield* begin(id, 400)
        let applied = 0
        const consumer = Consumer.runInTransaction({
          name: unique(),
          sessionID: id,
          batchSize: 2,
          follow: false,
          apply: (events) =>
            Effect.zipRight(
              // What else wants the connection finds it taken.
              Effect.zipLeft(write(events), EventLoop.turn),
              Effect.sync(() => (applied += events.length))
            )
        })
        const fiber = yield* Effect.fork(consumer)
        const between: Array<number> = []
        yield* begin(other)
        for (let n = 0; n < 3; n++) {
          yield* log.append(other, [renamed("between")])
          between.push(applied)
        }
        yield* Fiber.join(fiber)
        assert.strictEqual(applied, 401)
        assert.isBelow(between[2] ?? Infinity, 60)
      })
    )

    it.effect("CN-3: outside the database a crash before the cursor is stored delivers the same positions again", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id, 2)
        const positions: Array<ReadonlyArray<number>> = []
        const apply = (events: ReadonlyArray<SessionEvent>) =>
          Effect.suspend(() => {
            positions.push(events.map(({ position }) => position))
            return positions.length === 1 ? Effect.interrupt : Effect.void
          })
        const run = Consumer.run({ name: unique(), sessionID: id, apply })
        yield* Effect.exit(drain(run))
        yield* drain(run)
        assert.strictEqual(positions.length, 2)
        assert.deepStrictEqual(positions[0], positions[1])
      })
    )

    it.effect("CN-6: a newer instance replaces the older one, whose next commit is refused with its statements", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        const [entered, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const options = { name: unique(), sessionID: id }
        // Outside the database, because a transaction would keep the newer instance waiting.
        const older = yield* Effect.fork(
          Consumer.run({
            ...options,
            apply: () => Effect.zipRight(Deferred.succeed(entered, undefined), Deferred.await(go))
          })
        )
        yield* Deferred.await(entered)
        const newer = collecting(options)
        yield* drain(newer.run)
        yield* append(id, "x")
        yield* Deferred.succeed(go, undefined)
        const ended = yield* Effect.flip(Fiber.join(older))
        assert.deepInclude(ended, { _tag: "ConsumerReplaced", consumer: options.name })
        assert.deepInclude(yield* statusOf(options.name), { cursor: 0, lag: 1 })
      })
    )

    it.effect("CN-6: in a transaction a replaced instance applies nothing", () =>
      Effect.gen(function* () {
        const [id, store] = [session(), yield* ConsumerStore]
        yield* begin(id, 1)
        const options = { name: unique(), sessionID: id, start: "beginning" } as const
        yield* Effect.scoped(
          Effect.gen(function* () {
            const older = yield* store.claim(options)
            const newer = yield* store.claim(options)
            const to = { ...older.place, cursor: 1 }
            const refused = yield* Effect.flip(store.commit(older, to, derive(id, 9)))
            assert.deepInclude(refused, { _tag: "ConsumerReplaced", consumer: options.name })
            yield* store.check(newer)
          })
        )
        assert.deepStrictEqual(yield* written(id), [])
        assert.deepInclude(yield* statusOf(options.name), { cursor: -1 })
      })
    )
  })

const failures = <E>({ layer, name }: ConsumerLayer<E>): void =>
  it.layer(layer)(`failures of consumers, ${name}`, (it) => {
    it.effect("CN-7: a failed call is repeated as the schedule says, after its pauses", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        let calls = 0
        const apply = () => Effect.suspend(() => (++calls <= 3 ? Effect.fail("down") : Effect.void))
        const retry = Schedule.exponential("1 second").pipe(Schedule.intersect(Schedule.recurs(5)))
        const fiber = yield* Effect.fork(drain(Consumer.run({ name: unique(), sessionID: id, apply, retry })))
        const seen: Array<number> = []
        for (const pause of ["0 millis", "999 millis", "1 millis", "2 seconds"] as const) {
          yield* TestClock.adjust(pause)
          seen.push(calls)
        }
        assert.deepStrictEqual(seen, [1, 1, 2, 3])
        yield* TestClock.adjust("4 seconds")
        yield* Fiber.join(fiber)
        assert.strictEqual(calls, 4)
      })
    )

    it.effect("CN-7: a call that takes longer than its timeout is interrupted and has failed", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        const { run } = collecting({ sessionID: id, apply: () => Effect.never, timeout: "5 seconds" })
        const fiber = yield* Effect.fork(Effect.flip(drain(run)))
        yield* TestClock.adjust("5 seconds")
        const ended = yield* Fiber.join(fiber)
        assert.strictEqual(ended._tag, "ConsumerStopped")
        assert.include(ended.message, "timeout")
      })
    )

    it.effect("CN-8: a consumer stops at an event that it cannot apply, names it, and has applied all before it", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        yield* append(id, "a", "odd", "b")
        const seen: Array<number> = []
        const options = { name: unique(), sessionID: id, retry: Schedule.recurs(1) }
        const stopped = yield* Effect.flip(drain(Consumer.run({ ...options, apply: failingAt("odd", seen) })))
        assert.deepInclude(stopped, { _tag: "ConsumerStopped", consumer: options.name })
        for (const part of [id, "event 2", "session.next.renamed", "too odd", "skip"])
          assert.include(stopped.message, part)
        assert.deepStrictEqual(seen, [0, 1])
        const status = yield* statusOf(options.name)
        assert.deepInclude(status, { cursor: 1, state: "stopped", skipped: 0 })
        assert.deepInclude(status?.poison, { seq: 2, sessionID: id, details: "too odd" })
        const mended = collecting(options)
        yield* drain(mended.run)
        assert.deepStrictEqual(mended.seen, [2, 3])
        assert.deepInclude(yield* statusOf(options.name), { cursor: 3, state: "idle" })
      })
    )

    it.effect("CN-9: a consumer that skips records the event and applies all others, once", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        yield* append(id, "a", "odd", "b")
        const seen: Array<number> = []
        const name = unique()
        yield* drain(
          Consumer.run({
            name,
            sessionID: id,
            retry: Schedule.recurs(0),
            onPoison: "skip",
            apply: failingAt("odd", seen)
          })
        )
        assert.deepStrictEqual(seen, [0, 1, 3])
        assert.deepInclude(yield* statusOf(name), { cursor: 3, skipped: 1, state: "idle" })
        const [skipped] = yield* Consumer.skipped(name)
        assert.deepInclude(skipped, {
          cursor: 2,
          seq: 2,
          sessionID: id,
          type: "session.next.renamed",
          details: "too odd"
        })
        assert.deepStrictEqual(yield* Consumer.skipped(name, 2), [])
        const log = yield* EventLog
        yield* log.remove(id)
        assert.deepStrictEqual(yield* Consumer.skipped(name), [])
      })
    )

    it.effect("CN-8: a defect of the handler is a failure like any other", () =>
      Effect.gen(function* () {
        const id = session()
        yield* begin(id)
        const { run } = collecting({ sessionID: id, apply: () => Effect.die(new TypeError("no such field")) })
        const stopped = yield* Effect.flip(drain(run))
        assert.strictEqual(stopped._tag, "ConsumerStopped")
        assert.include(stopped.message, "no such field")
      })
    )
  })

const removals = <E>({ layer, name }: ConsumerLayer<E>): void =>
  it.layer(layer)(`removals and consumers, ${name}`, (it) => {
    it.effect("CN-5: in the feed a removal comes after what was applied of the session, and before its next life", () =>
      Effect.gen(function* () {
        const [log, gone, other] = [yield* EventLog, session(), session()]
        const seen: Array<string> = []
        const options = {
          name: unique(),
          start: "end",
          batchSize: 2,
          apply: (events: ReadonlyArray<SessionEvent>) =>
            Effect.sync(() => events.forEach(({ seq, sessionID }) => seen.push(`${sessionID} ${seq}`))),
          onRemoved: (sessionID: SessionID) => Effect.sync(() => seen.push(`${sessionID} removed`))
        } as const
        yield* drain(Consumer.run(options))
        yield* begin(gone, 2)
        yield* drain(Consumer.run(options))
        yield* begin(other)
        yield* append(gone, "never seen")
        yield* log.remove(gone)
        yield* begin(gone)
        yield* drain(Consumer.run(options))
        yield* log.remove(gone)
        yield* drain(Consumer.run(options))
        assert.deepStrictEqual(seen, [
          ...[0, 1, 2].map((seq) => `${gone} ${seq}`),
          `${other} 0`,
          `${gone} removed`,
          `${gone} 0`,
          `${gone} removed`
        ])
      })
    )

    it.effect(
      "CN-5: a consumer of a session ends with the session, after its removal was applied, and is forgotten",
      () =>
        Effect.gen(function* () {
          const [log, id] = [yield* EventLog, session()]
          yield* begin(id, 1)
          let removed = 0
          const options = { sessionID: id, onRemoved: () => Effect.sync(() => removed++) }
          const { name, run, seen } = collecting(options)
          yield* drain(run)
          yield* log.remove(id)
          yield* begin(id)
          // The next life is another session: this consumer does not see it.
          yield* run
          assert.deepStrictEqual([seen, removed], [[0, 1], 1])
          assert.isUndefined(yield* statusOf(name))
          yield* drain(run)
          assert.deepStrictEqual(seen, [0, 1, 0])
        })
    )

    it.effect("CN-5: a consumer that waits applies a removal without further events", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const removed = yield* Deferred.make<SessionID>()
        const onRemoved = (sessionID: SessionID) => Deferred.succeed(removed, sessionID)
        const fiber = yield* start(collecting({ sessionID: id, onRemoved }).run)
        yield* log.remove(id)
        yield* Fiber.join(fiber)
        assert.strictEqual(yield* Deferred.await(removed), id)
      })
    )

    it.effect("CN-10: a removal that cannot be applied stops the consumer, also one that skips", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const options = { sessionID: id, onPoison: "skip", onRemoved: () => Effect.fail(new Error("locked")) } as const
        const { name, run } = collecting(options)
        yield* drain(run)
        yield* log.remove(id)
        const stopped = yield* Effect.flip(run)
        assert.strictEqual(stopped._tag, "ConsumerStopped")
        assert.deepInclude(yield* statusOf(name), { state: "stopped" })
        yield* collecting({ name, sessionID: id }).run
        assert.isUndefined(yield* statusOf(name))
      })
    )
  })

/** Registers the tests of this contract for one implementation. */
export const consumerContract = <E>(store: ConsumerLayer<E>): void => {
  cursors(store)
  effects(store)
  failures(store)
  removals(store)
}

/** Pruning in the background: when it runs, how gently, and what it reports. Time is the test's own. Spec: RT-31, RT-40, RT-41. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import {
  Chunk,
  Clock,
  Deferred,
  Duration,
  Effect,
  Fiber,
  Layer,
  Logger,
  Metric,
  Queue,
  Stream,
  TestClock
} from "effect"
import * as Consumer from "../../../packages/log/src/consumer/Consumer.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { pageSize } from "../../../packages/log/src/log/EventRow.ts"
import { atOnce, brisk } from "../../../packages/log/src/retention/Pace.ts"
import * as Retention from "../../../packages/log/src/retention/Retention.ts"
import * as Space from "../../../packages/log/src/retention/Space.ts"
import * as Store from "../../../packages/log/src/Store.ts"
import * as Metrics from "../../../packages/log/src/support/Metrics.ts"
import type { LogLayer } from "../../support/Database.ts"
import { dataWith, readAll, session, unique } from "../../support/Logs.ts"
import { begun, fill, turns } from "../../support/Pruning.ts"

export const day = Duration.toMillis("1 day")

/** Offers each line of the log, with its level. */
const loggedTo = (lines: Queue.Enqueue<string>) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) => void lines.unsafeOffer(`${logLevel.label} ${String(message)}`))
  )

/** Applies a policy once, and returns the lines that it logs. */
export const linesOf = (policy: Retention.Policy) =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string>()
    yield* Effect.provide(Retention.apply({ ...policy, pace: atOnce }), loggedTo(lines))
    return Chunk.toReadonlyArray(yield* Queue.takeAll(lines))
  })

const floorOf = (id: SessionID) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{
      readonly floor: number
    }>`SELECT floor FROM event_sequence WHERE session_id = ${id}`
    return row?.floor
  })

/** Time from a moment on, which passes at once where a fiber sleeps. */
const skipping = (start: number): Clock.Clock => {
  let now = start
  const [millis, nanos] = [() => now, () => BigInt(now) * 1_000_000n]
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: millis,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (pause) => Effect.sync(() => void (now += Duration.toMillis(pause)))
  }
}

/** Applies a policy once, and returns how many milliseconds its pauses took. */
const applied = Effect.fnUntraced(function* (policy: Retention.Policy) {
  const start = yield* Clock.currentTimeMillis
  const work = Effect.zipRight(Retention.apply(policy), Clock.currentTimeMillis)
  return (yield* Effect.withClock(work, skipping(start))) - start
})

/** The line of a run that pruned one session. */
export const prunedLine = (events: number) =>
  new RegExp(`^INFO retention: ${events} events of 1 sessions pruned; \\d+ bytes are \\d+ now$`)

export const policies = (layer: LogLayer) => {
  const memory = Layer.provideMerge(Store.layerStore, layer)
  it.scoped("RT-40, UN-45: a policy prunes at its start, and again an hour later, and then erases snapshots", () =>
    Effect.gen(function* () {
      const [id, lines, ends] = [session(), yield* Queue.unbounded<string>(), yield* Queue.unbounded<void>()]
      yield* begun(id, 2)
      const first = (yield* readAll(id)).length - 1
      yield* TestClock.adjust("1 day")
      const policy = Retention.layerPolicy(
        { keep: Duration.toMillis("10 minutes"), pace: atOnce },
        Queue.offer(ends, undefined)
      )
      yield* Layer.build(Layer.provide(policy, loggedTo(lines)))
      yield* Queue.take(lines)
      yield* Queue.take(ends)
      assert.strictEqual(yield* floorOf(id), first)
      yield* fill(id, turns(1))
      const second = (yield* readAll(id, first)).length + first
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual(yield* floorOf(id), first)
      yield* TestClock.adjust("1 minute")
      yield* Queue.take(lines)
      yield* Queue.take(ends)
      assert.strictEqual(yield* floorOf(id), second)
    }).pipe(Effect.provide(memory))
  )

  it.effect("RT-40, RT-41: it prunes by age, and reports what it did and the size of the database", () =>
    Effect.gen(function* () {
      const [old, used] = [session(), session()]
      yield* begun(old, 2)
      yield* TestClock.adjust("3 days")
      yield* begun(used, 3)
      const first = (yield* readAll(old)).length
      const before = (yield* Metric.value(Metrics.pruned)).count
      const [byAge = "", ...rest] = yield* linesOf({ keep: day })
      assert.match(byAge, prunedLine(first))
      assert.deepStrictEqual(rest, [])
      assert.strictEqual((yield* Metric.value(Metrics.pruned)).count - before, first)
      const size = yield* Space.sizeOf(yield* SqlClient.SqlClient)
      assert.isAbove(size, 10_000)
      assert.strictEqual((yield* Metric.value(Metrics.databaseBytes)).value, size)
    }).pipe(Effect.provide(memory))
  )

  it.scoped("RT-40: a registered consumer holds the floor back from a policy until it is removed", () =>
    Effect.gen(function* () {
      const [id, name] = [session(), unique()]
      yield* begun(id, 2)
      const last = (yield* readAll(id)).length - 1
      yield* TestClock.adjust("1 day")
      const { claim } = yield* Consumer.ConsumerStore
      yield* Effect.scoped(claim({ name, sessionID: id, start: "beginning" }))
      yield* linesOf({ keep: 0 })
      assert.strictEqual(yield* floorOf(id), -1)
      assert.isTrue(yield* Consumer.remove(name))
      yield* linesOf({ keep: 0 })
      assert.strictEqual(yield* floorOf(id), last)
    }).pipe(Effect.provide(memory))
  )

  const tails = {
    session: (id: SessionID) => Stream.unwrap(Effect.map(EventLog, (log) => log.tail({ sessionID: id }))),
    feed: () => Stream.unwrap(Effect.map(EventLog, (log) => log.feed()))
  } as const

  for (const of of ["session", "feed"] as const) {
    for (const end of ["it ends", "it stood still for ten minutes"] as const) {
      it.effect(`RT-50: a tail of the ${of} keeps a policy from what it has not read, until ${end}`, () =>
        Effect.gen(function* () {
          const [id, reached] = [session(), yield* Deferred.make<void>()]
          yield* begun(id, 60, 1)
          const last = (yield* readAll(id)).length - 1
          assert.isAbove(last, pageSize)
          yield* TestClock.adjust("1 day")
          const reading = Stream.runForEach(tails[of](id), () =>
            Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)
          )
          const reader = yield* Effect.fork(reading)
          yield* Deferred.await(reached)
          yield* linesOf({ keep: 0 })
          const floor = (yield* floorOf(id)) ?? 0
          assert.isAbove(floor, 0)
          assert.isBelow(floor, pageSize)
          if (end === "it ends") yield* Fiber.interrupt(reader)
          yield* Effect.withClock(linesOf({ keep: 0 }), skipping(day + (end === "it ends" ? 0 : 600_001)))
          assert.strictEqual(yield* floorOf(id), last)
        }).pipe(Effect.provide(memory))
      )
    }
  }

  it.effect("RT-41: a session that cannot be pruned is a warning with the reason, and the others are pruned", () =>
    Effect.gen(function* () {
      const [sql, damaged, sound] = [yield* SqlClient.SqlClient, session(), session()]
      yield* begun(damaged, 2)
      yield* begun(sound, 2)
      yield* sql`UPDATE event SET data = ${dataWith(sql, "question 0", "question 9")}
      WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${damaged}) AND seq = 1`
      yield* TestClock.adjust("1 day")
      const warnings = (yield* linesOf({ keep: 0 })).filter((line) => line.startsWith("WARN"))
      assert.strictEqual(yield* floorOf(damaged), -1)
      assert.isAbove((yield* floorOf(sound)) ?? -1, 0)
      assert.strictEqual(warnings.length, 1)
      assert.match(warnings[0] ?? "", new RegExp(`^WARN retention: ${damaged} keeps its events: .*checksum`))
    }).pipe(Effect.provide(memory))
  )

  it.scoped("RT-41: a failed run is a warning, and the next one prunes", () =>
    Effect.gen(function* () {
      const [sql, id, lines] = [yield* SqlClient.SqlClient, session(), yield* Queue.unbounded<string>()]
      yield* begun(id, 2)
      yield* TestClock.adjust("1 day")
      yield* sql`ALTER TABLE session_floor RENAME TO elsewhere`
      yield* Layer.build(Layer.provide(Retention.layerPolicy({ keep: 0, pace: atOnce }, Effect.void), loggedTo(lines)))
      assert.match(yield* Queue.take(lines), /^WARN retention failed; it is tried again/)
      yield* sql`ALTER TABLE elsewhere RENAME TO session_floor`
      yield* TestClock.adjust("1 hour")
      assert.match(yield* Queue.take(lines), /^INFO retention: \d+ events of 1 sessions pruned/)
      assert.isAbove((yield* floorOf(id)) ?? -1, 0)
    }).pipe(Effect.provide(memory))
  )

  it.effect("RT-31: a policy pauses ten times as long as a command between the same steps", () =>
    Effect.gen(function* () {
      const pauses = (pace: Pick<Retention.Policy, "pace">) =>
        Effect.gen(function* () {
          yield* begun(session("one"), 4)
          yield* TestClock.adjust("1 day")
          return yield* applied({ keep: 0, ...pace })
        }).pipe(Effect.provide(Layer.fresh(memory)))
      const command = yield* pauses({ pace: brisk })
      assert.isAbove(command, 3)
      assert.strictEqual(yield* pauses({}), command * 10)
    })
  )
}

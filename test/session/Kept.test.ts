/** Kept sessions: EX-O10..EX-O12. Two contexts on one file stand for two processes; time is the TestClock's. */
import { join } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Scope, TestClock, TestServices } from "effect"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import * as SqlSessionOwner from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { Faults, faultyLog } from "../support/FaultySql.ts"
import { begin, session } from "../contracts/Samples.ts"
import { temporaryFolder } from "../support/Harness.ts"

type Process = Context.Context<SessionOwner | EventLog | SqlClient.SqlClient>

const two = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "daybook.db")
  const options = { leaseMs: 3_000, keepMs: 1_000 }
  const opened = Layer.fresh(Layer.provideMerge(SqlSessionOwner.layer(options), Store.layer({ filename })))
  // What runs in the background keeps the machine's time: only leases are under test.
  const live = TestServices.provideLive(Layer.build(opened))
  const life = yield* Scope.make()
  const one = yield* Scope.extend(live, life)
  const other = yield* live
  const id = session()
  yield* Effect.provide(begin(id), one)
  return { one, other, id, closeOne: Scope.close(life, Exit.void) }
})

const owners = (process: Process) => Effect.provide(SessionOwner, process)

/** Owns the session for a moment, and returns the token. */
const work = (process: Process, id: ReturnType<typeof session>) =>
  Effect.scoped(Effect.flatMap(owners(process), (owner) => Effect.map(owner.acquire(id), ({ token }) => token)))

const rowOf = (process: Process) =>
  Effect.provide(
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT * FROM event_sequence`),
    process
  )

it.scoped("EX-O10: work after work takes the session again with the same epoch and writes nothing", () =>
  Effect.gen(function* () {
    const { id, one } = yield* two
    const first = yield* work(one, id)
    const before = yield* rowOf(one)
    assert.isFalse(yield* (yield* owners(one)).isOwned(id), "a kept session has no work")
    yield* TestClock.adjust("900 millis")
    assert.deepStrictEqual(yield* work(one, id), first)
    assert.deepStrictEqual(yield* rowOf(one), before)
  })
)

it.scoped(
  "EX-O10: another process gets a kept session a second after its work, and at once when the process closes",
  () =>
    Effect.gen(function* () {
      const { closeOne, id, one, other } = yield* two
      const first = yield* work(one, id)
      const taking = yield* Effect.fork(work(other, id))
      yield* TestClock.adjust("900 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
      yield* TestClock.adjust("200 millis")
      assert.isAbove((yield* Fiber.join(taking)).epoch, first.epoch)
      yield* TestClock.adjust("2 seconds")
      yield* work(one, id)
      yield* closeOne
      yield* work(other, id)
    })
)

it.scoped("EX-O10: work that fails or is interrupted releases the session at once", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const owned = Effect.flatMap(owners(one), (owner) => owner.acquire(id))
    yield* Effect.exit(Effect.scoped(Effect.zipRight(owned, Effect.fail("broken"))))
    yield* work(other, id)
    yield* TestClock.adjust("2 seconds")
    yield* Effect.exit(Effect.scoped(Effect.zipRight(owned, Effect.interrupt)))
    yield* work(other, id)
  })
)

it.scoped("EX-O11: a request to stop that came while the session was kept does not reach the next work", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const first = yield* work(one, id)
    const asked = yield* Effect.fork((yield* owners(other)).requestStop(id, first))
    yield* TestClock.adjust("100 millis")
    const next = yield* (yield* owners(one)).acquire(id)
    assert.isAbove(next.token.epoch, first.epoch)
    const stopped = yield* Effect.fork(next.stopRequested)
    yield* TestClock.adjust("2 seconds")
    yield* Fiber.join(asked)
    assert.isTrue(Option.isNone(yield* Fiber.poll(stopped)))
  })
)

it.scoped("EX-O11: a session that was removed and created again while it was kept is claimed anew", () =>
  Effect.gen(function* () {
    const { id, one } = yield* two
    yield* work(one, id)
    const log = yield* Effect.provide(EventLog, one)
    yield* log.remove(id)
    yield* Effect.provide(begin(id), one)
    const token = yield* work(one, id)
    assert.strictEqual(token.epoch, 1)
  })
)

it.scoped("EX-O12: a session that is taken again and again is renewed as one that is owned all the time", () =>
  Effect.gen(function* () {
    const { id, one, other } = yield* two
    const first = yield* work(one, id)
    const taking = yield* Effect.forkScoped((yield* owners(other)).acquire(id))
    // Far longer than the lease, in pieces shorter than the time between two renewals.
    for (let piece = 0; piece < 50; piece++) {
      const scope = yield* Scope.make()
      const { token } = yield* Scope.extend(
        Effect.flatMap(owners(one), (owner) => owner.acquire(id)),
        scope
      )
      assert.strictEqual(token.epoch, first.epoch)
      yield* TestClock.adjust("190 millis")
      yield* Scope.close(scope, Exit.void)
    }
    assert.isTrue(Option.isNone(yield* Fiber.poll(taking)))
  })
)

it.scoped("EX-O13: forty owners of one process renew with one commit a heartbeat, and are released with one", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const options = { leaseMs: 3_000, keepMs: 1_000 }
    const opened = Layer.provideMerge(SqlSessionOwner.layer(options), faultyLog(filename))
    const process = yield* TestServices.provideLive(Layer.build(opened))
    const ids = Array.from({ length: 40 }, () => session())
    yield* Effect.provide(Effect.forEach(ids, begin), process)
    const scope = yield* Scope.make()
    const owner = yield* owners(process)
    for (const [index, id] of ids.entries()) {
      yield* Scope.extend(owner.acquire(id), scope)
      if (index % 10 === 0) yield* TestClock.adjust("7 millis")
    }
    const faults = yield* Effect.provide(Faults, process)
    const beats = Effect.map(rowOf(process), (rows) => rows.map(({ lease_beat }) => Number(lease_beat)))
    const commitsOf = (effect: Effect.Effect<void>) => {
      faults.ran = []
      return Effect.map(effect, () => faults.ran.filter((text) => text === "COMMIT").length)
    }
    const before = yield* beats
    assert.strictEqual(yield* commitsOf(TestClock.adjust("1 second")), 5)
    assert.deepStrictEqual(
      yield* beats,
      before.map((beat) => beat + 5)
    )
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* commitsOf(TestClock.adjust("2 seconds")), 1)
    assert.isTrue((yield* rowOf(process)).every(({ owner_id }) => owner_id === null))
  })
)

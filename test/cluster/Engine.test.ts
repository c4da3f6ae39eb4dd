/** What the nodes change of the engine: its clock, and how shards are released. */
import { MessageChannel } from "node:worker_threads"
import { assert, it } from "@effect/vitest"
import { RunnerAddress, ShardId } from "@effect/cluster"
import { Clock, Deferred, Effect, Fiber, Option, Queue, Stream, TestClock } from "effect"
import * as EventLoop from "../../packages/log/src/support/EventLoop.ts"
import * as Engine from "../../packages/cluster/src/Engine.ts"

it.scoped("CU-28: the engine looks for free shards again at once, and its other timings stay", () =>
  Effect.gen(function* () {
    const clock = yield* Engine.eager(yield* Effect.clock, Stream.never)
    // Sleeps on the engine's clock, whose time is the test's.
    const sleeping = (millis: number) => Effect.fork(Effect.withClock(Effect.sleep(millis), clock))
    const [pause, other] = [yield* sleeping(1_000), yield* sleeping(2_000)]
    yield* TestClock.adjust("50 millis")
    assert.isNotNull(pause.unsafePoll())
    yield* TestClock.adjust("1949 millis")
    assert.isNull(other.unsafePoll())
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(other)
  })
)

it.scoped("CU-38: what came while the event loop was held up is read before a wait counts as too long", () =>
  Effect.gen(function* () {
    const clock = yield* Engine.eager(Clock.make(), Stream.never)
    const [mine, theirs] = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const { port1, port2 } = new MessageChannel()
        return [port1, port2] as const
      }),
      ([port]) => Effect.sync(() => port.close())
    )
    const answered = Effect.async<void>((resume) => void mine.once("message", () => resume(Effect.void)))
    const held = Effect.sync(() => {
      theirs.postMessage("answer", [])
      // The wait is over when the event loop runs again.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250)
    })
    const wait = yield* Effect.fork(Effect.withClock(Effect.timeoutOption(answered, "200 millis"), clock))
    // From here the event loop goes to its timers first, then to what came.
    yield* EventLoop.turn
    yield* held
    assert.isTrue(Option.isSome(yield* Fiber.join(wait)))
  })
)

it.scoped(
  "CU-39: what a node tells ends the engine's sleep between two looks, and for a second looks follow at once",
  () =>
    Effect.gen(function* () {
      const told = yield* Queue.unbounded<void>()
      const clock = yield* Engine.eager(yield* Effect.clock, Stream.fromQueue(told))
      const slept = (millis: number) => Effect.withClock(Effect.sleep(millis), clock)
      const first = yield* Effect.fork(slept(250))
      yield* TestClock.adjust("249 millis")
      assert.isNull(first.unsafePoll())
      yield* Queue.offer(told, undefined)
      yield* Fiber.join(first)
      const second = yield* Effect.fork(slept(250))
      yield* TestClock.adjust("50 millis")
      assert.isNotNull(second.unsafePoll())
      yield* TestClock.adjust("950 millis")
      const third = yield* Effect.fork(slept(250))
      yield* TestClock.adjust("249 millis")
      assert.isNull(third.unsafePoll())
    })
)

it.effect("CU-28: shards that are released together are released in one statement, and others in the next", () =>
  Effect.gen(function* () {
    const statements: Array<ReadonlyArray<string>> = []
    const release = Engine.releasing((shards) => Effect.sync(() => void statements.push(shards)))
    const shards = [1, 2, 3].map((number) => ShardId.make("default", number))
    yield* Effect.forEach(shards, release, { concurrency: "unbounded" })
    yield* release(ShardId.make("default", 4))
    assert.deepStrictEqual(statements, [["default:1", "default:2", "default:3"], ["default:4"]])
  })
)

it.effect("CU-28: each that releases a shard hears that the statement failed, and the next one is tried", () =>
  Effect.gen(function* () {
    const release = Engine.releasing(() => Effect.fail("away"))
    const shards = [1, 2].map((number) => ShardId.make("default", number))
    for (const _ of ["first", "second"]) {
      const heard = yield* Effect.forEach(shards, (shard) => Effect.flip(release(shard)), { concurrency: "unbounded" })
      assert.deepStrictEqual(heard, ["away", "away"])
    }
  })
)

it.effect("CU-37: a node registers when it takes up work, and two seconds after its start if it does not", () =>
  Effect.gen(function* () {
    const takesUp = yield* Effect.makeLatch()
    const registers = (latch: Effect.Latch) =>
      Effect.fork(Engine.onceTakenUp(latch.await)(Effect.succeed("registered")))
    const [working, idle] = [yield* registers(takesUp), yield* registers(yield* Effect.makeLatch())]
    yield* TestClock.adjust("1999 millis")
    assert.isNull(working.unsafePoll())
    yield* takesUp.open
    assert.strictEqual(yield* Fiber.join(working), "registered")
    assert.isNull(idle.unsafePoll())
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(yield* Fiber.join(idle), "registered")
  })
)

it.effect(
  "CU-38: the answer of a renewal has the shards that were taken since it began, until a renewal names them",
  () =>
    Effect.gen(function* () {
      const node = RunnerAddress.make("h", 1)
      const [before, taken, released] = [1, 2, 3].map((number) => ShardId.make("default", number))
      assert(before !== undefined && taken !== undefined && released !== undefined)
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Effect.makeLatch()]
      const held: Array<ShardId.ShardId> = [before]
      const locks = Engine.remembering({
        acquire: (_, shards) => Effect.succeed([...shards]),
        refresh: () => Effect.as(Effect.zipRight(Deferred.succeed(asked, undefined), answer.await), [...held])
      })
      const renewal = yield* Effect.fork(locks.refresh(node, [before]))
      yield* Deferred.await(asked)
      yield* locks.acquire(node, [taken, released])
      locks.forget(released)
      yield* answer.open
      assert.deepStrictEqual(yield* Fiber.join(renewal), [before, taken])
      // The database has lost both: a renewal that names them says so.
      held.length = 0
      assert.deepStrictEqual(yield* locks.refresh(node, [before, taken]), [])
    })
)

/** A node that looks at the next one, which is found like this each time. */
const watched = Effect.fnUntraced(function* (found: ReadonlyArray<Engine.Listener>) {
  const [own, next, far] = [1, 2, 3].map((port) => RunnerAddress.make("h", port))
  assert(own !== undefined && next !== undefined && far !== undefined)
  const [looked, gone]: [Array<string>, Array<number>] = [[], []]
  const find = ({ port }: RunnerAddress.RunnerAddress) =>
    Effect.sync(() => found[looked.push(`h:${port}`) - 1] ?? "unknown")
  const leave = ({ port }: RunnerAddress.RunnerAddress) => Effect.sync(() => void gone.push(port))
  const watch = yield* Effect.fork(Engine.watching(own, () => [far, own, next], find, leave))
  yield* TestClock.adjust("5 seconds")
  yield* Fiber.interrupt(watch)
  return { gone, looked }
})

it.effect("CU-59: a node at whose address nobody listens any more at two looks is gone", () =>
  Effect.gen(function* () {
    const { gone, looked } = yield* watched(["present", "absent", "absent"])
    assert.deepStrictEqual(gone, [2])
    assert.deepStrictEqual([...new Set(looked)], ["h:2"])
  })
)

it.effect("CU-59: a node that did not answer once, was silent, or never listened is not gone", () =>
  Effect.gen(function* () {
    for (const found of [
      ["present", "absent", "present", "absent"],
      ["present", "absent", "unknown", "absent"],
      ["absent", "absent", "absent"]
    ] as const) {
      assert.deepStrictEqual((yield* watched(found)).gone, [])
    }
  })
)

it.effect("CU-59: a node that comes back although it counted as gone is left alone until it answers", () =>
  Effect.gen(function* () {
    const missing = ["present", "absent", "absent", "absent", "absent", "absent"] as const
    assert.deepStrictEqual((yield* watched(missing)).gone, [2])
    assert.deepStrictEqual((yield* watched([...missing, "present", "absent", "absent"])).gone, [2, 2])
  })
)

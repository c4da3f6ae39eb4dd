/** What the nodes change of the engine: its clock, and how shards are released. */
import { assert, it } from "@effect/vitest"
import { ShardId } from "@effect/cluster"
import { Effect, TestClock } from "effect"
import * as Engine from "../../packages/cluster/src/Engine.ts"

it.effect("CU-28: the engine looks for free shards again at once, and its other timings stay", () =>
  Effect.gen(function* () {
    const clock = Engine.eager(yield* Effect.clock)
    const [pause, other] = yield* Effect.forEach([1_000, 2_000], (millis) =>
      Effect.fork(Effect.withClock(Effect.sleep(millis), clock))
    )
    assert(pause !== undefined && other !== undefined)
    yield* TestClock.adjust("50 millis")
    assert.isNotNull(pause.unsafePoll())
    yield* TestClock.adjust("1949 millis")
    assert.isNull(other.unsafePoll())
    yield* TestClock.adjust("1 millis")
    assert.isNotNull(other.unsafePoll())
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

/** One at a time for each key, in the order of asking. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { assert } from "vitest"
import * as Admission from "../../packages/server/src/socket/Admission.ts"

const enter = (lane: Admission.Lane, key = "a") =>
  Effect.flatMap(lane.enter(key), (place) => (place === undefined ? Effect.dieMessage("full") : Effect.succeed(place)))

/** As its users run it. */
const start = <A, E, R>(place: Admission.LanePlace, effect: Effect.Effect<A, E, R>) =>
  Effect.uninterruptible(Effect.fork(place(effect)))

it.effect("SO-31: turns come in the order of asking, however the work is started", () =>
  Effect.gen(function* () {
    const lane = Admission.makeLane(8)
    const places = yield* Effect.replicateEffect(enter(lane), 5)
    const order: Array<number> = []
    const fibers = []
    for (const at of [3, 1, 4, 0, 2]) {
      const place = places[at]
      if (place !== undefined)
        fibers.push(
          yield* start(
            place,
            Effect.sync(() => order.push(at))
          )
        )
    }
    yield* Fiber.joinAll(fibers)
    assert.deepStrictEqual(order, [0, 1, 2, 3, 4])
  })
)

it.effect("SO-31: keys do not wait for each other", () =>
  Effect.gen(function* () {
    const lane = Admission.makeLane(8)
    const held = yield* start(yield* enter(lane, "a"), Effect.never)
    assert.strictEqual(yield* (yield* enter(lane, "b"))(Effect.succeed("b")), "b")
    yield* Fiber.interrupt(held)
  })
)

it.effect("SO-31: who gives up waiting is passed over", () =>
  Effect.gen(function* () {
    const lane = Admission.makeLane(8)
    const gate = yield* Deferred.make<void>()
    const first = yield* start(yield* enter(lane), Deferred.await(gate))
    const second = yield* start(yield* enter(lane), Effect.dieMessage("it was given up"))
    const third = yield* start(yield* enter(lane), Effect.succeed(3))
    yield* Fiber.interrupt(second)
    yield* TestClock.adjust("1 second")
    assert.isNull(third.unsafePoll())
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(first)
    assert.strictEqual(yield* Fiber.join(third), 3)
  })
)

it.effect(
  "SO-106, SO-31: a full queue takes nobody, but for what has to be done, and has room again when one has gone",
  () =>
    Effect.gen(function* () {
      const lane = Admission.makeLane(1)
      const first = yield* start(yield* enter(lane), Effect.never)
      const second = yield* start(yield* enter(lane), Effect.never)
      assert.isUndefined(yield* lane.enter("a"))
      const third = yield* lane.enter("a", { always: true })
      assert.isDefined(third)
      if (third !== undefined) yield* Fiber.interrupt(yield* start(third, Effect.never))
      yield* Fiber.interrupt(second)
      const fourth = yield* enter(lane)
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* fourth(Effect.succeed(4)), 4)
    })
)

/** Admission under a late event loop, with a lag and pauses that the test controls. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Metric, Queue } from "effect"
import * as AdmissionGate from "../../packages/core/src/coordination/AdmissionGate.ts"
import { type Lag, LoopLag, type Source, watch } from "../../packages/core/src/coordination/AdmissionGate.ts"
import * as Metrics from "../../packages/log/src/support/Metrics.ts"
import { runtime, say, scene } from "../support/Harness.ts"

/** Pauses that end one by one: `begun` has an item for each pause that began, and each item in `over` ends one. */
const makePauses = Effect.gen(function* () {
  const begun = yield* Queue.unbounded<void>()
  const over = yield* Queue.unbounded<void>()
  return { begun, over, pause: Effect.zipRight(Queue.offer(begun, undefined), Queue.take(over)) }
})

const makeGate = Effect.gen(function* () {
  const pauses = yield* makePauses
  const loop = { lag: 500 }
  const gate = AdmissionGate.make(200, () => loop.lag, pauses.pause)
  const passed: Array<number> = []
  const enter = (number: number) =>
    Effect.fork(
      Effect.zipRight(
        gate.enter,
        Effect.sync(() => passed.push(number))
      )
    )
  return { ...pauses, enter, loop, passed }
})

describe("the gate of admission", () => {
  it.effect("LM-41: a prompt waits while the loop is late, and passes once it is on time", () =>
    Effect.gen(function* () {
      const { begun, enter, loop, over, passed } = yield* makeGate
      const first = yield* enter(1)
      yield* Queue.take(begun)
      yield* Queue.offer(over, undefined)
      yield* Queue.take(begun)
      assert.deepStrictEqual(passed, [])
      loop.lag = 200
      yield* Queue.offer(over, undefined)
      yield* Fiber.join(first)
      assert.deepStrictEqual(passed, [1])
    })
  )

  it.effect("LM-41: on a loop at or below the limit nothing waits", () =>
    Effect.gen(function* () {
      const { begun, enter, loop, passed } = yield* makeGate
      loop.lag = 200
      yield* Fiber.joinAll([yield* enter(1), yield* enter(2)])
      assert.deepStrictEqual(passed, [1, 2])
      assert.strictEqual(yield* Queue.size(begun), 0)
    })
  )

  it.effect("LM-42: the first in line waits for five pauses at most, and then the next is the first", () =>
    Effect.gen(function* () {
      const { begun, enter, over, passed } = yield* makeGate
      const [first, second] = [yield* enter(1), yield* enter(2)]
      yield* Effect.repeatN(Queue.offer(over, undefined), 3)
      yield* Queue.takeN(begun, 5)
      assert.deepStrictEqual(passed, [])
      yield* Queue.offer(over, undefined)
      yield* Fiber.join(first)
      yield* Effect.repeatN(Queue.offer(over, undefined), 3)
      yield* Queue.takeN(begun, 5)
      assert.deepStrictEqual(passed, [1])
      yield* Queue.offer(over, undefined)
      yield* Fiber.join(second)
      assert.deepStrictEqual([passed, yield* Queue.size(begun)], [[1, 2], 0])
    })
  )

  it.effect("LM-42: prompts pass in the order in which they came, also those that come when the loop is on time", () =>
    Effect.gen(function* () {
      const { begun, enter, loop, over, passed } = yield* makeGate
      const first = yield* enter(1)
      yield* Queue.take(begun)
      const second = yield* enter(2)
      yield* Effect.yieldNow()
      loop.lag = 0
      const third = yield* enter(3)
      yield* Effect.yieldNow()
      assert.deepStrictEqual(passed, [])
      yield* Queue.offer(over, undefined)
      yield* Fiber.joinAll([first, second, third])
      assert.deepStrictEqual(passed, [1, 2, 3])
    })
  )

  it.effect("LM-43: one that is interrupted in line passes never, and lets none overtake those before it", () =>
    Effect.gen(function* () {
      const { begun, enter, loop, over, passed } = yield* makeGate
      const first = yield* enter(1)
      yield* Queue.take(begun)
      const second = yield* enter(2)
      const third = yield* enter(3)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(second)
      loop.lag = 0
      const fourth = yield* enter(4)
      yield* Effect.yieldNow()
      assert.deepStrictEqual(passed, [])
      yield* Queue.offer(over, undefined)
      yield* Fiber.joinAll([first, third, fourth])
      assert.deepStrictEqual(passed, [1, 3, 4])
    })
  )

  it.effect("LM-43: if the first in line is interrupted, the next is the first", () =>
    Effect.gen(function* () {
      const { begun, enter, loop, over, passed } = yield* makeGate
      const first = yield* enter(1)
      yield* Queue.take(begun)
      const second = yield* enter(2)
      yield* Fiber.interrupt(first)
      yield* Queue.take(begun)
      loop.lag = 0
      yield* Queue.offer(over, undefined)
      yield* Fiber.join(second)
      assert.deepStrictEqual(passed, [2])
    })
  )
})

/** A loop whose lag and pauses the test controls. */
const makeLoop = Effect.gen(function* () {
  const measured: Array<Lag> = []
  const { begun, over, pause } = yield* makePauses
  const source: Source = { open: Effect.succeed(() => measured.shift()), pause }
  const measure = (lag: Lag) => Effect.suspend(() => (measured.push(lag), Queue.offer(over, undefined)))
  return { begun, layer: Layer.succeed(LoopLag, source), measure, over }
})

const quantile = (name: string) => Effect.map(Metric.value(Metrics.loopLagAt(name)), ({ value }) => value)

describe("the lag of the loop", () => {
  it.scoped("LM-40, OB-3: each measurement sets the metric, and one without a timer leaves it", () =>
    Effect.gen(function* () {
      const { begun, layer, measure, over } = yield* makeLoop
      const lag = yield* Effect.provide(watch, layer)
      yield* Queue.take(begun)
      yield* measure({ p50: 3, p99: 70 })
      yield* Queue.take(begun)
      assert.deepStrictEqual([yield* quantile("0.5"), yield* quantile("0.99")], [3, 70])
      yield* Queue.offer(over, undefined)
      yield* Queue.take(begun)
      assert.deepStrictEqual([lag(), yield* quantile("0.99")], [{ p50: 3, p99: 70 }, 70])
    })
  )

  it.scoped("LM-41: a runtime admits no prompt while its loop is late, and a prompt given up meanwhile never", () =>
    Effect.gen(function* () {
      const { begun, layer, measure, over } = yield* makeLoop
      const services = yield* Layer.build(Layer.provide(runtime(), layer))
      yield* Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* Queue.take(begun)
        yield* measure({ p50: 201, p99: 201 })
        yield* Queue.take(begun)
        const first = yield* Effect.fork(say(id, "first", { resume: false }))
        yield* Queue.take(begun)
        const second = yield* Effect.fork(say(id, "second", { resume: false }))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(second)
        assert.deepStrictEqual(yield* sessions.inbox(id), [])
        yield* measure({ p50: 200, p99: 900 })
        yield* Queue.offer(over, undefined)
        yield* Fiber.join(first)
        assert.deepStrictEqual(
          (yield* sessions.inbox(id)).map(({ prompt }) => prompt.text),
          ["first"]
        )
      }).pipe(Effect.provide(services))
    })
  )
})

/** The pauses between steps of a prune. Time is the test's own. Spec: RT-31. */
import { assert, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, FastCheck as fc, Fiber, TestClock } from "effect"
import { atOnce, brisk, gentle, paced } from "../../packages/log/src/retention/Pace.ts"
import { cases } from "../support/Cases.ts"

/** How many milliseconds pass until a step that takes so long has ended and paused. */
const lasts = Effect.fnUntraced(function* (pace: typeof brisk, took: number) {
  const start = yield* Clock.currentTimeMillis
  const fiber = yield* Effect.fork(
    Effect.zipRight(paced(pace)(Effect.sleep(Duration.millis(took))), Clock.currentTimeMillis)
  )
  yield* TestClock.adjust("1 day")
  return (yield* Fiber.join(fiber)) - start
})

it.effect.prop(
  "RT-31: steps of a command take at most half of the time, those of a policy a tenth",
  [fc.integer({ min: 0, max: 5_000 })],
  ([took]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* lasts(brisk, took), took + Math.max(1, took))
      assert.strictEqual(yield* lasts(gentle, took), took + Math.max(10, took * 9))
      assert.strictEqual(yield* lasts(atOnce, took), took)
    }),
  { fastCheck: { numRuns: cases(5) } }
)

it.effect("RT-31: an interruption waits for the end of a step, and not for the pause after it", () =>
  Effect.gen(function* () {
    const [began, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    let ended = false
    const step = Deferred.succeed(began, undefined).pipe(
      Effect.zipRight(Deferred.await(goOn)),
      Effect.zipRight(Effect.sync(() => (ended = true)))
    )
    const fiber = yield* Effect.fork(paced(gentle)(step))
    yield* Deferred.await(began)
    const interruption = yield* Effect.fork(Fiber.interrupt(fiber))
    yield* Effect.yieldNow()
    assert.isFalse(ended)
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.join(interruption)
    assert.isTrue(ended)
  })
)

/** Waits for a database while the wall clock is stepped. The monotonic clock is the test's. */
import { assert, it } from "@effect/vitest"
import { type Clock, Effect, Fiber, Schedule, TestClock } from "effect"
import { forAtMost } from "../../packages/log/src/support/ForAtMost.ts"

/** A clock whose wall time is the test's plus what `step` set. */
const steppedClock = (clock: Clock.Clock) => {
  let ahead = 0
  const now = () => clock.unsafeCurrentTimeMillis() + ahead
  const stepped = new Proxy(clock, {
    get: (target, property) =>
      property === "unsafeCurrentTimeMillis"
        ? now
        : property === "currentTimeMillis"
          ? Effect.sync(now)
          : Reflect.get(target, property)
  })
  return { clock: stepped, step: (millis: number) => void (ahead = millis) }
}

for (const [way, millis] of [
  ["forward", 300_000],
  ["back", -300_000]
] as const) {
  it.effect(`EV-11, CU-57: a wait has its length when the wall clock is stepped ${way}`, () =>
    Effect.gen(function* () {
      const { clock, step } = steppedClock(yield* Effect.clock)
      let attempts = 0
      const failing = Effect.suspend(() => Effect.fail((attempts += 1)))
      const schedule = forAtMost("10 seconds")(Schedule.spaced("1 second"))
      const fiber = yield* Effect.fork(Effect.withClock(Effect.flip(Effect.retry(failing, schedule)), clock))
      yield* TestClock.adjust("3 seconds")
      step(millis)
      yield* TestClock.adjust("6 seconds")
      assert.isNull(fiber.unsafePoll())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fiber), attempts)
    })
  )
}

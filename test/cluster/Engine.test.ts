/** The clock of the engine. */
import { assert, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as Engine from "../../packages/cluster/src/Engine.ts"

it.effect("CU-28: the engine looks for free shards again at once, and its other timings stay", () =>
  Effect.gen(function* () {
    const clock = Engine.eager(yield* Effect.clock)
    const slept = (duration: "1 second" | "2 seconds") => Effect.fork(Effect.withClock(Effect.sleep(duration), clock))
    const [pause, other] = [yield* slept("1 second"), yield* slept("2 seconds")]
    yield* TestClock.adjust("50 millis")
    assert.isNotNull(pause.unsafePoll())
    yield* TestClock.adjust("1949 millis")
    assert.isNull(other.unsafePoll())
    yield* TestClock.adjust("1 millis")
    assert.isNotNull(other.unsafePoll())
  })
)

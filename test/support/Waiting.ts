/**
 * Waits of tests. `waitingFor` prints what a slow wait waits for. A test whose request, frame or line never arrives would otherwise time out without a
 * reason: after five seconds of real time the wait prints one.
 */
import { Chunk, Clock, Effect, TestClock } from "effect"

const patience = 5_000

/** Runs `effect`, and prints what it waits for if it takes more than five seconds. Does not affect the test's clock. */
export const waitingFor =
  (what: string | (() => string)) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() =>
        setTimeout(() => console.log(`still waiting for ${typeof what === "string" ? what : what()}`), patience)
      ),
      () => effect,
      (timer) => Effect.sync(() => clearTimeout(timer))
    )

/**
 * Waits until somebody sleeps until `from` to `to` from now: only then may the test move the clock. The sleeper is on
 * its way when this is called; it is given the scheduler, not time.
 */
export const untilAsleep = Effect.fnUntraced(function* (from: number, to = from) {
  const now = yield* Clock.currentTimeMillis
  const about = (at: number) => at >= now + from && at <= now + to
  yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), TestClock.sleeps()), {
    until: (sleeps) => Chunk.toReadonlyArray(sleeps).some(about)
  })
})

/**
 * Prints what a slow wait waits for. A test whose request, frame or line never arrives would otherwise time out without a
 * reason: after five seconds of real time the wait prints one.
 */
import { Effect } from "effect"

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

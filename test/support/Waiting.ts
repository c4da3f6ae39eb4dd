/**
 * Waits that explain themselves. A test that waits for a request, a frame or a line that never comes would end at its
 * time limit without a word: after five seconds of real time the wait prints what it is for.
 */
import { Effect } from "effect"

const patience = 5_000

/** Runs `effect`, and prints what it waits for when it takes more than five seconds. The clock of the test is left alone. */
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

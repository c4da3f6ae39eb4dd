/** Spreads steps of background work, so that other work gets the database in between. Spec: RT-31. */
import { Clock, Duration, Effect } from "effect"

/** The share of time that steps may take, and the shortest pause between two of them. */
export interface Pace {
  readonly share: number
  readonly leastPause: Duration.Duration
}

/** For a command that a person waits for. */
export const brisk: Pace = { share: 0.5, leastPause: Duration.millis(1) }

/** For the background of a server. */
export const gentle: Pace = { share: 0.1, leastPause: Duration.millis(10) }

export const atOnce: Pace = { share: 1, leastPause: Duration.zero }

/** Runs a step to its end, and then pauses in proportion to the time that it took. */
export const paced =
  ({ leastPause, share }: Pace) =>
  <A, E, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (start) =>
      Effect.tap(Effect.uninterruptible(step), () =>
        Effect.flatMap(Clock.currentTimeMillis, (end) =>
          Effect.sleep(Duration.max(leastPause, Duration.millis((end - start) * (1 / share - 1))))
        )
      )
    )

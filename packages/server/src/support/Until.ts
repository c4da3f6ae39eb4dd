/** Waits for a time of the clock, however far it is: one timer takes at most 24 days. */
import { Clock, Duration, Effect } from "effect"

const longest = Duration.toMillis("1 day")

/** Completes at this time, in milliseconds since the epoch; at once if it has passed. */
export const until = (time: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= time
      ? Effect.void
      : Effect.zipRight(Effect.sleep(Duration.millis(Math.min(time - now, longest))), until(time))
  )

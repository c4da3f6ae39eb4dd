/** A clock for programs that pause in earnest: the time of day is the real one, and pauses are shorter by a factor. */
import { Clock, Duration, Effect } from "effect"

const real = Clock.make()

export const hasty = (factor: number): Clock.Clock => ({
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  currentTimeMillis: real.currentTimeMillis,
  currentTimeNanos: real.currentTimeNanos,
  unsafeCurrentTimeMillis: () => real.unsafeCurrentTimeMillis(),
  unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos(),
  sleep: (duration) => real.sleep(Duration.times(duration, 1 / factor))
})

/** Runs an effect with pauses of a tenth: heartbeats and looks of owners, waits before a retry. */
export const hastily = Effect.withClock(hasty(10))

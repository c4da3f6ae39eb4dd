/** Bounds how long is retried, whatever happens to the wall clock: `Schedule.upTo` asks that clock, which can be stepped. */
import { Clock, Duration, Effect, Schedule, ScheduleDecision, ScheduleInterval } from "effect"

/** Recurs at once, until this time has passed since its first step. */
const lasting = (longest: Duration.Duration) =>
  Schedule.makeWithState<bigint | undefined, unknown, void>(undefined, (now, _, began) =>
    Effect.map(Clock.currentTimeNanos, (at) => {
      const since = began ?? at
      const decision = Duration.lessThan(Duration.nanos(at - since), longest)
        ? ScheduleDecision.continueWith(ScheduleInterval.after(now))
        : ScheduleDecision.done
      return [since, undefined, decision]
    })
  )

/** Rounds up to whole milliseconds: a clock that counts nanoseconds in integers cannot represent every fraction of one. */
const whole = (delay: Duration.Duration) => Duration.millis(Math.ceil(Duration.toMillis(delay)))

/** Ends the schedule when this time has passed. Its delays are whole milliseconds. */
export const forAtMost =
  (longest: Duration.DurationInput) =>
  <Out, In, R>(schedule: Schedule.Schedule<Out, In, R>): Schedule.Schedule<Out, In, R> =>
    Schedule.zipLeft(
      Schedule.modifyDelay(schedule, (_, delay) => whole(delay)),
      lasting(Duration.decode(longest))
    )

/** Clocks of processes that are stopped, or whose time is wrong. */
import { Clock, Effect } from "effect"

/** Simulates a stopped process: time passes and none of its timers fires. */
export const withTimersStopped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.clockWith((clock) =>
    Effect.withClock(
      effect,
      new Proxy<Clock.Clock>(clock, {
        get: (target, property) => (property === "sleep" ? () => Effect.never : Reflect.get(target, property))
      })
    )
  )

/** Simulates a process whose wall clock is wrong by this much. */
export const withWallClock =
  (offByMs: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.clockWith((clock) =>
      Effect.withClock(
        effect,
        new Proxy<Clock.Clock>(clock, {
          get: (target, property) =>
            property === "currentTimeMillis"
              ? Effect.map(target.currentTimeMillis, (now) => now + offByMs)
              : property === "unsafeCurrentTimeMillis"
                ? () => target.unsafeCurrentTimeMillis() + offByMs
                : property === "unsafeCurrentTimeNanos"
                  ? // Monotonic: the wall clock does not change it.
                    () => target.unsafeCurrentTimeNanos()
                  : Reflect.get(target, property)
        })
      )
    )

/** Logs the failures of work that is tried again: the first one until the work succeeds, not each. */
import { Effect, LogLevel } from "effect"

/** Made once for the work. While it fails, `instead` is the result; later failures have the level debug. */
export const loggedOnce = (message: string) => {
  let isFailing = false
  return <A, E, R, B>(work: Effect.Effect<A, E, R>, instead: B): Effect.Effect<A | B, never, R> =>
    Effect.matchEffect(work, {
      onSuccess: (found) => {
        isFailing = false
        return Effect.succeed(found)
      },
      onFailure: (error) => {
        const level = isFailing ? LogLevel.Debug : LogLevel.Warning
        isFailing = true
        return Effect.as(Effect.logWithLevel(level, message, error), instead)
      }
    })
}

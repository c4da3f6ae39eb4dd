/** Logs once what would come again and again. */
import { Effect, LogLevel } from "effect"

/**
 * Logs the failures of work that is tried again: the first one until the work succeeds, not each. Made once for the work.
 * While it fails, `instead` is the result; later failures have the level debug.
 */
export const loggedOnce = (message: string) => {
  let isFailing = false
  return <A, E, R, B>(work: Effect.Effect<A, E, R>, instead: B): Effect.Effect<A | B, never, R> =>
    Effect.matchCauseEffect(work, {
      onSuccess: (found) => {
        isFailing = false
        return Effect.succeed(found)
      },
      onFailure: (cause) => {
        const level = isFailing ? LogLevel.Debug : LogLevel.Warning
        isFailing = true
        return Effect.as(Effect.logWithLevel(level, message, cause), instead)
      }
    })
}

const remembered = 1_000

/** Logs warnings about what is read every turn: each sentence once. After 1,000 sentences it begins anew. */
export const warnOnce = () => {
  const said = new Set<string>()
  return (sentence: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (said.has(sentence)) return Effect.void
      if (said.size >= remembered) said.clear()
      said.add(sentence)
      return Effect.logWarning(sentence)
    })
}

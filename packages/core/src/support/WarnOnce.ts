/** Logs warnings about files that are read every turn: each sentence once, not once per turn. */
import { Effect } from "effect"

const remembered = 1_000

/** A logger that remembers its sentences; it clears its memory at the limit. */
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

/** Warnings about files that are looked at every turn: each sentence is logged once, not once a turn. */
import { Effect } from "effect"

const remembered = 1_000

/** A logger that remembers what it said; after very many sentences it begins anew. */
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

/** Suggests the word that was probably meant. Pure, and without Effect, because `ctx` uses it. Spec: CL-2 in specs/cli.md. */
import { distance } from "fastest-levenshtein"

/** The known word nearest to the typed one: at an edit distance of at most two, or with the typed word as its prefix. */
export const nearest = (typed: string, known: ReadonlyArray<string>): string | undefined => {
  // A text of this length is not a misspelt word.
  if (typed.length === 0 || typed.length > 40) return undefined
  const near = known
    .map((word) => ({ word, away: distance(typed.toLowerCase(), word) }))
    .filter(({ away, word }) => away <= Math.min(2, word.length - 1))
    .toSorted((one, other) => one.away - other.away)[0]
  return near?.word ?? (typed.length < 3 ? undefined : known.find((word) => word.startsWith(typed.toLowerCase())))
}

/** The suggestion as the end of a sentence; empty if there is none. */
export const didYouMean = (typed: string, known: ReadonlyArray<string>): string => {
  const near = nearest(typed, known)
  return near === undefined ? "" : `; did you mean ${near}?`
}

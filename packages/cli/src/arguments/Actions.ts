/**
 * Finds the action that the words after a verb name: the first word that is neither an option nor an option's value. Pure.
 * Spec: CL-1, CL-2 in specs/cli.md.
 */
import { Either } from "effect"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { didYouMean } from "../support/Nearest.ts"
import { isOption } from "./Arguments.ts"
import type { Verb } from "./Verb.ts"

export interface Chosen {
  readonly action: Verb
  /** The other words, in order. */
  readonly rest: ReadonlyArray<string>
}

/** The index of the action. Options of any action may precede it. */
const placeOf = (words: ReadonlyArray<string>, actions: ReadonlyArray<Verb>): number => {
  const withValue = new Set(
    actions.flatMap(({ flags }) => flags.filter(({ value }) => value !== undefined).map(({ name }) => `--${name}`))
  )
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--") return at + 1
    if (!isOption(word)) return at
    if (withValue.has(word)) at++
  }
  return words.length
}

export const choose = (
  verb: string,
  actions: ReadonlyArray<Verb>,
  words: ReadonlyArray<string>
): Either.Either<Chosen, UsageError> => {
  const names = actions.map(({ name }) => name)
  const at = placeOf(words, actions)
  const word = words[at]
  if (word === undefined) {
    return Either.left(new UsageError({ message: `say what to do: daybook ${verb} ${names.join(", ")}` }))
  }
  const action = actions.find(({ name }) => name === word)
  if (action !== undefined) return Either.right({ action, rest: words.toSpliced(at, 1) })
  const advice = didYouMean(word, names) || `; use ${names.join(", ")}`
  return Either.left(new UsageError({ message: `there is no "${verb} ${oneLine(word, 40)}"${advice}` }))
}

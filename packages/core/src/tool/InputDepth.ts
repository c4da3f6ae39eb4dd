/**
 * Limits how deep a call's arguments may be nested, and how many values they may hold: deeper ones overflow the stack of
 * recursive readers, and more take seconds and gigabytes to check. Spec: LM-31, LM-32.
 */
import { excessOf, tooDeep, tooMany } from "../support/Excess.ts"

/** Whether a JSON value exceeds a limit. */
export const isExcessive = (value: unknown): boolean => excessOf(value) !== undefined

const leftOut = (excess: string) => `[left out: ${excess}]`

/** The arguments for the log: a short text replaces those that exceed a limit. */
export const boundedInput = (value: unknown): unknown => {
  const excess = excessOf(value)
  return excess === undefined ? value : leftOut(excess)
}

/** What the model reads about arguments that were left out; undefined for any others. */
export const refusalOf = (input: unknown): string | undefined => {
  if (input === leftOut(tooDeep)) return `the arguments are ${tooDeep}; make them flatter`
  return input === leftOut(tooMany) ? `the arguments hold ${tooMany}; send fewer at a time` : undefined
}

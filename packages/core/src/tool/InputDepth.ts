/**
 * Limits how deep a call's arguments may be nested, and how many values they may hold: deeper ones overflow the stack of
 * recursive readers, and more take seconds and gigabytes to check. Spec: LM-31, LM-32.
 */
import { maxInputDepth, maxInputValues } from "../support/Limits.ts"

const tooDeep = `nested more than ${maxInputDepth} levels deep`
const tooMany = `more than ${maxInputValues} values`

/** How a JSON value exceeds a limit; undefined if it does not. Walks without recursion. */
const excessOf = (value: unknown): string | undefined => {
  let level: ReadonlyArray<unknown> = [value]
  let values = 0
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxInputDepth) return tooDeep
    values += level.length
    if (values > maxInputValues) return tooMany
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []))
  }
  return undefined
}

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

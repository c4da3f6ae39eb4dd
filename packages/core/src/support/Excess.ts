/**
 * Limits how deep a JSON value of others may be nested, and how many values it may hold: deeper ones overflow the stack of
 * recursive readers, and more take seconds and gigabytes to check. Pure. Spec: LM-31, LM-32 in specs/security.md, HT-501
 * in specs/http.md.
 */
import { maxInputDepth, maxInputValues } from "./Limits.ts"

const deeperThan = (levels: number): string => `nested more than ${levels} levels deep`

export const tooDeep = deeperThan(maxInputDepth)
export const tooMany = `more than ${maxInputValues} values`

/** How a JSON value exceeds a limit; undefined if it does not. Walks without recursion. */
export const excessOf = (value: unknown, levels = maxInputDepth): string | undefined => {
  let level: ReadonlyArray<unknown> = [value]
  let values = 0
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return deeperThan(levels)
    values += level.length
    if (values > maxInputValues) return tooMany
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []))
  }
  return undefined
}

/**
 * Limits how deep a call's arguments may be nested: deeper ones overflow the stack of recursive readers. Spec: LM-31.
 */
import { maxInputDepth } from "../Limits.ts"

/** Whether a JSON value exceeds the maximum depth. Walks without recursion. */
export const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxInputDepth) return true
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []))
  }
  return false
}

/** Replaces such arguments in the log. */
export const tooDeep = `[left out: nested more than ${maxInputDepth} levels deep]`

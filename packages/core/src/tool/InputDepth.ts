/** How deep the arguments of a call may be nested: deeper ones would end whoever reads them by recursion. Spec: LM-31. */
import { maxInputDepth } from "../Limits.ts"

/** Whether a JSON value has more levels than a tool is given. Walks without recursion. */
export const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxInputDepth) return true
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []))
  }
  return false
}

/** Stands for the arguments in the log. */
export const tooDeep = `[left out: nested more than ${maxInputDepth} levels deep]`

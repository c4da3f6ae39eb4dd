/** Says in a line what a defect was: often it is of the host's own model, tool or context. Pure. Spec: EX-560. */
import { Cause, Option } from "effect"

/** Characters that are kept of a message. */
const longest = 500

/** The name and the message of a cause's first defect; `instead` if it has none. */
export const described = (cause: Cause.Cause<unknown>, instead: string): string =>
  Option.match(Cause.dieOption(cause), {
    onNone: () => instead,
    onSome: (defect) =>
      (defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)).slice(0, longest)
  })

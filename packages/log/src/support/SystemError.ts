/** The code of an error of the system, such as `ENOENT`. */
import { Predicate } from "effect"

export const codeOf = (cause: unknown, otherwise = "unknown"): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : otherwise

/** Reads the system's code, such as `ENOENT`, and the message of a thrown value. */
import { Predicate } from "effect"

export const codeOf = (cause: unknown, otherwise = "unknown"): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : otherwise

/** Whether nothing has the path. */
export const isAbsent = (cause: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(codeOf(cause))

/** The message of an error; any other value as a text. */
export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** What is known of a thrown value: the code of the system, such as `ENOENT`, and the message. */
import { Predicate } from "effect"

export const codeOf = (cause: unknown, otherwise = "unknown"): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : otherwise

/** Whether nothing has the path. */
export const isAbsent = (cause: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(codeOf(cause))

/** The message of an error; any other value as a text. */
export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

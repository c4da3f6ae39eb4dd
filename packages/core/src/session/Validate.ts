/** What callers give, checked against its schema before anything is decided on it. */
import { Effect, Schema } from "effect"
import { describeIssues } from "../Issues.ts"
import { InvalidInput } from "./Sessions.ts"

/** The value as its schema has it, or which field is wrong and what it should be. */
export const validate = <A, I>(
  field: string,
  schema: Schema.Schema<A, I>,
  value: unknown
): Effect.Effect<A, InvalidInput> =>
  Effect.mapError(
    Schema.decodeUnknown(schema)(value),
    (error) => new InvalidInput({ field, details: describeIssues(error, "") })
  )

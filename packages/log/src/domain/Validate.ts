/** Validates arguments of callers against their schemas before any decision. */
import { Effect, Schema } from "effect"
import { describeIssues } from "../support/Issues.ts"
import { InvalidInput } from "./InvalidInput.ts"

/** Returns the decoded value, or the field at fault and what is expected. */
export const validate = <A, I>(
  field: string,
  schema: Schema.Schema<A, I>,
  value: unknown
): Effect.Effect<A, InvalidInput> =>
  Effect.mapError(
    Schema.decodeUnknown(schema)(value),
    (error) => new InvalidInput({ field, details: describeIssues(error, "") })
  )

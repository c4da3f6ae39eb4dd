/** Schemas for fields that other tools write: a field with an unexpected value counts as absent. Spec: FM-131. */
import { Either, Schema } from "effect"

/** The field, or undefined if it is absent or its value does not fit. */
export const tolerant = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.UndefinedOr(schema).annotations({ decodingFallback: () => Either.right(undefined) }), {
    exact: true
  })

/** Fields as the tools name them. */
export const word = tolerant(Schema.NonEmptyString)
export const text = tolerant(Schema.String)
export const flag = tolerant(Schema.Boolean)
/** A count that sums cannot make infinite. */
export const count = tolerant(Schema.Finite.pipe(Schema.between(0, Number.MAX_SAFE_INTEGER)))
export const list = tolerant(Schema.Array(Schema.Unknown))
/** A field whose form its reader checks itself. */
export const unchecked = Schema.optional(Schema.Unknown)

/** Milliseconds since the epoch; undefined if the text is not a time. */
export const timeOf = (text: string | undefined): number | undefined => {
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

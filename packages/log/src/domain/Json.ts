/**
 * Defines values whose JSON form needs care: any JSON value, numbers that JSON cannot write, and the cause of an error.
 * Their encoded form is plain JSON, so that every value that contains them can be sent, stored and generated.
 */
import { Schema } from "effect"

/** Any JSON value. It is not checked: the runtime passes it on without interpreting it. */
export const JsonValue: Schema.Schema<unknown> = Schema.Unknown.annotations({
  arbitrary: () => (fc) => fc.jsonValue().filter((value) => !JSON.stringify(value).includes("__proto__"))
})

/** A JSON object whose fields this runtime does not interpret. */
export const JsonRecord = Schema.Record({ key: Schema.String, value: JsonValue })
export type JsonRecord = typeof JsonRecord.Type

/** Any number. NaN and the infinities, which JSON cannot write, are encoded as their names. */
export const AnyNumber = Schema.transform(
  Schema.Union(Schema.Finite, Schema.Literal("NaN", "Infinity", "-Infinity")),
  Schema.Number,
  {
    strict: true,
    decode: Number,
    encode: (value) => {
      if (Number.isFinite(value)) return value
      if (Number.isNaN(value)) return "NaN" as const
      return value > 0 ? ("Infinity" as const) : ("-Infinity" as const)
    }
  }
)

/** The cause of an error: any value in the process that raised it; encoded, its name and message. */
export const ErrorCause: Schema.Schema<unknown> = Schema.Defect.annotations({
  arbitrary: () => (fc) => fc.string().map((message) => new Error(message))
})

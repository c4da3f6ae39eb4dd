/** Schemas and helpers for sections of the configuration, beside those of `definition/Fields`. Pure. Spec: CF-1..CF-9. */
import { Schema } from "effect"
import { expects, optional } from "@daybook/core/definition/Fields"
import { durationOf, durationRule } from "../support/Amounts.ts"

/** A size or a duration with its unit, as `support/Amounts.ts` reads it. */
export const amountOf = (read: (text: string) => number | undefined, rule: string) =>
  optional(
    Schema.String.pipe(
      Schema.filter((text) => read(text) !== undefined),
      expects(rule)
    )
  )

/** The milliseconds of a duration, or zero for `never`; undefined for another text. */
export const durationOrNever = (text: string): number | undefined => (text === "never" ? 0 : durationOf(text))

/** A duration with its unit, or `never`. */
export const amountOrNever = amountOf(durationOrNever, `never, or ${durationRule}`)

/** Drops undefined fields. */
export const present = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  // The remaining fields keep their types, which `fromEntries` loses.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }

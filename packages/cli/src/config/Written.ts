/** Schemas and helpers for sections of the configuration, beside those of `definition/Fields`. Pure. Spec: CF-1..CF-9. */
import { Schema } from "effect"
import { expects, optional } from "@daybook/core/definition/Fields"

/** A size or a duration with its unit, as `support/Amounts.ts` reads it. */
export const amountOf = (read: (text: string) => number | undefined, rule: string) =>
  optional(
    Schema.String.pipe(
      Schema.filter((text) => read(text) !== undefined),
      expects(rule)
    )
  )

/** Drops undefined fields. */
export const present = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  // The remaining fields keep their types, which `fromEntries` loses.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }

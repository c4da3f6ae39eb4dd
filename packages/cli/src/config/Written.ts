/** Schemas and helpers for sections of the configuration, beside those of `definition/Fields`. Pure. Spec: CF-1..CF-9. */
import { Predicate, Schema } from "effect"
import { amount, expects, optional, shaped } from "@daybook/core/definition/Yaml"
import type { Price } from "@daybook/log/domain/Values"
import { durationOf, durationRule } from "../support/Amounts.ts"

/** Whether the value is a map of YAML. */
export const isMap = (value: unknown): value is { readonly [key: string]: unknown } => Predicate.isRecord(value)

export const WrittenPrice = Schema.Struct({
  input: amount,
  output: amount,
  cache_read: optional(amount),
  cache_write: optional(amount)
}).pipe(shaped("a map of input and output, in US dollars per million tokens"))

/** Cache reads and writes cost as much as input unless set (CF-24). */
export const priceOf = ({
  cache_read: cacheRead,
  cache_write: cacheWrite,
  input,
  output
}: typeof WrittenPrice.Type): Price => ({
  input,
  output,
  cacheRead: cacheRead ?? input,
  cacheWrite: cacheWrite ?? input
})

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

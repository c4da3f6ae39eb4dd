/** Fields of foreign records, read tolerantly, and what they say was spent. Pure. */
import { Either, Schema } from "effect"
import type { Spending } from "../conversation/Conversation.ts"

// Adds and subtracts what answers spent.

export const nothing: Spending = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }

const joined = (a: Spending, b: Spending, join: (a: number, b: number) => number): Spending => ({
  input: join(a.input, b.input),
  output: join(a.output, b.output),
  reasoning: join(a.reasoning, b.reasoning),
  cacheRead: join(a.cacheRead, b.cacheRead),
  cacheWrite: join(a.cacheWrite, b.cacheWrite),
  cost: join(a.cost, b.cost)
})

export const plus = (a: Spending, b: Spending): Spending => joined(a, b, (x, y) => x + y)

/** What `a` has more than `b`; never negative. */
export const beyond = (a: Spending, b: Spending): Spending => joined(a, b, (x, y) => Math.max(0, x - y))

/** The larger of each count. */
export const larger = (a: Spending, b: Spending): Spending => joined(a, b, Math.max)

export const isNothing = (spent: Spending): boolean => Object.values(spent).every((count) => count === 0)

/** Tokens of input, output and caches as a phrase, for problems. */
export const phrase = ({ cacheRead, cacheWrite, input, output }: Spending): string =>
  `${input} input, ${output} output, ${cacheRead} cache read and ${cacheWrite} cache write tokens`

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

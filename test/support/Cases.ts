/**
 * Computes how many cases a property runs. `DAYBOOK_CASES=125` multiplies every count; `npm run test:long` does so. `setup.ts`
 * configures the rest: a failing property stops at its first counterexample and prints it with its seed.
 */
import { FastCheck } from "effect"

const factor = Number(process.env["DAYBOOK_CASES"] ?? 1)

/** The number of cases; the quick suite runs `count`. */
export const cases = (count: number): number => Math.max(1, Math.round(count * factor))

/** Checks a property of the arbitraries' values, in so many cases. */
export const forAll = <Values extends [unknown, ...Array<unknown>]>(
  arbitraries: { [At in keyof Values]: FastCheck.Arbitrary<Values[At]> },
  count: number,
  holds: (...values: Values) => boolean | void
): void =>
  FastCheck.assert(
    FastCheck.property(FastCheck.tuple<Values>(...arbitraries), (values) => holds(...values)),
    { numRuns: cases(count) }
  )

/**
 * Computes how many cases a property runs. `DAYBOOK_CASES=125` multiplies every count; `npm run test:long` does so. `setup.ts`
 * configures the rest: a failing property stops at its first counterexample and prints it with its seed.
 */
const factor = Number(process.env["DAYBOOK_CASES"] ?? 1)

/** The number of cases; the quick suite runs `count`. */
export const cases = (count: number): number => Math.max(1, Math.round(count * factor))

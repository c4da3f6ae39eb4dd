/** Adds and subtracts what answers spent. Pure. */
import type { Spent } from "../conversation/Conversation.ts"

export const nothing: Spent = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }

const joined = (a: Spent, b: Spent, join: (a: number, b: number) => number): Spent => ({
  input: join(a.input, b.input),
  output: join(a.output, b.output),
  reasoning: join(a.reasoning, b.reasoning),
  cacheRead: join(a.cacheRead, b.cacheRead),
  cacheWrite: join(a.cacheWrite, b.cacheWrite),
  cost: join(a.cost, b.cost)
})

export const plus = (a: Spent, b: Spent): Spent => joined(a, b, (x, y) => x + y)

/** What `a` has more than `b`; never negative. */
export const beyond = (a: Spent, b: Spent): Spent => joined(a, b, (x, y) => Math.max(0, x - y))

/** The larger of each count. */
export const larger = (a: Spent, b: Spent): Spent => joined(a, b, Math.max)

export const isNothing = (spent: Spent): boolean => Object.values(spent).every((count) => count === 0)

/** Tokens of input, output and caches as a phrase, for problems. */
export const phrase = ({ cacheRead, cacheWrite, input, output }: Spent): string =>
  `${input} input, ${output} output, ${cacheRead} cache read and ${cacheWrite} cache write tokens`

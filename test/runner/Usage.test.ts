import { Response } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { toCost, toTokens } from "../../packages/core/src/model/Usage.ts"

const usage = new Response.Usage({ inputTokens: 1_000, outputTokens: 100, totalTokens: 1_100, cachedInputTokens: 400 })
const price = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 2 }

it("EX-R3: tokens written to a cache are counted as the models package says, for whatever provider", () => {
  const tokens = toTokens(usage, {
    daybook: { cacheWriteTokens: 200 },
    anthropic: { usage: { cache_creation_input_tokens: 7 } }
  })
  assert.deepStrictEqual(tokens.cache, { read: 400, write: 200 })
})

it("EX-R3: tokens written to a cache are found where Anthropic's own library leaves them", () => {
  const tokens = toTokens(usage, { anthropic: { usage: { cache_creation_input_tokens: 7 } } })
  assert.deepStrictEqual(tokens.cache, { read: 400, write: 7 })
})

it("EX-R3: each kind of token costs its own price, in dollars per million", () => {
  const tokens = toTokens(usage, { daybook: { cacheWriteTokens: 200 } })
  assert.closeTo(toCost(tokens, price), (400 * 1 + 100 * 10 + 400 * 0.1 + 200 * 2) / 1_000_000, 1e-12)
  assert.strictEqual(toCost(tokens, undefined), 0)
})

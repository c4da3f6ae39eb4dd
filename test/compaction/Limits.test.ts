/** How much of a window a request may fill (CM-2). */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { defaultSettings, exceeds, limitsOf } from "../../packages/core/src/compaction/Limits.ts"

const window = (contextTokens: number, outputTokens: number) => ({ contextTokens, outputTokens })

it("CM-2: the reserve is the greater of the configured one and what the answer may have", () => {
  const reserve = (outputTokens: number, requested?: number) =>
    limitsOf(
      { ...window(200_000, outputTokens), ...(requested === undefined ? {} : { requestedOutput: requested }) },
      defaultSettings
    ).reserve
  assert.strictEqual(reserve(0), 16_384)
  assert.strictEqual(reserve(8_000), 16_384)
  assert.strictEqual(reserve(32_000), 32_000)
  // What is asked for counts instead of what the model could give.
  assert.strictEqual(reserve(32_000, 20_000), 20_000)
  assert.strictEqual(reserve(8_000, 40_000), 40_000)
})

it.prop(
  "CM-2: a request at its budget goes out, one token more is too much",
  { context: fc.integer({ min: 1, max: 2_000_000 }), output: fc.nat(2_000_000), reserve: fc.nat(2_000_000) },
  ({ context, output, reserve }) => {
    const limits = limitsOf(window(context, output), { ...defaultSettings, reserveTokens: reserve })
    assert.isFalse(exceeds(limits.budget - 1, limits))
    assert.isFalse(exceeds(limits.budget, limits))
    assert.isTrue(exceeds(limits.budget + 1, limits))
  }
)

it("CM-2: an unknown window is never too small", () => {
  for (const unknown of [0, -1, Number.NaN]) {
    const limits = limitsOf(window(unknown, 8_000), defaultSettings)
    assert.isFalse(exceeds(Number.MAX_SAFE_INTEGER, limits))
    assert.deepStrictEqual([limits.keepRecent, limits.summary], [20_000, 4_096])
  }
})

it("CP-2: a reserve that leaves less than a quarter of the window is half of it", () => {
  const budget = (context: number, output = 0) => limitsOf(window(context, output), defaultSettings).budget
  assert.strictEqual(budget(21_846), 21_846 - 16_384)
  assert.strictEqual(budget(21_845), 21_845 - 10_922)
  assert.strictEqual(budget(8_192, 8_192), 4_096)
  assert.strictEqual(budget(200_000, 150_000), 50_000)
  assert.strictEqual(budget(200_000, 150_001), 100_000)
})

it.prop(
  "CP-3: whatever the window, a checkpoint of summary and recent context takes at most half of the budget",
  { context: fc.integer({ min: 16, max: 2_000_000 }), output: fc.nat(2_000_000), keep: fc.nat(2_000_000) },
  ({ context, keep, output }) => {
    const limits = limitsOf(window(context, output), { ...defaultSettings, keepRecentTokens: keep })
    assert.isAtLeast(limits.budget, context / 4)
    assert.isAtMost(limits.keepRecent + limits.summary, limits.budget / 2)
    assert.isBelow(limits.pruneTarget, limits.budget)
    assert.isAtMost(limits.keepRecent, keep)
    assert.strictEqual(limits.budget + limits.reserve, limits.window)
  }
)

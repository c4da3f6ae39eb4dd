/** Leaving old tool results out of what is shown. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { lower, shownTo } from "../../packages/core/src/request/Lowering.ts"
import { nothingPruned, placeholder, prunable, prune, type PruneInput } from "../../packages/core/src/request/Prune.ts"
import { estimate } from "../../packages/core/src/request/TokenEstimate.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import { history, results, says, tool, user } from "./support/Histories.ts"

/** Every character a token: sums are exact. */
const countTokens = (text: string) => text.length

/** Tokens of what the model is shown when results up to `through` are left out. */
const tokensAt = (messages: ReadonlyArray<Message>, through: number) => {
  const shown = { ...shownTo({ providerID: "acme", id: "m1" }), prunedSeq: through }
  return estimate({ system: [], messages: lower(messages, shown), tools: [] }, countTokens).total
}

const output = (length: number) => [{ type: "text" as const, text: "x".repeat(length) }]
const turn = (seq: number, length: number) => [
  user(seq, "go on"),
  results(seq + 1, { name: "bash", content: output(length) }),
  says(seq + 2, "done")
]
const input = (messages: ReadonlyArray<Message>, target: number, protectTokens = 0): PruneInput => ({
  messages,
  through: nothingPruned,
  tokens: tokensAt(messages, nothingPruned),
  target,
  protectTokens,
  countTokens
})

it("CP-31: the least is left out that brings the request down to its target", () => {
  const messages = [0, 10, 20, 30, 40].flatMap((seq) => turn(seq, 1_000))
  const tokens = tokensAt(messages, nothingPruned)
  assert.isUndefined(prune(input(messages, tokens)))
  assert.strictEqual(prune(input(messages, tokens - 1)), 1)
  assert.strictEqual(prune(input(messages, tokensAt(messages, 1))), 1)
  assert.strictEqual(prune(input(messages, tokensAt(messages, 1) - 1)), 11)
  assert.strictEqual(prune(input(messages, tokensAt(messages, 21))), 21)
})

it("CP-32: the turns of the last two user messages keep their results", () => {
  const messages = [0, 10, 20].flatMap((seq) => turn(seq, 1_000))
  assert.isUndefined(prune(input(messages, tokensAt(messages, 1) - 1)))
  assert.isUndefined(prune(input(turn(0, 100_000), 1_000)))
})

it("CP-32: the newest results keep their place up to the protected size, one token more does not", () => {
  const messages = [0, 10, 20, 30, 40].flatMap((seq) => turn(seq, 1_000))
  const target = tokensAt(messages, 11)
  assert.strictEqual(prune(input(messages, target, 3_999)), 11)
  assert.isUndefined(prune(input(messages, target, 4_000)))
})

it("CP-30: only a local call's completed result of more than 200 characters is left out, and never guidance", () => {
  const long = output(201)
  assert.isTrue(prunable(tool({ content: long })))
  assert.isFalse(prunable(tool({ content: output(200) })))
  assert.isFalse(prunable(tool({ content: long, state: "error" })))
  assert.isFalse(prunable(tool({ content: long, provider: { executed: true } })))
  assert.isFalse(prunable(tool({ content: long, name: "skill" })))
  assert.isTrue(prunable(tool({ content: [{ type: "file", uri: "data:image/png;base64,AA", mime: "image/png" }] })))
  assert.include(placeholder(tool({ name: "bash", content: long })), "bash")
  assert.include(placeholder(tool({ name: "bash", content: long })), "201 characters")
})

/** Any history, long results after it, two short turns at the end, and a target that asks to leave out some of it. */
const anyInput = fc
  .tuple(history(8), fc.array(fc.nat(3_000), { maxLength: 6 }), fc.nat(100), fc.constantFrom(0, 0, 2_000))
  .map(([past, sizes, percent, protect]) => {
    const long = sizes.flatMap((size, at) => turn(100 + 10 * at, size))
    const messages = [...past, ...long, ...turn(200, 0), ...turn(210, 0)]
    const [most, least] = [tokensAt(messages, nothingPruned), tokensAt(messages, 199)]
    return { messages, protect, target: least + Math.floor(((most - least) * percent) / 100) }
  })

it.prop(
  "CP-31: whatever is left out is enough, by the estimate of what is then shown",
  [anyInput],
  ([{ messages, protect, target }]) => {
    const through = prune(input(messages, target, protect))
    if (through !== undefined) assert.isAtMost(tokensAt(messages, through), target)
  }
)

it.prop(
  "CP-34: pruning what has been pruned leaves out nothing more",
  [anyInput],
  ([{ messages, protect, target }]) => {
    const through = prune(input(messages, target, protect))
    if (through === undefined) return
    const again = { ...input(messages, target, protect), through, tokens: tokensAt(messages, through) }
    assert.isUndefined(prune(again))
  }
)

it.prop(
  "CP-34: a lower target never shows more, and from what is left out already it takes no more than at once",
  [anyInput, fc.nat(2_000)],
  ([{ messages, protect, target }, less]) => {
    const through = prune(input(messages, target, protect))
    const further = prune(input(messages, Math.max(0, target - less), protect))
    if (through === undefined || further === undefined) return
    assert.isAtLeast(further, through)
    const on = prune({
      ...input(messages, Math.max(0, target - less), protect),
      through,
      tokens: tokensAt(messages, through)
    })
    // Media weigh a little more than they are counted for: what is then shown may be small enough sooner.
    assert.isAtMost(on ?? through, further)
    assert.isAtMost(tokensAt(messages, on ?? through), Math.max(0, target - less))
  }
)

it.prop("CP-35: what is stored is not touched", [anyInput], ([{ messages, protect, target }]) => {
  const before = JSON.stringify(messages)
  prune(input(messages, target, protect))
  assert.strictEqual(JSON.stringify(messages), before)
})

/** Tokens of a request before the provider has counted them (CM-1, CM-13). */
import type { Prompt } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { lower, shownTo } from "../../packages/core/src/request/Lowering.ts"
import {
  estimate,
  imageTokens,
  messageTokens,
  tokensOf,
  withUsage
} from "../../packages/core/src/request/TokenEstimate.ts"
import { history } from "./support/Histories.ts"

const model = { providerID: "acme", id: "m1" }
const said = (text: string): Prompt.MessageEncoded => ({ role: "user", content: [{ type: "text", text }] })
const attached = (mediaType: string, data: string): Prompt.MessageEncoded => ({
  role: "user",
  content: [{ type: "file", mediaType, data }]
})
const tool = (name: string, description: string) => ({ name, description, parameters: { type: "object" } })

it.prop(
  "CM-1: without a counter a text has a quarter of its characters, rounded",
  { text: fc.string() },
  ({ text }) => {
    assert.strictEqual(tokensOf(text), Math.round(text.length / 4))
  }
)

it.prop(
  "CM-1: a request has what its system texts, messages and tools have, each at least a quarter of its text",
  { messages: history(), system: fc.array(fc.string()), names: fc.array(fc.string()) },
  ({ messages, names, system }) => {
    const encoded = lower(messages, shownTo(model))
    const request = estimate({ system, messages: encoded, tools: names.map((name) => tool(name, name)) })
    assert.strictEqual(request.total, request.system + request.messages + request.tools)
    assert.strictEqual(request.perMessage.length, encoded.length)
    assert.strictEqual(
      request.messages,
      request.perMessage.reduce((sum, size) => sum + size, 0)
    )
    for (const [at, message] of encoded.entries()) {
      const texts = typeof message.content === "string" ? [] : message.content
      const chars = texts.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0)
      assert.isAtLeast(request.perMessage[at] ?? 0, Math.floor(chars / 4))
    }
  }
)

it("CM-13: a tool's name, description and parameters count", () => {
  const of = (description: string) => estimate({ system: [], messages: [], tools: [tool("grep", description)] })
  const none = estimate({ system: [], messages: [], tools: [] })
  assert.strictEqual(none.total, 0)
  assert.strictEqual(of("x".repeat(4_000)).total - of("").total, 1_000)
  assert.isAbove(of("").tools, 0)
})

it("CP-7: an image counts flat and a document by its bounded size, never by its encoding", () => {
  const image = (length: number) => messageTokens(attached("image/png", "A".repeat(length)), undefined)
  assert.strictEqual(image(4), image(4_000_000))
  assert.isAtLeast(image(4), imageTokens)
  assert.isBelow(image(4), imageTokens + 50)
  const document = (length: number) => messageTokens(attached("application/pdf", "A".repeat(length)), undefined)
  assert.isBelow(document(400_000), 400_000 / 4 / 4)
  assert.isAbove(document(400_000), document(40))
  assert.strictEqual(document(40_000_000), document(400_000_000))
})

it("CP-6: the model's own counter counts texts, and sees no run longer than it is given at once", () => {
  const seen: Array<string> = []
  const count = (text: string) => {
    seen.push(text)
    return text.length
  }
  const request = estimate({ system: [], messages: [said("x".repeat(9_001))], tools: [] }, count)
  assert.strictEqual(request.total - estimate({ system: [], messages: [said("")], tools: [] }, count).total, 9_001)
  assert.strictEqual(seen.join("").length, 9_001)
  assert.isTrue(seen.every((text) => text.length <= 4_000))
})

it("CP-8: what is unchanged is counted once for each counter", () => {
  let counted = 0
  const count = (text: string) => {
    counted += 1
    return text.length
  }
  const messages = Array.from({ length: 50 }, (_, at) => said(`message ${at}`))
  const before = estimate({ system: [], messages, tools: [] }, count)
  assert.strictEqual(counted, 50)
  const after = estimate({ system: [], messages: [...messages, said("one more")], tools: [] }, count)
  assert.strictEqual(counted, 51)
  assert.strictEqual(after.total - before.total, after.perMessage[50])
  // Another counter has its own numbers.
  assert.notStrictEqual(estimate({ system: [], messages, tools: [] }).total, before.total)
})

it("CM-13: the provider's last count is a lower bound, with what came after it", () => {
  const messages = [said("x".repeat(400)), said("y".repeat(400))]
  const estimated = estimate({ system: [], messages, tools: [] })
  const last = (input: number, output: number) => ({ tokens: { input, output }, messages: 1 })
  assert.strictEqual(withUsage(estimated, undefined), estimated.total)
  assert.strictEqual(withUsage(estimated, last(0, 0)), estimated.total)
  assert.strictEqual(withUsage(estimated, last(5, 5)), estimated.total)
  assert.strictEqual(withUsage(estimated, last(5_000, 300)), 5_300 + (estimated.perMessage[1] ?? 0))
})

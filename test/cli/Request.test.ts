import { assert, describe, it } from "@effect/vitest"
import { requestJson, requestText, sizeTable } from "../../packages/cli/src/commands/context.ts"
import type { ShownRequest } from "../../packages/core/src/request/Recorded.ts"

const long = "a line that nobody cuts \u001b[31m\n".repeat(5_000)
const png = Buffer.alloc(12_000, 7)

const request = {
  sessionID: "ses_a",
  agent: "build",
  model: { providerID: "p", id: "m" },
  frame: {
    system: ["Be brief.  \n\n"],
    baselineSeq: 0,
    tools: [{ name: "read", description: "Reads a file.", parameters: { type: "object" } }],
    settings: { temperature: 0.2 }
  },
  messages: [
    { role: "user", content: long },
    {
      role: "user",
      content: [
        { type: "text", text: "Look." },
        { type: "file", mediaType: "image/png", fileName: "a\n.png", data: png.toString("base64") },
        { type: "file", mediaType: "image/png", data: new Uint8Array(png) },
        { type: "file", mediaType: "image/png", data: new URL("https://example.com/a.png") }
      ]
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm.", options: { acme: { signature: "c2VjcmV0" } } },
        { type: "tool-call", id: "c1", name: "read", params: { path: "a" }, providerExecuted: false }
      ]
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", id: "c1", name: "read", isFailure: false, result: "the text", providerExecuted: false }
      ]
    }
  ],
  estimate: {
    system: 3,
    messages: 1_600,
    tools: 20,
    total: 1_623,
    perSystem: [3],
    perMessage: [1_000, 580, 10, 10],
    perTool: [20]
  },
  step: { messageID: "msg_a", seq: 5 }
} as unknown as ShownRequest // the identifiers' brands are of no interest here

const shown = { request, window: 2_000 }
const text = (terminal: boolean) => [...requestText(shown, terminal)].join("")

describe("a request", () => {
  it("CL-75: is shown whole: no text is cut or trimmed, calls and results are there", () => {
    const whole = text(false)
    for (const part of [long, "## system 1 (3 tokens)\n\nBe brief.  \n\n", "→ read (c1)\n{", "← read (c1)\nthe text"]) {
      assert.include(whole, part)
    }
    assert.match(whole, /^tokens +1,623 estimated, 377 left of the model's 2,000$/m)
    assert.match(whole, /^settings +\{"temperature":0\.2\}$/m)
    assert.match(whole, /^turn +event 5, answered by msg_a$/m)
  })

  it("CL-75: names media by kind and size, and what is a provider's own by its length", () => {
    const whole = text(false)
    assert.include(whole, "[image/png, 12 kB a .png]")
    assert.include(whole, "[image/png, 12 kB]\n")
    assert.include(whole, "[image/png, https://example.com/a.png]")
    assert.notInclude(whole, "c2VjcmV0")
    assert.match(whole, /\[with \d+ characters of acme's own\]/)
  })

  it("CL-30: is obeyed by no terminal", () => {
    assert.notInclude(text(true), "\u001b")
    assert.include(text(true), "␛[31m")
  })

  it("CL-78: has a table of sizes, a line for each part, that adds up", () => {
    const lines = sizeTable(shown).trimEnd().split("\n")
    const sizes = lines.map((line) => Number(line.slice(0, 9).replaceAll(",", "")))
    const parts = lines.map((line) => line.slice(9).trim().split(/ {2,}/)[0])
    assert.deepStrictEqual(parts, ["system 1", "tool", "1 user", "2 user", "3 assistant", "4 tool", "total"])
    assert.strictEqual(
      sizes.slice(0, -1).reduce((sum, size) => sum + size, 0),
      sizes.at(-1)
    )
    assert.match(sizeTable({ request, window: 1_000 }), /623 more than the model's 1,000\n$/)
  })

  it("CL-79: is one JSON object with everything", () => {
    const json = requestJson(shown, true)
    assert.notInclude(json, "\u001b")
    const value = JSON.parse(json)
    assert.deepStrictEqual(Object.keys(value), [
      "sessionID",
      "step",
      "agent",
      "model",
      "settings",
      "system",
      "tools",
      "messages",
      "tokens"
    ])
    assert.strictEqual(value.messages[0].content, long)
    assert.strictEqual(value.messages[1].content[2].data, png.toString("base64"))
    assert.strictEqual(value.tokens.left, 377)
    assert.deepStrictEqual(value.tools, request.frame.tools)
  })
})

import { assert, describe, expect, it } from "@effect/vitest"
import { baseInstructions, modelFamily } from "../../packages/core/src/agent/BuiltinAgents.ts"

const ref = (name: string) => {
  const slash = name.indexOf("/")
  return { providerID: name.slice(0, slash), id: name.slice(slash + 1) }
}

describe("families", () => {
  it.each([
    ["anthropic/claude-opus-5-5", "claude"],
    ["openai-compatible/anthropic/claude-sonnet-5", "claude"],
    ["bedrock/us.anthropic.claude-haiku-4-5-v1:0", "claude"],
    ["anthropic/some-new-name", "claude"],
    ["openai/gpt-6.1-terra", "gpt"],
    ["openai/o3", "gpt"],
    ["openai/o4-mini", "gpt"],
    ["openai/codex-mini", "gpt"],
    ["openai-compatible/openai/gpt-5.1", "gpt"],
    ["openai/ft:gpt-4.1:acme", "gpt"],
    ["google/gemini-3-pro", "gemini"],
    ["openai-compatible/models/gemini-2.5-flash", "gemini"],
    ["ollama/qwen3:8b", "other"],
    ["ollama/gpt-oss:20b", "other"],
    ["llama.cpp/phi-o3x", "other"],
    ["ollama/solo1", "other"],
    ["offline/offline", "other"]
  ])("CF-20: %s is told as %s is", (name, family) => {
    assert.strictEqual(modelFamily(ref(name)), family)
  })
})

describe("texts", () => {
  const models = ["anthropic/claude-opus-5-5", "openai/gpt-6.1-terra", "google/gemini-3-pro", "ollama/qwen3:8b"]

  it.each(models)("CF-21: what %s is told changes only with intent", (name) => {
    expect(baseInstructions(ref(name))).toMatchSnapshot()
  })

  it("CF-21: a text is short, plain, and begins the same for all", () => {
    const texts = models.map((name) => baseInstructions(ref(name)))
    for (const text of texts) {
      assert.isBelow(text.length, 1_250)
      assert.match(text, /^[\x20-\x7e\n]+$/)
      assert.strictEqual(text.trim(), text)
      assert.strictEqual(text.slice(0, 900), texts[0]?.slice(0, 900))
    }
    assert.strictEqual(new Set(texts).size, texts.length)
  })
})

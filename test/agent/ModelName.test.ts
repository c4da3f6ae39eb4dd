import { assert, it } from "@effect/vitest"
import { parseModelName } from "../../packages/core/src/agent/AgentDefinition.ts"

it.each([
  ["anthropic/claude-opus-5-5", { providerID: "anthropic", id: "claude-opus-5-5" }],
  ["anthropic/claude-opus-5-5:high", { providerID: "anthropic", id: "claude-opus-5-5", variant: "high" }],
  ["openai/gpt-5:a:b", { providerID: "openai", id: "gpt-5:a", variant: "b" }],
  ["openai/ft:gpt-5:me:name", { providerID: "openai", id: "ft:gpt-5:me:name" }],
  ["ollama/qwen3:8b", { providerID: "ollama", id: "qwen3:8b" }],
  ["router/vendor/model:free", { providerID: "router", id: "vendor/model:free" }],
  ["ollama/ft:x", { providerID: "ollama", id: "ft:x" }],
  ["openai/:high", undefined],
  ["openai/gpt-5:", undefined],
  ["openai/", undefined],
  ["/gpt-5", undefined],
  ["openai", undefined],
  ["-openai/x", undefined],
  ["openai/a b", undefined],
  [`openai/${"x".repeat(300)}`, { providerID: "openai", id: "x".repeat(300) }],
  [`openai/${"x".repeat(301)}`, undefined]
])("CF-12: %s is parsed, or is not a model name", (text, expected) => {
  assert.deepStrictEqual(parseModelName(text), expected)
})

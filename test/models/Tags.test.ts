/** Thinking between tags in the text: read where the profile says so, by every protocol, and left in the text elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Models } from "@daybook/models"
import { type Api, profileOf } from "../../packages/models/src/Profiles.ts"
import { answer, textOf } from "./support/Client.ts"
import { chunks, events, type Reply, serve } from "./support/Server.ts"

const said = ["<thi", "nk>hm</think>", "\n\nfine"]

const replies: Readonly<Record<Api, Reply>> = {
  "openai-compatible": chunks(...said.map((content) => ({ choices: [{ index: 0, delta: { content } }] })), {
    choices: [{ index: 0, delta: {}, finish_reason: "stop" }]
  }),
  anthropic: events(
    { type: "message_start", message: { id: "m" } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...said.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" }
  ),
  openai: events(
    ...said.map((delta) => ({ type: "response.output_text.delta", item_id: "m", output_index: 0, delta })),
    { type: "response.completed", response: { id: "r", status: "completed", output: [] } }
  ),
  gemini: chunks(...said.map((text) => ({ candidates: [{ content: { parts: [{ text }] } }] })), {
    candidates: [{ finishReason: "STOP" }]
  })
}

/** The kinds of an answer's blocks in order, its text and its thinking. */
const read = (api: Api, model: string, provider: Partial<Models.WireProvider> = {}) =>
  Effect.gen(function* () {
    const server = yield* serve(replies[api])
    const known = { models: { [model]: { contextTokens: 1_000, outputTokens: 100 } } }
    const resolver = yield* Models.make({
      providers: { mine: { api, baseUrl: `${server.url}/v1`, ...known, ...provider } }
    })
    const resolved = yield* Effect.orDie(resolver.resolve({ providerID: "mine", id: model }))
    const parts = yield* answer(resolved.model, { prompt: "go" })
    return {
      blocks: parts.flatMap(({ type }) => (/^(?:text|reasoning)-(?:start|end)$/.test(type) ? [type] : [])),
      text: textOf(parts),
      thought: parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join("")
    }
  })

const apis = ["openai-compatible", "anthropic", "openai", "gemini"] as const

describe("thinking between tags", () => {
  it.scopedLive.each(apis)("MD-760: is read where the profile says so: %s", (api) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read(api, "m", { profile: { tags: true } }), {
        blocks: ["reasoning-start", "reasoning-end", "text-start", "text-end"],
        text: "fine",
        thought: "hm"
      })
    })
  )

  it.scopedLive.each(apis)("MD-760: is text where it does not: %s", (api) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read(api, "m", { profile: { tags: false } }), {
        blocks: ["text-start", "text-end"],
        text: said.join(""),
        thought: ""
      })
    })
  )

  it("MD-760: servers that run any model have tags, but not for models whose service separates thinking", () => {
    const tags = (providerID: string, model: string, api: Api = "openai-compatible") =>
      profileOf({ providerID, model, api }).tags
    assert.isTrue(tags("vllm", "qwen3") && tags("mine", "m") && tags("openrouter", "deepseek/deepseek-r1"))
    assert.isFalse(tags("openrouter", "anthropic/claude-sonnet-5.5") || tags("litellm", "gpt-6.1-terra"))
    assert.isFalse(tags("deepseek", "deepseek-v4-pro") || tags("openai-chat", "gpt-6.1-terra"))
    assert.isFalse(tags("openai", "gpt-6.1-terra", "openai") || tags("anthropic", "claude-opus-5-5", "anthropic"))
  })
})

import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Redacted } from "effect"
import { Models, OfflineModel } from "@daybook/models"
import type { RequestSettings } from "../../packages/core/src/domain/Agent.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { hello } from "./support/Answers.ts"
import { answer, type Api, at, requestsWith, secret } from "./support/Client.ts"
import { refusal, serve } from "./support/Server.ts"

const all: RequestSettings = {
  maxOutputTokens: 1234,
  temperature: 0.5,
  topP: 0.9,
  topK: 40,
  stop: ["END"],
  effort: "high"
}

const fieldsOf = (body: unknown, ...names: ReadonlyArray<string>) =>
  Object.fromEntries(names.flatMap((name) => (at(body, name) === undefined ? [] : [[name, at(body, name)]])))
const named = [
  "max_tokens",
  "max_output_tokens",
  "temperature",
  "top_p",
  "top_k",
  "stop",
  "stop_sequences",
  "output_config",
  "reasoning",
  "reasoning_effort"
]

describe("request settings", () => {
  for (const { api, model, sent, settings, title, variant } of [
    {
      title: "Anthropic gets each under its name there, and of temperature and top_p the first",
      api: "anthropic",
      model: "claude-opus-4-6",
      settings: all,
      sent: {
        max_tokens: 1234,
        temperature: 0.5,
        top_k: 40,
        stop_sequences: ["END"],
        output_config: { effort: "high" }
      }
    },
    {
      title: "Anthropic's limit leaves room for words after the thinking that `body` asks for",
      api: "anthropic",
      model: "claude-opus-4-5",
      settings: { maxOutputTokens: 4096, body: { thinking: { type: "enabled", budget_tokens: 16_000 } } },
      sent: { max_tokens: 20_096 }
    },
    {
      title: "Anthropic gets top_p when there is no temperature",
      api: "anthropic",
      model: "claude-sonnet-4-5-20250929",
      settings: { topP: 0.9 },
      sent: { max_tokens: 32_000, top_p: 0.9 }
    },
    {
      title: "OpenAI gets what the Responses API knows",
      api: "openai",
      model: "gpt-4.1",
      settings: all,
      sent: { max_output_tokens: 1234, temperature: 0.5, top_p: 0.9 }
    },
    {
      title: "OpenAI's effort goes beside what else is said of reasoning",
      api: "openai",
      model: "gpt-6.1-terra",
      settings: { effort: "max" },
      sent: { reasoning: { summary: "auto", effort: "max" } }
    },
    {
      title: "chat completions get what the protocol knows",
      api: "openai-compatible",
      model: "qwen3:8b",
      settings: all,
      sent: { max_tokens: 1234, temperature: 0.5, top_p: 0.9, stop: ["END"], reasoning_effort: "high" }
    },
    {
      title: "a variant comes before the effort",
      api: "anthropic",
      model: "claude-opus-4-6",
      variant: "low",
      settings: { effort: "max" },
      sent: { max_tokens: 64_000, output_config: { effort: "low" } }
    },
    {
      title: "an effort that the model does not know is left out",
      api: "anthropic",
      model: "claude-sonnet-4-5",
      settings: { effort: "max" },
      sent: { max_tokens: 32_000 }
    }
  ] as ReadonlyArray<{
    title: string
    api: Api
    model: string
    variant?: string
    settings: RequestSettings
    sent: Record<string, unknown>
  }>) {
    it.scopedLive(`MD-47: ${title}`, () =>
      Effect.gen(function* () {
        const ref = { id: model, ...(variant === undefined ? {} : { variant }) }
        const [request] = yield* requestsWith(api, ref, [settings])
        assert.deepStrictEqual(fieldsOf(request?.body, ...named), sent)
      })
    )
  }

  it.effect("MD-47: the offline model and a host's own model answer as they do without settings", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make({
        providers: { acme: { api: "language-model", model: () => OfflineModel.make } }
      })
      for (const ref of [OfflineModel.ref, { providerID: "acme", id: "m1" }]) {
        const plain = yield* resolver.resolve(ref)
        const set = yield* resolver.resolve(ref, all)
        assert.deepStrictEqual(yield* answer(set.model, { prompt: "Hi" }), yield* answer(plain.model, { prompt: "Hi" }))
      }
    })
  )

  for (const [api, model] of [
    ["anthropic", "claude-opus-5-5"],
    ["openai", "gpt-6.1-terra"],
    ["openai-compatible", "qwen3:8b"]
  ] as ReadonlyArray<readonly [Api, string]>) {
    it.scopedLive(`MD-66, MD-48: headers and JSON fields go over those of the request, credentials stay: ${api}`, () =>
      Effect.gen(function* () {
        const headers = { "X-Team": "blue", AUTHORIZATION: "Bearer other", "x-api-key": "other", "content-type": "a/b" }
        const [plain, laid] = yield* requestsWith(api, { id: model }, [
          undefined,
          { headers, body: { metadata: { user_id: "u1" }, temperature: 0.25 } }
        ])
        assert.strictEqual(laid?.headers["x-team"], "blue")
        assert.strictEqual(laid?.headers.authorization, plain?.headers.authorization)
        assert.strictEqual(laid?.headers["x-api-key"], plain?.headers["x-api-key"])
        assert.strictEqual(laid?.headers["content-type"], plain?.headers["content-type"])
        assert.deepStrictEqual(laid?.body, { ...plain?.body, metadata: { user_id: "u1" }, temperature: 0.25 })
      })
    )

    it.scopedLive(`MD-66, MD-48: settings replace neither conversation, tools, model nor stream: ${api}`, () =>
      Effect.gen(function* () {
        const body = Object.fromEntries(
          ["input", "instructions", "messages", "model", "stream", "system", "tool_choice", "tools"].map((name) => [
            name,
            "forged"
          ])
        )
        const [plain, laid] = yield* requestsWith(api, { id: model }, [undefined, { body }])
        assert.deepStrictEqual(laid?.body, plain?.body)
      })
    )

    it.scopedLive(`MD-50: settings hold for the requests that they were resolved with, and no other: ${api}`, () =>
      Effect.gen(function* () {
        const [first, second, third] = yield* requestsWith(api, { id: model }, [
          undefined,
          { body: { metadata: { n: 1 } } },
          undefined
        ])
        assert.notDeepEqual(first?.body, second?.body)
        assert.deepStrictEqual(third?.body, first?.body)
      })
    )

    it.scopedLive(`MD-51: a key in the settings' headers is in no error: ${api}`, () =>
      Effect.gen(function* () {
        const key = "hush-0123456789"
        const server = yield* serve(refusal(401, { error: { message: `the key ${key} is not known` } }))
        const resolver = yield* Models.make({
          providers: { [api]: { api, apiKey: Redacted.make(secret), baseUrl: server.url } }
        })
        const { model: asked } = yield* resolver.resolve(
          { providerID: api, id: model },
          { headers: { "x-gateway": key } }
        )
        const cause = yield* Effect.flip(Effect.sandbox(answer(asked, { prompt: "Hi" })))
        assert.strictEqual(server.received[0]?.headers["x-gateway"], key)
        const shown = `${Cause.pretty(cause)} ${JSON.stringify(cause)} ${JSON.stringify(classifyError(Cause.squash(cause)))}`
        assert.include(shown, "is not known")
        assert.notInclude(shown, key)
      })
    )

    it.scopedLive(`MD-51: a header that HTTP does not allow is named, without its value: ${api}`, () =>
      Effect.gen(function* () {
        const server = yield* serve()
        const resolver = yield* Models.make({
          providers: { [api]: { api, apiKey: Redacted.make(secret), baseUrl: server.url } }
        })
        const { model: asked } = yield* resolver.resolve(
          { providerID: api, id: model },
          { headers: { "x-gateway": "hush\n0123" } }
        )
        const cause = yield* Effect.flip(Effect.sandbox(answer(asked, { prompt: "Hi" })))
        const shown = `${Cause.pretty(cause)} ${JSON.stringify(cause)}`
        assert.include(shown, "x-gateway")
        assert.notInclude(shown, "hush")
        assert.strictEqual(server.received.length, 0)
      })
    )
  }

  it.scopedLive("MD-66, MD-48: a server's own headers stay too", () =>
    Effect.gen(function* () {
      const server = yield* serve(hello["openai-compatible"])
      const resolver = yield* Models.make({
        providers: {
          gate: { api: "openai-compatible", baseUrl: server.url, headers: { "X-Gate": "ours-0123" } }
        }
      })
      const headers = { "x-gate": "theirs", "x-team": "blue" }
      const { model } = yield* resolver.resolve({ providerID: "gate", id: "m" }, { headers })
      yield* answer(model, { prompt: "Hi" })
      assert.strictEqual(server.received[0]?.headers["x-gate"], "ours-0123")
      assert.strictEqual(server.received[0]?.headers["x-team"], "blue")
    })
  )

  for (const [api, model, settings, sent] of [
    ["anthropic", "claude-opus-5-5", {}, {}],
    ["anthropic", "claude-opus-4-7", {}, {}],
    ["anthropic", "claude-mythos-preview", {}, {}],
    ["anthropic", "claude-opus-4-6", { body: { thinking: { type: "adaptive" } } }, {}],
    ["anthropic", "claude-opus-4-6", {}, { temperature: 0.5, top_k: 40 }],
    ["anthropic", "claude-opus-4-1-20250805", {}, { temperature: 0.5, top_k: 40 }],
    ["anthropic", "claude-sonnet-4-20250514", {}, { temperature: 0.5, top_k: 40 }],
    ["anthropic", "claude-3-5-haiku-20241022", {}, { temperature: 0.5, top_k: 40 }],
    ["openai", "gpt-6.1-terra", {}, {}],
    ["openai", "o4-mini", { effort: "high" }, {}],
    ["openai", "gpt-6.1-terra", { effort: "none" }, { temperature: 0.5, top_p: 0.9 }],
    ["openai", "gpt-4o", {}, { temperature: 0.5, top_p: 0.9 }]
  ] as ReadonlyArray<readonly [Api, string, RequestSettings, Record<string, unknown>]>) {
    it.scopedLive(`MD-49: ${model} with ${JSON.stringify(settings)} is sent ${JSON.stringify(sent)}`, () =>
      Effect.gen(function* () {
        const asked = { temperature: 0.5, topP: 0.9, topK: 40, ...settings }
        const [request] = yield* requestsWith(api, { id: model }, [asked])
        assert.deepStrictEqual(fieldsOf(request?.body, "temperature", "top_p", "top_k"), sent)
      })
    )
  }

  it.effect("MD-50: one client serves a model, whatever the settings of its requests", () =>
    Effect.gen(function* () {
      let made = 0
      const model = () =>
        Effect.zipLeft(
          OfflineModel.make,
          Effect.sync(() => (made += 1))
        )
      const resolver = yield* Models.make({ providers: { acme: { api: "language-model", model } } })
      for (let n = 1; n <= 200; n++) yield* resolver.resolve({ providerID: "acme", id: "m1" }, { maxOutputTokens: n })
      assert.strictEqual(made, 1)
    })
  )

  it.effect("MD-52: OpenAI takes system messages anywhere, others at the start, and a host knows better", () =>
    Effect.gen(function* () {
      const key = { apiKey: Redacted.make("k") }
      const resolver = yield* Models.make({
        providers: {
          anthropic: { api: "anthropic", ...key },
          openai: { api: "openai", ...key },
          local: {
            api: "openai-compatible",
            baseUrl: "http://localhost:1",
            models: { wise: { systemMessages: "anywhere" } }
          }
        }
      })
      const of = (providerID: string, id: string) =>
        Effect.map(resolver.resolve({ providerID, id }), ({ info }) => info.systemMessages)
      assert.strictEqual(yield* of("openai", "gpt-6.1-terra"), "anywhere")
      assert.strictEqual(yield* of("anthropic", "claude-opus-5-5"), "leading")
      assert.strictEqual(yield* of("local", "qwen3:8b"), "leading")
      assert.strictEqual(yield* of("local", "wise"), "anywhere")
    })
  )

  it.scopedLive("MD-52: a server that takes system messages anywhere gets them where they stand", () =>
    Effect.gen(function* () {
      const server = yield* serve(hello["openai-compatible"])
      const resolver = yield* Models.make({
        providers: {
          local: { api: "openai-compatible", baseUrl: server.url, models: { wise: { systemMessages: "anywhere" } } }
        }
      })
      const { model } = yield* resolver.resolve({ providerID: "local", id: "wise" })
      yield* answer(model, {
        prompt: [
          { role: "user", content: "Hi" },
          { role: "system", content: "It is Monday." }
        ]
      })
      assert.deepStrictEqual(at(server.received[0]?.body, "messages", 1), { role: "system", content: "It is Monday." })
    })
  )

  for (const [model, expected] of [
    ["claude-opus-5-5", true],
    ["claude-fable-5-1", true],
    ["claude-haiku-5-5-20260901", true],
    ["claude-opus-5", false],
    ["claude-mythos-preview", false],
    ["claude-sonnet-4-6", false]
  ] as const) {
    it.scopedLive(`MD-57: reasoning that ${model} would refuse is ${expected ? "passed over" : "no matter"}`, () =>
      Effect.gen(function* () {
        const [plain, own] = yield* requestsWith("anthropic", { id: model }, [
          { headers: { "anthropic-beta": "context-1m-2025-08-07" } },
          { body: { thinking: { type: "adaptive" } } }
        ])
        const beta = "thinking-binding-controls-2026-08-01"
        assert.deepStrictEqual(
          at(plain?.body, "thinking"),
          expected ? { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } } : undefined
        )
        const betas = String(plain?.headers["anthropic-beta"]).split(",")
        assert.sameMembers(betas, ["context-1m-2025-08-07", ...(expected ? [beta] : [])])
        // What the settings say of thinking stands alone.
        assert.deepStrictEqual(at(own?.body, "thinking"), { type: "adaptive" })
        assert.isUndefined(own?.headers["anthropic-beta"])
      })
    )
  }
})

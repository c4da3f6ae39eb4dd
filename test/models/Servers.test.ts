/** Providers by key, by the person's configuration, and the default model. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { Catalog, Models, OfflineModel, Servers } from "@daybook/models"

type Variables = Readonly<Record<string, string>>
type Configured = Parameters<typeof Models.fromConfiguration>[0]

const options = (variables: Variables, configured: Configured = {}) =>
  Models.fromConfiguration(configured).pipe(
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))
  )

const defaultOf = (variables: Variables, configured: Configured = {}) =>
  Effect.map(options(variables, configured), ({ default: model }) => model && Catalog.formatModel(model))

/** The key of a provider, if it is configured. */
const keyOf = (variables: Variables, name: string, configured: Configured = {}) =>
  Effect.map(options(variables, configured), ({ providers }) => {
    const provider = providers[name]
    return provider !== undefined && "apiKey" in provider && provider.apiKey !== undefined
      ? Redacted.value(provider.apiKey)
      : undefined
  })

const lab = { api: "openai-compatible", baseUrl: "http://localhost:1/v1" } as const

describe("keys", () => {
  it.effect.each(Servers.servers)(
    "MD-36: each key of $provider makes it a provider, and its model the default",
    (server) =>
      Effect.forEach(server.keys, (variable) =>
        Effect.gen(function* () {
          const { default: model, providers } = yield* options({ [variable]: "k-1" })
          assert.deepStrictEqual(Object.keys(providers), [server.provider])
          assert.strictEqual(yield* keyOf({ [variable]: "k-1" }, server.provider), "k-1")
          assert.deepStrictEqual<unknown>(model, { providerID: server.provider, id: server.model })
        })
      )
  )

  it.effect("MD-36: the usual variables are those that people know", () =>
    Effect.forEach(
      [
        ["DEEPSEEK_API_KEY", "deepseek"],
        ["GEMINI_API_KEY", "google"],
        ["GOOGLE_API_KEY", "google"],
        ["MISTRAL_API_KEY", "mistral"],
        ["OPENROUTER_API_KEY", "openrouter"],
        ["GROQ_API_KEY", "groq"],
        ["XAI_API_KEY", "xai"],
        ["MOONSHOT_API_KEY", "moonshot"],
        ["ZAI_API_KEY", "zai"],
        ["MINIMAX_API_KEY", "minimax"],
        ["DASHSCOPE_API_KEY", "dashscope"],
        ["TOGETHER_API_KEY", "together"],
        ["FIREWORKS_API_KEY", "fireworks"],
        ["CEREBRAS_API_KEY", "cerebras"],
        ["HF_TOKEN", "huggingface"]
      ] as const,
      ([variable, provider]) =>
        Effect.map(keyOf({ [variable]: "k" }, provider), (key) => assert.strictEqual(key, "k", variable))
    )
  )

  it.effect("MD-37: of several keys the first server's is the default, and DAYBOOK_MODEL is above all", () =>
    Effect.gen(function* () {
      const keys = { HF_TOKEN: "h", OPENAI_API_KEY: "o", MISTRAL_API_KEY: "m", DEEPSEEK_API_KEY: "d" }
      assert.match((yield* defaultOf({ ...keys, ANTHROPIC_API_KEY: "a" })) ?? "", /^anthropic\//)
      assert.match((yield* defaultOf(keys)) ?? "", /^openai\//)
      assert.match((yield* defaultOf({ ...keys, OPENAI_API_KEY: " " })) ?? "", /^deepseek\//)
      assert.match((yield* defaultOf({ HF_TOKEN: "h", MISTRAL_API_KEY: "m" })) ?? "", /^mistral\//)
      assert.strictEqual(yield* defaultOf({ ...keys, DAYBOOK_MODEL: "groq/x" }), "groq/x")
    })
  )

  it.effect("MD-724, MD-70: space around a key is dropped, an empty one is absent", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* keyOf({ XAI_API_KEY: " k-1\n" }, "xai"), "k-1")
      assert.strictEqual(yield* keyOf({ GEMINI_API_KEY: "  ", GOOGLE_API_KEY: "g" }, "google"), "g")
      assert.strictEqual(yield* defaultOf({ XAI_API_KEY: "", HF_TOKEN: "\n" }), Catalog.formatModel(OfflineModel.ref))
    })
  )

  it.effect.each(["two words", "sécret", "a\u0000b"])("MD-724: the key %j is rejected by name, and not shown", (key) =>
    Effect.gen(function* () {
      const error = String(yield* Effect.flip(options({ DEEPSEEK_API_KEY: key })))
      assert.include(error, "DEEPSEEK_API_KEY")
      assert.notInclude(error, key)
    })
  )

  it.effect("MD-38: a provider without its key names the variable", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make(yield* options({ XAI_API_KEY: "k" }))
      const error = yield* Effect.flip(resolver.resolve({ providerID: "google", id: "gemini-3.8-flash" }))
      assert.include(error.message, "set GEMINI_API_KEY or GOOGLE_API_KEY")
    })
  )

  it.effect("MD-3: a model of a provider by key has the catalogue's window, price and media", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make(yield* options({ DEEPSEEK_API_KEY: "k" }))
      const { info } = yield* resolver.resolve(undefined)
      assert.strictEqual(info.contextTokens, 1_000_000)
      assert.isAbove(info.price?.input ?? 0, 0)
      assert.deepStrictEqual(info.media, [])
      assert.notProperty(info, "thinks")
    })
  )
})

describe("configured providers", () => {
  it.effect("MD-725: a new one is added, with its own key and headers", () =>
    Effect.gen(function* () {
      const headers = { "x-team": Redacted.make("red") }
      const { providers } = yield* options({}, { lab: { ...lab, apiKey: Redacted.make("k"), headers } })
      const { lab: made } = providers
      assert.deepInclude(made, { ...lab, headers: { "x-team": "red" } })
      assert.strictEqual(yield* keyOf({}, "lab", { lab: { ...lab, apiKey: Redacted.make("k") } }), "k")
    })
  )

  it.effect("MD-725: a known one changes by field, and keeps the key of its variable", () =>
    Effect.gen(function* () {
      const moonshot = { baseUrl: "https://api.moonshot.cn/v1" }
      const { providers } = yield* options({ MOONSHOT_API_KEY: "m" }, { moonshot })
      assert.deepInclude(providers["moonshot"], { api: "openai-compatible", ...moonshot })
      assert.strictEqual(yield* keyOf({ MOONSHOT_API_KEY: "m" }, "moonshot", { moonshot }), "m")
      const own = yield* keyOf({ MOONSHOT_API_KEY: "m" }, "moonshot", { moonshot: { apiKey: Redacted.make("c") } })
      assert.strictEqual(own, "c")
    })
  )

  it.effect("MD-725: a known one with a key needs no address", () =>
    Effect.gen(function* () {
      const found = yield* options({}, { moonshot: { apiKey: Redacted.make("c") } })
      assert.deepInclude(found.providers["moonshot"], { baseUrl: "https://api.moonshot.ai/v1" })
      assert.deepStrictEqual<unknown>(found.default, { providerID: "moonshot", id: "kimi-k3.1-pro" })
    })
  )

  it.effect("MD-725: facts about a model of a known provider alone do not make it usable", () =>
    Effect.gen(function* () {
      const configured = { xai: { models: { "grok-4.7": { contextTokens: 9_000 } } } }
      assert.deepStrictEqual((yield* options({}, configured)).providers, {})
      const resolver = yield* Models.make(yield* options({ XAI_API_KEY: "k" }, configured))
      assert.strictEqual((yield* resolver.resolve({ providerID: "xai", id: "grok-4.7" })).info.contextTokens, 9_000)
    })
  )

  it.effect("MD-725: a variable that is not set makes one provider unusable, and is named", () =>
    Effect.gen(function* () {
      const configured = { lab: { ...lab, missing: ["LAB_KEY"] }, xai: { missing: ["MY_XAI"] } }
      const found = yield* options({ DEEPSEEK_API_KEY: "d", XAI_API_KEY: "x" }, configured)
      assert.deepStrictEqual(Object.keys(found.providers), ["deepseek"])
      const error = yield* Effect.flip((yield* Models.make(found)).resolve({ providerID: "lab", id: "m" }))
      assert.include(error.message, "set LAB_KEY, which the configuration names")
    })
  )

  it.effect("MD-37: without a key the first listed model is the default; without any there is none", () =>
    Effect.gen(function* () {
      const models = { "qwen3:8b": {}, other: {} }
      assert.strictEqual(yield* defaultOf({}, { lab: { ...lab, models } }), "lab/qwen3:8b")
      assert.isUndefined(yield* defaultOf({}, { lab }))
      assert.match((yield* defaultOf({ HF_TOKEN: "h" }, { lab: { ...lab, models } })) ?? "", /^huggingface\//)
    })
  )

  it.effect("MD-5: at an address of one's own every name is accepted", () =>
    Effect.gen(function* () {
      const proxy = { anthropic: { baseUrl: "http://127.0.0.1:1" } }
      const resolver = yield* Models.make(yield* options({ ANTHROPIC_API_KEY: "k" }, proxy))
      const { info } = yield* resolver.resolve({ providerID: "anthropic", id: "kimi-k3" })
      assert.deepInclude(info, { name: "kimi-k3", contextTokens: 0 })
      const usual = yield* Models.make(yield* options({ ANTHROPIC_API_KEY: "k" }))
      const error = yield* Effect.flip(usual.resolve({ providerID: "anthropic", id: "kimi-k3" }))
      assert.strictEqual(error._tag, "ModelNotFound")
    })
  )

  it.effect("MD-39: keys and headers do not show in what is configured", () =>
    Effect.gen(function* () {
      const found = yield* options({ XAI_API_KEY: "secret-x" }, { lab: { ...lab, apiKey: Redacted.make("secret-l") } })
      assert.notMatch(JSON.stringify(found), /secret-/)
    })
  )
})

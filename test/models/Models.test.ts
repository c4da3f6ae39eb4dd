import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Either, Redacted } from "effect"
import { Catalog, Models, OfflineModel, Policy, Servers } from "@daybook/models"
import { ModelResolver } from "../../packages/core/src/model/ModelResolver.ts"
import { answer, textOf } from "./support/Client.ts"

const environment = (variables: Record<string, string>) =>
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))
const resolveIn = (variables: Record<string, string>, model?: string) =>
  Effect.flatMap(ModelResolver, (resolver) =>
    resolver.resolve(model === undefined ? undefined : Either.getOrThrow(Catalog.parseModel(model)))
  ).pipe(Effect.provide(Models.layer), environment(variables))

const standard = (provider: string) => Servers.serverOf(provider)?.model ?? ""

describe("Catalog", () => {
  for (const [text, ref] of [
    ["anthropic/claude-opus-5-5", { providerID: "anthropic", id: "claude-opus-5-5" }],
    ["anthropic/claude-opus-5-5:high", { providerID: "anthropic", id: "claude-opus-5-5", variant: "high" }],
    ["openai-compatible/qwen/qwen3:8b", { providerID: "openai-compatible", id: "qwen/qwen3:8b" }],
    ["openai/ft:gpt-4.1:acme::1", { providerID: "openai", id: "ft:gpt-4.1:acme::1" }],
    [" offline/scribe ", { providerID: "offline", id: "scribe" }]
  ] as const) {
    it(`MD-1: "${text}" is read, and written again`, () => {
      const read = Either.getOrThrow(Catalog.parseModel(text))
      assert.deepStrictEqual<unknown>(read, ref)
      assert.strictEqual(Catalog.formatModel(read), text.trim())
    })
  }

  for (const [text, reason] of [
    ["", /empty/],
    ["claude-opus-5-5", /it has no slash/],
    ["anthropic/", /model's name is missing/],
    ["/gpt", /provider's name/],
    ["openai/gpt-6:", /variant after the colon/],
    ["openai/gpt 6", /space/],
    [`openai/${"x".repeat(400)}`, /longer/]
  ] as const) {
    it(`MD-2: "${text.slice(0, 20)}" is refused with a reason and an example`, () => {
      const error = Either.getOrThrow(Either.flip(Catalog.parseModel(text)))
      assert.match(error.message, reason)
      assert.match(error.message, /provider\/model, for example anthropic\//)
      assert.isBelow(error.message.length, 500)
    })
  }
})

describe("Models", () => {
  const all = { ANTHROPIC_API_KEY: "a-key", OPENAI_API_KEY: "o-key", DAYBOOK_BASE_URL: "http://localhost:1/v1" }

  for (const [name, variables, expected] of [
    ["no key", {}, "offline/scribe"],
    ["empty keys", { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: " " }, "offline/scribe"],
    ["a key of Anthropic", { ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" }, `anthropic/${standard("anthropic")}`],
    ["a key of OpenAI", { OPENAI_API_KEY: "k" }, `openai/${standard("openai")}`],
    ["DAYBOOK_MODEL", { ...all, DAYBOOK_MODEL: "openai-compatible/qwen3:8b" }, "openai-compatible/qwen3:8b"]
  ] as const) {
    it.effect(`MD-37: the default with ${name} is ${expected}`, () =>
      Effect.gen(function* () {
        const resolved = yield* resolveIn(variables)
        assert.strictEqual(Catalog.formatModel(resolved.info.ref), expected)
        assert.strictEqual(OfflineModel.isOffline(resolved.info.ref), expected === "offline/scribe")
      })
    )
  }

  it.effect("MD-37: a server of one's own has no default, and the error says what to set", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolveIn({ DAYBOOK_BASE_URL: "http://localhost:1/v1" }))
      assert.strictEqual(error._tag, "ModelNotSelected")
      assert.match(error.message, /DAYBOOK_MODEL/)
    })
  )

  for (const [model, variable] of [
    ["anthropic/claude-opus-5-5", "ANTHROPIC_API_KEY"],
    ["openai/gpt-6.1-sol", "OPENAI_API_KEY"],
    ["openai-compatible/x", "DAYBOOK_BASE_URL"]
  ] as const) {
    it.effect(`MD-38: ${model} without its configuration names ${variable}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(resolveIn({}, model))
        assert.strictEqual(error._tag, "ProviderNotFound")
        assert.include(error.message, variable)
      })
    )
  }

  it.effect("MD-38: an unknown provider, model and variant say what is known", () =>
    Effect.gen(function* () {
      const provider = yield* Effect.flip(resolveIn(all, "acme/m1"))
      assert.strictEqual(provider._tag, "ProviderNotFound")
      assert.match(provider.message, /known: .*anthropic.*offline/)
      const none = yield* Effect.flip(resolveIn({}, "opnai/gpt-6"))
      assert.match(none.message, /known: offline; with a key: anthropic, openai, /)
      const model = yield* Effect.flip(resolveIn(all, "anthropic/gpt-6"))
      assert.strictEqual(model._tag, "ModelNotFound")
      assert.include(model.message, "claude-opus-5-5")
      const variant = yield* Effect.flip(resolveIn(all, "anthropic/claude-opus-5-5:highest"))
      assert.strictEqual(variant._tag, "VariantUnavailable")
      assert.match(variant.message, /low, medium, high/)
      const offline = yield* Effect.flip(resolveIn({}, "offline/poet"))
      assert.strictEqual(offline._tag, "ModelNotFound")
    })
  )

  it.effect("MD-38: a provider named after a member of every object is unknown like any other", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(resolveIn(all, "constructor/x"))
      assert.strictEqual(error._tag, "ProviderNotFound")
    })
  )

  for (const [variable, value] of [
    ["DAYBOOK_MODEL", "claude"],
    ["DAYBOOK_BASE_URL", "localhost:11434"],
    ["DAYBOOK_MODEL_RETRIES", "many"],
    ["DAYBOOK_MODEL_TIMEOUT", "soon"]
  ] as const) {
    it.effect(`MD-70, MD-36: ${variable}=${value} is refused by name`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(resolveIn({ [variable]: value }))
        assert.include(String(error), variable)
      })
    )
  }

  it.effect("MD-64, MD-36: OpenAI's key goes to OpenAI's address only", () =>
    Effect.gen(function* () {
      const keyOf = (variables: Record<string, string>) =>
        Effect.map(environment(variables)(Models.fromEnvironment), ({ providers }) => {
          const provider = providers["openai-compatible"]
          return provider?.api === "openai-compatible" && provider.apiKey !== undefined
            ? Redacted.value(provider.apiKey)
            : undefined
        })
      assert.isUndefined(yield* keyOf(all))
      assert.strictEqual(yield* keyOf({ ...all, DAYBOOK_API_KEY: "d-key" }), "d-key")
      assert.strictEqual(yield* keyOf({ OPENAI_API_KEY: "o-key", OPENAI_BASE_URL: "http://localhost:1/v1" }), "o-key")
    })
  )

  it.effect("MD-39: keys do not show in the options", () =>
    Effect.gen(function* () {
      const options = yield* environment(all)(Models.fromEnvironment)
      assert.notMatch(JSON.stringify(options), /a-key|o-key/)
    })
  )

  it.effect("MD-8: policies come from the host, the provider and the model, the nearest wins, false turns off", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make({
        policy: { timeout: "1 minute", inactivity: "10 seconds" },
        providers: {
          local: {
            api: "openai-compatible",
            baseUrl: "http://localhost:1",
            policy: { inactivity: false, retry: { times: 5 } },
            models: { slow: { contextTokens: 4096, policy: { timeout: "5 minutes", retry: false } } }
          }
        }
      })
      const fast = yield* resolver.resolve({ providerID: "local", id: "fast" })
      assert.deepStrictEqual(fast.policy, {
        timeout: Duration.minutes(1),
        retry: { times: 5, baseDelay: Duration.seconds(1), maxDelay: Duration.seconds(30) }
      })
      assert.deepInclude(fast.info, { name: "fast", contextTokens: 0, outputTokens: 0 })
      const slow = yield* resolver.resolve({ providerID: "local", id: "slow" })
      assert.deepStrictEqual(slow.policy, { timeout: Duration.minutes(5) })
      assert.strictEqual(slow.info.contextTokens, 4096)
    })
  )

  it.effect("MD-8: by default a failed request is repeated twice, and time has no limit", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* resolveIn(all)).policy, Policy.standard)
      const tuned = yield* resolveIn({ ...all, DAYBOOK_MODEL_RETRIES: "0", DAYBOOK_MODEL_INACTIVITY: "90 seconds" })
      assert.deepStrictEqual(tuned.policy, { inactivity: Duration.seconds(90) })
      assert.deepStrictEqual((yield* resolveIn({})).policy, {})
    })
  )

  it.effect("MD-7: a host's own model is resolved under the name that the host gave it", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make({
        providers: { acme: { api: "language-model", model: () => OfflineModel.make } },
        default: { providerID: "acme", id: "m1" }
      })
      const resolved = yield* resolver.resolve(undefined)
      assert.deepStrictEqual<unknown>(resolved.info.ref, { providerID: "acme", id: "m1" })
      assert.include(textOf(yield* answer(resolved.model, { prompt: "Hi" })), "not a language model")
    })
  )

  it.effect("MD-9: one client serves a model, however often it is resolved", () =>
    Effect.gen(function* () {
      let made = 0
      const resolver = yield* Models.make({
        providers: {
          acme: {
            api: "language-model",
            model: () =>
              Effect.zipRight(
                Effect.sync(() => made++),
                OfflineModel.make
              )
          }
        }
      })
      yield* resolver.resolve({ providerID: "acme", id: "m1" })
      yield* resolver.resolve({ providerID: "acme", id: "m1", variant: "default" })
      assert.strictEqual(made, 1)
    })
  )

  it.effect("MD-6: a model has the catalogue's facts, the host's over them, and no price that nobody knows", () =>
    Effect.gen(function* () {
      const price = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 }
      const resolver = yield* Models.make({
        providers: {
          anthropic: {
            api: "anthropic",
            apiKey: Redacted.make("k"),
            models: { "claude-opus-5-5": { contextTokens: 500_000, price }, "in-house": { name: "In-house" } }
          }
        }
      })
      const infoOf = (id: string) =>
        Effect.map(resolver.resolve({ providerID: "anthropic", id }), (resolved) => resolved.info)
      assert.deepInclude(yield* infoOf("claude-opus-5-5"), {
        name: "Claude Opus 5.5",
        contextTokens: 500_000,
        outputTokens: 64_000,
        price
      })
      assert.isUndefined((yield* infoOf("in-house")).price)
      assert.isUndefined((yield* infoOf("claude-next-9")).price)
    })
  )

  it.effect("MD-40: the offline model is there beside every other", () =>
    Effect.gen(function* () {
      const resolved = yield* resolveIn(all, "offline/scribe")
      assert.isTrue(OfflineModel.isOffline(resolved.info.ref))
      assert.include(OfflineModel.notice, "not a language model")
    })
  )

  it.effect("MD-38: a protocol that this build lacks is named", () =>
    Effect.gen(function* () {
      const resolver = yield* Models.make({ providers: { acme: JSON.parse('{"api":"smoke-signals"}') } })
      const error = yield* Effect.flip(resolver.resolve({ providerID: "acme", id: "m1" }))
      assert.strictEqual(error._tag, "UnsupportedApi")
      assert.include(error.message, "smoke-signals")
    })
  )
})

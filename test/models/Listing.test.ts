/** Lists of models and windows, as the servers state them. Each is a real HTTP server with that server's answers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, TestClock } from "effect"
import { Listing, Models } from "@daybook/models"
import { profileOf } from "../../packages/models/src/Profiles.ts"
import { type Asked, type Origin, origin } from "../http/support/Origins.ts"

type Paths = Readonly<Record<string, unknown>>

/** A server that answers GET and POST by path with JSON, and everything else with 404. */
const serving = (paths: Paths | ((request: Asked) => unknown)) =>
  origin((request, response) => {
    const found = typeof paths === "function" ? paths(request) : paths[request.path]
    if (found === undefined) return void response.writeHead(404).end("{}")
    response.setHeader("content-type", "application/json")
    response.end(typeof found === "string" ? found : JSON.stringify(found))
  })

const rules = (listing: Listing.Target["profile"]["listing"] = "models"): Listing.Target["profile"] => ({
  ...profileOf({ providerID: "openai-compatible", api: "openai-compatible", model: "" }),
  listing
})

const contextOf = (server: Origin, model: string, profile = rules()) =>
  Listing.contextOf({ profile, baseUrl: `${server.url}/v1`, key: undefined, headers: undefined }, model)

const listOf = (server: Origin, more: Partial<Listing.Target> = {}) =>
  Listing.list({
    profile: rules(),
    baseUrl: `${server.url}/v1`,
    key: undefined,
    headers: undefined,
    fetch: globalThis.fetch,
    ...more
  })

const models = (...data: ReadonlyArray<object>) => ({ object: "list", data })

/** Ollama's answers, for a model that runs with a window or not. */
const ollama = (parameters: string, running: ReadonlyArray<object>) => (request: Asked) => {
  if (request.path === "/v1/models") return models({ id: "qwen3:8b", owned_by: "library" })
  if (request.path === "/api/ps") return { models: running }
  if (request.method !== "POST" || request.path !== "/api/show") return undefined
  const asked: unknown = JSON.parse(request.body)
  assert.deepStrictEqual(asked, { model: "qwen3:8b" })
  return { parameters, model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40_960 } }
}

describe("the window in /models", () => {
  it.scopedLive.each([
    ["vLLM", { id: "m", owned_by: "vllm", max_model_len: 32_768 }, 32_768],
    ["SGLang", { id: "m", owned_by: "sglang", max_model_len: 131_072 }, 131_072],
    ["OpenRouter", { id: "m", context_length: 200_000, top_provider: { context_length: 128_000 } }, 128_000],
    ["LM Studio", { id: "m", max_context_length: 131_072, loaded_context_length: 8_192 }, 8_192],
    ["Groq", { id: "m", context_window: 131_072 }, 131_072],
    ["Mistral", { id: "m", max_context_length: 262_144 }, 262_144],
    [
      "Copilot",
      { id: "m", capabilities: { limits: { max_context_window_tokens: 200_000, max_prompt_tokens: 128_000 } } },
      128_000
    ],
    ["Hugging Face", { id: "m", providers: [{ context_length: 131_072 }, { context_length: 40_960 }] }, 40_960],
    ["DeepInfra", { id: "m", metadata: { context_length: 163_840, pricing: { input_tokens: 1 } } }, 163_840],
    ["Novita", { id: "m", context_size: 65_536, input_token_price_per_m: 5 }, 65_536],
    ["Venice", { id: "m", model_spec: { availableContextTokens: 32_768 } }, 32_768],
    ["Poe", { id: "m", context_window: { context_length: 200_000, max_output_tokens: 8_192 } }, 200_000],
    ["TabbyAPI", { id: "m", parameters: { max_seq_len: 16_384, max_batch_size: 1 } }, 16_384],
    ["a gateway that writes texts", { id: "m", context_length: "65536" }, 65_536]
  ] as const)("MD-730: %s states it", ([, entry, window]) =>
    Effect.gen(function* () {
      const server = yield* serving({ "/v1/models": models({ id: "other", context_length: 1 }, entry) })
      assert.strictEqual(yield* contextOf(server, "m"), window)
      assert.lengthOf(server.asked, 1)
    })
  )

  it.scopedLive("MD-730: Gemini states it under its own names", () =>
    Effect.gen(function* () {
      const server = yield* serving({
        "/v1/models": { models: [{ name: "models/gemini-x", inputTokenLimit: 1_048_576 }] }
      })
      const profile = { ...rules(), api: "gemini" as const, keyHeader: "own" as const }
      const key = Redacted.make("g-key")
      const found = yield* Listing.contextOf(
        { profile, baseUrl: `${server.url}/v1`, key, headers: undefined },
        "gemini-x"
      )
      assert.strictEqual(found, 1_048_576)
      assert.strictEqual(server.asked[0]?.headers["x-goog-api-key"], "g-key")
    })
  )

  it.scopedLive("MD-731: llama.cpp's /props is believed before the window of the training", () =>
    Effect.gen(function* () {
      const list = models({ id: "m.gguf", owned_by: "llamacpp", meta: { n_ctx_train: 131_072 } })
      const server = yield* serving({ "/v1/models": list, "/props": { default_generation_settings: { n_ctx: 8_192 } } })
      assert.strictEqual(yield* contextOf(server, "m.gguf"), 8_192)
      assert.strictEqual(yield* contextOf(server, "any name"), 8_192)
      const closed = yield* serving({ "/v1/models": list })
      assert.strictEqual(yield* contextOf(closed, "m.gguf"), 131_072)
    })
  )

  it.scopedLive("MD-731: a router of llama.cpp is asked for the model, which is not loaded for that", () =>
    Effect.gen(function* () {
      const list = models({ id: "a/m", owned_by: "llamacpp" }, { id: "n", owned_by: "llamacpp" })
      const server = yield* serving({
        "/v1/models": list,
        "/props": { role: "router", default_generation_settings: { n_ctx: 0 } },
        "/props?model=a%2Fm&autoload=false": { default_generation_settings: { n_ctx: 65_536 } }
      })
      assert.strictEqual(yield* contextOf(server, "a/m"), 65_536)
    })
  )

  it.scopedLive.each([
    [
      "LM Studio",
      "/api/v0/models",
      models({ id: "m", max_context_length: 131_072, loaded_context_length: 4_096 }),
      4_096
    ],
    ["LiteLLM", "/model/info", { data: [{ model_name: "m", model_info: { max_input_tokens: 200_000 } }] }, 200_000],
    ["TGI", "/info", { model_id: "m", max_total_tokens: 16_384 }, 16_384],
    ["KoboldCpp", "/api/extra/true_max_context_length", { value: 8_192 }, 8_192]
  ] as const)("MD-731: %s states it at an address of its own", ([, path, answer, window]) =>
    Effect.gen(function* () {
      const server = yield* serving({ "/v1/models": models({ id: "m" }, { id: "n" }), [path]: answer })
      assert.strictEqual(yield* contextOf(server, "m"), window)
    })
  )

  it.scopedLive("MD-731: a server with a public address is asked for /models only", () =>
    Effect.gen(function* () {
      const server = yield* serving({ "/v1/models": models({ id: "m" }), "/info": { max_total_tokens: 5 } })
      assert.isUndefined(yield* contextOf(server, "m", { ...rules(), hosts: ["127.0.0.1"] }))
      assert.lengthOf(server.asked, 1)
      assert.strictEqual(yield* contextOf(server, "m", { ...rules(), hosts: ["api.example.com"] }), 5)
    })
  )
})

describe("Ollama", () => {
  const running = [{ model: "qwen3:8b", context_length: 4_096 }]

  it.scopedLive.each([
    ["its own num_ctx", 'stop "x"\nnum_ctx                        16384', running, 16_384],
    ["the window that is loaded", "", running, 4_096],
    ["the model's own window", "", [], 40_960]
  ] as const)("MD-732: a model has %s", ([, parameters, loaded, window]) =>
    Effect.gen(function* () {
      const server = yield* serving(ollama(parameters, loaded))
      assert.strictEqual(yield* contextOf(server, "qwen3:8b"), window)
      const listed = yield* listOf(server, { profile: rules("ollama") })
      assert.deepStrictEqual(listed, [{ id: "qwen3:8b", contextTokens: window }])
    })
  )

  it.scopedLive("MD-732: a name without a tag is the latest", () =>
    Effect.gen(function* () {
      const server = yield* serving(({ path }) =>
        path === "/v1/models"
          ? models({ id: "a:latest", owned_by: "library" }, { id: "b:1", owned_by: "library" })
          : path === "/api/show"
            ? { parameters: "num_ctx 5000" }
            : undefined
      )
      assert.strictEqual(yield* contextOf(server, "a"), 5_000)
      assert.isUndefined(yield* contextOf(server, "b"))
    })
  )
})

describe("tolerance", () => {
  it.scopedLive.each([
    ["an error", undefined],
    ["no JSON", "<html>"],
    ["no list", { data: 5 }],
    ["a list of other things", { data: [7, null, "m", { id: 3 }, { id: "" }, { id: "m", context_length: -1 }] }],
    ["a window that is none", models({ id: "m", context_length: 1.5, max_model_len: "many", meta: "x" })]
  ] as const)("MD-733: %s gives no window, and no failure", ([, answer]) =>
    Effect.gen(function* () {
      const server = yield* serving({ "/v1/models": answer })
      assert.isUndefined(yield* contextOf(server, "m"))
    })
  )

  it.scopedLive("MD-733: a list is read for what is usable in it, and errors are one line without the key", () =>
    Effect.gen(function* () {
      const odd = yield* serving({ "/v1/models": { data: [7, { id: "m", context_length: 9_000 }, { name: "n" }] } })
      assert.deepStrictEqual(yield* listOf(odd), [{ id: "m", contextTokens: 9_000 }, { id: "n" }])
      const bare = yield* serving({ "/v1/models": [{ id: "x" }] })
      assert.deepStrictEqual(yield* listOf(bare), [{ id: "x" }])
      for (const [answer, why] of [
        [undefined, /^127\.0\.0\.1:\d+\/v1\/models answered HTTP 404$/],
        ["nonsense", /^127\.0\.0\.1:\d+ does not list its models as chat completions servers do$/],
        ["x".repeat(5_000_000), /^the model list of \S+ exceeds 4 MiB$/]
      ] as const) {
        const server = yield* serving({ "/v1/models": answer })
        const error = yield* Effect.flip(listOf(server, { key: Redacted.make("l-key") }))
        assert.match(error, why)
        assert.notInclude(error, "l-key")
        assert.strictEqual(server.asked[0]?.headers.authorization, "Bearer l-key")
      }
    })
  )

  it.scoped("MD-733, MD-734: a server that does not answer is waited for, briefly", () =>
    Effect.gen(function* () {
      const arrived = yield* Effect.makeLatch()
      // The second request gets headers and a blank, and then nothing either.
      let asked = 0
      const server = yield* origin((_, response) => {
        if (asked++ > 0) response.write(" ")
        Effect.runSync(arrived.open)
      })
      const window = yield* Effect.fork(contextOf(server, "m"))
      yield* arrived.await
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(yield* window)
      yield* arrived.close
      const list = yield* Effect.fork(Effect.flip(listOf(server)))
      yield* arrived.await
      yield* TestClock.adjust("5 seconds")
      assert.match(yield* list, /gave no answer in 5 seconds$/)
    })
  )
})

describe("Models", () => {
  const provider = ({ url }: Origin) => ({ api: "openai-compatible" as const, baseUrl: `${url}/v1` })

  it.scoped("MD-734: the window of one's own server is asked for once, and again later if it was unknown", () =>
    Effect.gen(function* () {
      const state = { window: 0 }
      const server = yield* serving(() => models({ id: "m", max_model_len: state.window }))
      const resolver = yield* Models.make({ providers: { lab: { ...provider(server), models: {} } } })
      const window = Effect.map(resolver.resolve({ providerID: "lab", id: "m" }), ({ info }) => info.contextTokens)
      assert.strictEqual(yield* window, 0)
      const asked = server.asked.length
      state.window = 32_768
      assert.strictEqual(yield* window, 0)
      assert.lengthOf(server.asked, asked)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual(yield* window, 32_768)
      state.window = 5
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* window, 32_768)
    })
  )

  it.scopedLive("MD-734: a window of the host or of the catalogue needs no request", () =>
    Effect.gen(function* () {
      const server = yield* serving({})
      const resolver = yield* Models.make({
        providers: {
          lab: { ...provider(server), models: { m: { contextTokens: 5_000 } } },
          deepseek: provider(server)
        }
      })
      const own = yield* resolver.resolve({ providerID: "lab", id: "m" })
      const known = yield* resolver.resolve({ providerID: "deepseek", id: "deepseek-v4-pro" })
      assert.deepStrictEqual([own.info.contextTokens, known.info.contextTokens], [5_000, 1_000_000])
      assert.lengthOf(server.asked, 0)
    })
  )
})

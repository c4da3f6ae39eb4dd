import {
  APICallError,
  type LanguageModelV3,
  type LanguageModelV3CallOptions,
  type LanguageModelV3StreamPart
} from "@ai-sdk/provider"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { AiSdkLanguageModel } from "@daybook/models"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { answer, at, only, secret, tool } from "./support/Client.ts"

const usage = {
  inputTokens: { total: 10, noCache: 4, cacheRead: 5, cacheWrite: 1 },
  outputTokens: { total: 7, text: 4, reasoning: 3 }
}
const finish: LanguageModelV3StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage,
  providerMetadata: { acme: { region: "x" } }
}

/** A provider of someone else's, by the published interface: it keeps what it was asked and streams what it was given. */
const provider = (respond: () => ReadonlyArray<LanguageModelV3StreamPart>) => {
  const asked: Array<LanguageModelV3CallOptions> = []
  const model: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "acme.chat",
    modelId: "m1",
    supportedUrls: {},
    doGenerate: async (options) => {
      asked.push(options)
      respond()
      return {
        content: [
          { type: "reasoning", text: "Hm." },
          { type: "text", text: '{"n":1}' }
        ],
        finishReason: { unified: "stop", raw: "stop" },
        usage,
        warnings: []
      }
    },
    doStream: async (options) => {
      asked.push(options)
      const parts = respond()
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const part of parts) controller.enqueue(part)
            controller.close()
          }
        })
      }
    }
  }
  return { model, asked }
}

const searchTool = Tool.providerDefined({
  id: "acme.search",
  toolkitName: "AcmeSearch",
  providerName: "search",
  args: { depth: Schema.Number },
  success: Schema.String,
  failure: Schema.String
})({ depth: 2 })

describe("the AI SDK bridge", () => {
  it.effect("MD-27: provider metadata comes with its part, and goes back with it", () =>
    Effect.gen(function* () {
      const { asked, model } = provider(() => [
        { type: "stream-start", warnings: [] },
        { type: "response-metadata", id: "r1", modelId: "m1-2026", timestamp: new Date(0) },
        { type: "reasoning-start", id: "1", providerMetadata: { acme: { a: 1 } } },
        { type: "reasoning-delta", id: "1", delta: "Hm.", providerMetadata: { acme: { b: 2 } } },
        { type: "reasoning-end", id: "1", providerMetadata: { acme: { c: 3 } } },
        { type: "tool-input-start", id: "c1", toolName: "read" },
        { type: "tool-input-delta", id: "c1", delta: '{"path":"a"}' },
        { type: "tool-input-end", id: "c1" },
        {
          type: "tool-call",
          toolCallId: "c1",
          toolName: "read",
          input: '{"path":"a"}',
          providerMetadata: { acme: { sig: "S" } }
        },
        { type: "file", mediaType: "image/png", data: new Uint8Array([0, 1, 2]) },
        { type: "source", sourceType: "url", id: "s1", url: "https://a.example" },
        finish
      ])
      const service = yield* AiSdkLanguageModel.make({ model, settings: { temperature: 0.5 } })
      const tools = [tool("read")]
      const parts = yield* answer(service, { prompt: "go", tools })
      assert.deepStrictEqual(only(parts, "reasoning-end")[0]?.metadata, { acme: { a: 1, b: 2, c: 3 } })
      assert.deepStrictEqual(only(parts, "tool-call")[0]?.metadata, { acme: { sig: "S" } })
      assert.deepStrictEqual(Array.from(only(parts, "file")[0]?.data ?? []), [0, 1, 2])
      assert.strictEqual(at(only(parts, "source")[0], "title"), "https://a.example")
      const [end] = only(parts, "finish")
      assert.deepInclude(end?.usage, {
        inputTokens: 10,
        outputTokens: 7,
        totalTokens: 17,
        reasoningTokens: 3,
        cachedInputTokens: 5
      })
      assert.deepStrictEqual(end?.metadata, { acme: { region: "x" }, daybook: { cacheWriteTokens: 1 } })
      yield* answer(service, {
        tools,
        prompt: [
          { role: "user", content: "go", options: { acme: { cache: true } } },
          {
            role: "assistant",
            content: [{ type: "tool-call", id: "c1", name: "read", params: {}, options: { acme: { sig: "S" } } }]
          }
        ]
      })
      assert.strictEqual(asked[0]?.temperature, 0.5)
      assert.deepStrictEqual(at(asked[1]?.prompt, 0, "providerOptions"), { acme: { cache: true } })
      assert.deepStrictEqual(at(asked[1]?.prompt, 1, "content", 0, "providerOptions"), { acme: { sig: "S" } })
    })
  )

  it.effect(
    "MD-28: a hosted tool is offered by its provider's name, and its call and result come under the toolkit's",
    () =>
      Effect.gen(function* () {
        const { asked, model } = provider(() => [
          { type: "tool-input-start", id: "c1", toolName: "search", providerExecuted: true },
          { type: "tool-call", toolCallId: "c1", toolName: "search", input: '{"q":"x"}', providerExecuted: true },
          { type: "tool-result", toolCallId: "c1", toolName: "search", result: { hits: 0 }, preliminary: true },
          { type: "tool-result", toolCallId: "c1", toolName: "search", result: { hits: 3 } },
          finish
        ])
        const service = yield* AiSdkLanguageModel.make({ model })
        const parts = yield* answer(service, { prompt: "go", tools: [searchTool] })
        assert.deepStrictEqual(asked[0]?.tools, [
          { type: "provider", id: "acme.search", name: "search", args: { depth: 2 } }
        ])
        const [call] = only(parts, "tool-call")
        assert.deepStrictEqual<unknown>(
          [call?.name, call?.params, call?.providerExecuted],
          ["AcmeSearch", { q: "x" }, true]
        )
        const results = only(parts, "tool-result")
        assert.deepStrictEqual<unknown>(
          results.map((part) => [part.name, part.encodedResult, part.providerExecuted]),
          [["AcmeSearch", { hits: 3 }, true]]
        )
      })
  )

  it.effect("MD-13: a hosted call without its end stays hosted", () =>
    Effect.gen(function* () {
      const { model } = provider(() => [
        { type: "tool-input-start", id: "c1", toolName: "search", providerExecuted: true },
        finish
      ])
      const service = yield* AiSdkLanguageModel.make({ model })
      const parts = yield* answer(service, { prompt: "go", tools: [searchTool] })
      assert.deepStrictEqual(
        only(parts, "tool-call").map((part) => part.providerExecuted),
        [true]
      )
      assert.strictEqual(only(parts, "finish")[0]?.reason, "stop")
    })
  )

  const thrown = [
    [
      "a status",
      () =>
        new APICallError({
          message: "no",
          url: "https://u:p@a.example/v1?key=k",
          requestBodyValues: {},
          statusCode: 503,
          responseHeaders: { "retry-after": "2" },
          responseBody: `{"error":{"message":"busy ${secret}"}}`
        }),
      "HttpResponseError",
      { retryable: true, statusCode: 503, retryAfterMs: 2000, message: "a.example answered HTTP 503: busy <redacted>" }
    ],
    [
      "no status",
      () =>
        new APICallError({ message: `Cannot connect ${secret}`, url: "https://a.example/v1", requestBodyValues: {} }),
      "HttpRequestError",
      { retryable: true }
    ],
    ["anything else", () => new Error(`broken ${secret}`), "UnknownError", { retryable: false }]
  ] as const
  for (const [name, make, tag, expected] of thrown) {
    it.effect(`MD-29: a failure with ${name} becomes an AiError, and leaves the key behind`, () =>
      Effect.gen(function* () {
        const { model } = provider(() => {
          throw make()
        })
        const service = yield* AiSdkLanguageModel.make({ model, secrets: [Redacted.make(secret)] })
        const error = yield* Effect.flip(answer(service, { prompt: "go" }))
        assert.strictEqual(error._tag, tag)
        assert.deepInclude(classifyError(error), expected)
        assert.notMatch(`${error.message} ${JSON.stringify(error)} ${String(error)}`, new RegExp(`${secret}|u:p|key=k`))
        const whole = yield* Effect.flip(service.generateText({ prompt: "go" }))
        assert.strictEqual(whole._tag, tag)
      })
    )
  }

  it.effect("MD-19: a defect of a library is an error and not a defect", () =>
    Effect.gen(function* () {
      const { model } = provider(() => [finish])
      // A library that breaks its own interface.
      const broken: LanguageModelV3 = { ...model, doStream: async () => ({ stream: JSON.parse("null") }) }
      const service = yield* AiSdkLanguageModel.make({ model: broken })
      const error = yield* Effect.flip(answer(service, { prompt: "go" }))
      assert.strictEqual(error._tag, "UnknownError")
      assert.match(error.message, /library failed/)
    })
  )

  it.effect("MD-28: whole answers and objects work too", () =>
    Effect.gen(function* () {
      const { asked, model } = provider(() => [])
      const service = yield* AiSdkLanguageModel.make({ model })
      assert.strictEqual((yield* service.generateText({ prompt: "go" })).text, '{"n":1}')
      const object = yield* service.generateObject({ prompt: "go", schema: Schema.Struct({ n: Schema.Number }) })
      assert.deepStrictEqual(object.value, { n: 1 })
      assert.strictEqual(at(asked[1]?.responseFormat, "schema", "type"), "object")
    })
  )
})

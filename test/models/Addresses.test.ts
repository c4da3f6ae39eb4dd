/** Addresses and keys as people paste them, and what of a key an error shows. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Redacted } from "effect"
import { Models } from "@daybook/models"
import { baseOf } from "../../packages/models/src/wire/Protocol.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { type Api, profileOf } from "../../packages/models/src/Profiles.ts"
import { hello } from "./support/Answers.ts"
import { answer, textOf } from "./support/Client.ts"
import { refusal, serve, type Reply } from "./support/Server.ts"

const paths: ReadonlyArray<readonly [Api, string, string]> = [
  ["openai-compatible", "", "/chat/completions"],
  ["openai-compatible", "/v1", "/v1/chat/completions"],
  ["openai-compatible", "/v1/", "/v1/chat/completions"],
  ["openai-compatible", "/v1//", "/v1/chat/completions"],
  ["openai-compatible", "/v1/chat/completions", "/v1/chat/completions"],
  ["openai-compatible", "/v1/chat/completions/", "/v1/chat/completions"],
  ["openai-compatible", "/v1/models", "/v1/chat/completions"],
  ["openai-compatible", "/api/paas/v4", "/api/paas/v4/chat/completions"],
  ["openai-compatible", "/v1 \n", "/v1/chat/completions"],
  ["openai-compatible", "/openai/v1?api-version=preview", "/openai/v1/chat/completions?api-version=preview"],
  ["openai-compatible", "/v1#part", "/v1/chat/completions"],
  ["openai", "/v1/responses", "/v1/responses"],
  ["openai", "", "/v1/responses"],
  ["anthropic", "", "/v1/messages"],
  ["anthropic", "/", "/v1/messages"],
  ["anthropic", "/v1", "/v1/messages"],
  ["anthropic", "/v1/messages", "/v1/messages"],
  ["anthropic", "/anthropic", "/anthropic/v1/messages"],
  ["gemini", "", "/v1beta/models/m:streamGenerateContent?alt=sse"],
  ["gemini", "/v1beta/", "/v1beta/models/m:streamGenerateContent?alt=sse"],
  ["gemini", "/v1beta/models", "/v1beta/models/m:streamGenerateContent?alt=sse"]
]

const models = { anthropic: "claude-sonnet-4-5", openai: "gpt-5.1", "openai-compatible": "m", gemini: "m" } as const

/** A model with this key and header at a new server, and the server. */
const connected = (api: Api, path: string, key: string, header: string | undefined, ...replies: ReadonlyArray<Reply>) =>
  Effect.gen(function* () {
    const server = yield* serve(...replies)
    const headers = header === undefined ? {} : { headers: { "x-team": header } }
    const provider = { api, apiKey: Redacted.make(key), baseUrl: `${server.url}${path}`, ...headers }
    const resolver = yield* Models.make({ providers: { [api]: provider } })
    const { model } = yield* Effect.orDie(resolver.resolve({ providerID: api, id: models[api] }))
    return { model, server }
  })

describe("addresses", () => {
  for (const [api, given, path] of paths) {
    it.scopedLive(`MD-145: requests of ${api} to ${JSON.stringify(given)} go to ${path}`, () =>
      Effect.gen(function* () {
        const { model, server } = yield* connected(api, given, "sk-1", undefined, hello[api])
        assert.strictEqual(textOf(yield* answer(model, { prompt: "go" })), "Hello")
        assert.strictEqual(server.received[0]?.path, path)
      })
    )
  }

  it("MD-145: an address without a path gets the usual one of its server, if there is one", () => {
    const baseOfModel = (baseUrl: string) =>
      baseOf(profileOf({ providerID: "x", api: "openai-compatible", baseUrl, model: "m" }), baseUrl)
    assert.strictEqual(baseOfModel("http://localhost:11434/"), "http://localhost:11434/v1")
    assert.strictEqual(baseOfModel("https://api.perplexity.ai/"), "https://api.perplexity.ai")
  })
})

describe("keys", () => {
  for (const [form, key] of [
    ["a line break at its end", "sk-abc\n"],
    ["blanks around it", "  sk-abc "]
  ] as const) {
    it.scopedLive(`MD-146: a key with ${form} is sent without it`, () =>
      Effect.gen(function* () {
        const { model, server } = yield* connected(
          "openai-compatible",
          "/v1",
          key,
          undefined,
          hello["openai-compatible"]
        )
        yield* answer(model, { prompt: "go" })
        assert.strictEqual(server.received[0]?.headers.authorization, "Bearer sk-abc")
      })
    )
  }

  const key = 'zq7"w+x/y=9 é'
  const plain = "plainword-zq7wxy"
  const odd = 'zq7"w+x/y=9'
  const encoded = [
    odd,
    JSON.stringify(odd).slice(1, -1),
    encodeURIComponent(odd),
    key,
    JSON.stringify(key).slice(1, -1),
    encodeURIComponent(key),
    plain,
    encodeURIComponent(plain)
  ]
  const leaks: ReadonlyArray<readonly [string, string, Reply]> = [
    [
      "with odd characters, encoded for an address",
      odd,
      refusal(400, { error: { message: `?key=${encodeURIComponent(odd)}` } })
    ],
    [
      "with odd characters, in JSON in a text",
      odd,
      refusal(400, { error: { message: JSON.stringify({ key: odd, x: JSON.stringify([odd]) }) } })
    ],
    ["in the text of a rejection", plain, refusal(401, { error: { message: `Incorrect API key provided: ${plain}` } })],
    [
      "in JSON in a text",
      plain,
      refusal(401, { error: { message: JSON.stringify({ error: { message: `bad ${plain}` } }) } })
    ],
    ["in an address", plain, refusal(404, { message: `no route for /v1?key=${encodeURIComponent(plain)}` })],
    ["in a header", plain, { status: 429, headers: { "retry-after": "1", "x-request-id": plain }, chunks: ["no"] }],
    [
      "in an error of the stream",
      plain,
      { chunks: [`data: ${JSON.stringify({ error: { message: `bad ${plain}` } })}\n\n`] }
    ],
    ["in a body that is not JSON", plain, { status: 500, chunks: [`<title>${plain}</title>`] }],
    ["in a title with a success status", plain, { chunks: [`<html><title>${plain}</title>`] }],
    ["that HTTP does not allow", `${key}\n${plain}`, hello["openai-compatible"]]
  ]
  for (const [where, secret, reply] of leaks) {
    for (const as of ["key", "header"] as const) {
      it.scopedLive(`MD-147: a ${as} ${where} is not shown`, () =>
        Effect.gen(function* () {
          const [own, header] = as === "key" ? [secret, undefined] : ["sk-1", secret]
          const { model } = yield* connected("openai-compatible", "/v1", own, header, reply)
          const exit = yield* Effect.exit(answer(model, { prompt: "go" }))
          const error = exit._tag === "Failure" ? Cause.squash(exit.cause) : exit.value
          const pretty = exit._tag === "Failure" ? Cause.pretty(exit.cause) : ""
          const shown = [JSON.stringify(error), String(error), pretty, JSON.stringify(classifyError(error))].join("\n")
          for (const form of encoded) assert.notInclude(shown, form)
        })
      )
    }
  }
})

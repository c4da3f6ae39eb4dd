import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Models } from "@daybook/models"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { origin } from "../http/support/Origins.ts"
import { hello } from "./support/Answers.ts"
import { answer, type Api, secret, textOf } from "./support/Client.ts"

const models: Readonly<Record<Api, string>> = {
  anthropic: "claude-sonnet-4-5",
  openai: "gpt-5",
  "openai-compatible": "qwen3:8b"
}

const modelAt = Effect.fnUntraced(function* (api: Api, url: string) {
  // A known window, so that the server is not asked for it.
  const facts = { models: { [models[api]]: { contextTokens: 100_000 } } }
  const provider = { api, apiKey: Redacted.make(secret), baseUrl: api === "anthropic" ? url : `${url}/v1`, ...facts }
  const resolver = yield* Models.make({ providers: { [api]: provider } })
  return (yield* Effect.orDie(resolver.resolve({ providerID: api, id: models[api] }))).model
})

describe("a provider that redirects", () => {
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(
      `LM-1: key and prompt for ${api} do not go to another origin; the failure is final and says why`,
      () =>
        Effect.gen(function* () {
          const other = yield* origin((_, response) => void response.end())
          for (const status of [301, 302, 303, 307, 308]) {
            const own = yield* origin((_, response) => void response.writeHead(status, { location: other.url }).end())
            const error = yield* Effect.flip(answer(yield* modelAt(api, own.url), { prompt: "Hi" }))
            const { message, refused, retryable } = classifyError(error)
            assert.include(message, `${own.url} answered with a redirect to ${other.url}`)
            assert.notInclude(JSON.stringify(error), secret)
            assert.isFalse(retryable)
            assert.isTrue(refused)
            assert.lengthOf(own.asked, 1)
          }
          assert.lengthOf(other.asked, 0)
        })
    )

    it.scopedLive(`LM-2: the same request for ${api} is made again within the origin`, () =>
      Effect.gen(function* () {
        const own = yield* origin((asked, response) => {
          if (!asked.path.startsWith("/moved")) {
            return void response.writeHead(307, { location: `/moved${asked.path}` }).end()
          }
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.end(hello[api].chunks.join(""))
        })
        const parts = yield* answer(yield* modelAt(api, own.url), { prompt: "Hi" })
        assert.strictEqual(textOf(parts), "Hello")
        assert.strictEqual(own.asked[1]?.body, own.asked[0]?.body)
      })
    )
  }
})

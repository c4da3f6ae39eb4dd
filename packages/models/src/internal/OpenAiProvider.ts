/** OpenAI's Responses API through `@effect/ai-openai`. Loaded on first use only: the library is large. */
import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai"
import { Prompt } from "@effect/ai"
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { Effect, Layer, type Redacted } from "effect"
import { guard } from "./GuardedModel.ts"
import { makeOpenAiWire } from "./OpenAiWire.ts"
import { secretsOf, type Configurable } from "./Settings.ts"
import { wired } from "./WireFetch.ts"

export const make = (options: {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string | undefined
  /** Whether the model reasons, and its reasoning is to be had in a form that can be sent back. */
  readonly reasons: boolean
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<Configurable> => {
  const client = OpenAiClient.layer({
    apiKey: options.apiKey,
    // Trace ids are the host's own affair.
    transformClient: HttpClient.withTracerPropagation(false),
    ...(options.baseUrl === undefined ? {} : { apiUrl: options.baseUrl.replace(/\/$/, "") })
  })
  // Nothing is kept at the provider: the session's own log is what the next request is made from.
  const config = {
    store: false,
    strict: false,
    ...(options.reasons
      ? { include: ["reasoning.encrypted_content" as const], reasoning: { summary: "auto" as const } }
      : {})
  }
  return OpenAiLanguageModel.make({ model: options.model, config }).pipe(
    Effect.provide(Layer.provide(client, FetchHttpClient.layer)),
    Effect.map((service) => (settings) => {
      const fetch = wired(options.fetch, () => makeOpenAiWire(settings, options.reasons))
      return Effect.succeed(
        guard(service, {
          provider: "openai",
          secrets: [options.apiKey, ...secretsOf(settings)],
          lower,
          prepare: (request) => [request, fetch]
        })
      )
    })
  )
}

/**
 * Reasoning goes back only with its encrypted content: the provider keeps nothing, so an id alone is refused. A message
 * whose reasoning is incomplete (it was interrupted) loses the ids of its other parts too, which would ask for it.
 */
const lower = (prompt: Prompt.Prompt): Prompt.Prompt =>
  Prompt.fromMessages(
    prompt.content.map((message) => {
      if (message.role !== "assistant") return message
      const complete = message.content.every(
        (part) => part.type !== "reasoning" || part.options.openai?.encryptedContent !== undefined
      )
      if (complete) return message
      return {
        ...message,
        content: message.content.filter((part) => part.type !== "reasoning").map((part) => ({ ...part, options: {} }))
      }
    })
  )

/** Anthropic's Messages API through `@effect/ai-anthropic`. Loaded on first use only: the library is large. */
import { AnthropicClient, AnthropicLanguageModel } from "@effect/ai-anthropic"
import { Prompt, type LanguageModel, type Response } from "@effect/ai"
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { Effect, Layer, Predicate, type Redacted } from "effect"
import { makeAnthropicWire } from "./AnthropicWire.ts"
import { guard, systemAsUser } from "./GuardedModel.ts"
import { wired } from "./WireFetch.ts"

export const make = (options: {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string | undefined
  /** The API asks for a limit on every request. */
  readonly maxTokens: number
  readonly effort: string | undefined
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<LanguageModel.Service> => {
  const fetch = wired(options.fetch, () => makeAnthropicWire(options.effort))
  const http = FetchHttpClient.layer.pipe(Layer.provide(Layer.succeed(FetchHttpClient.Fetch, fetch)))
  const client = AnthropicClient.layer({
    apiKey: options.apiKey,
    // Trace ids are the host's own affair.
    transformClient: HttpClient.withTracerPropagation(false),
    ...(options.baseUrl === undefined ? {} : { apiUrl: options.baseUrl.replace(/\/(?:v1\/?)?$/, "") })
  })
  return AnthropicLanguageModel.make({ model: options.model, config: { max_tokens: options.maxTokens } }).pipe(
    Effect.provide(Layer.provide(client, http)),
    Effect.map((service) =>
      guard(service, { provider: "anthropic", secrets: [options.apiKey], lower, cacheOnTop: cacheOf })
    )
  )
}

const ephemeral = { anthropic: { cacheControl: { type: "ephemeral" } } } as const

/**
 * Marks the end of the system prompt and of the conversation, so that the next turn finds both in the provider's cache.
 * Reasoning without its signature cannot be sent back, and is left out by the library.
 */
const lower = (prompt: Prompt.Prompt): Prompt.Prompt => {
  const messages = systemAsUser(prompt).content
  const lastSystem = messages.findLastIndex((message) => message.role === "system")
  return Prompt.fromMessages(
    messages.map(withPlainIds).map((message, index) => {
      if (message.role === "assistant" || (index !== lastSystem && index !== messages.length - 1)) return message
      return { ...message, options: { ...message.options, ...ephemeral } }
    })
  )
}

/** A session may come from another provider, whose call ids need not be in the alphabet that this API accepts. */
const withPlainIds = (message: Prompt.Message): Prompt.Message => {
  if (message.role === "assistant") return { ...message, content: message.content.map(withPlainId) }
  return message.role === "tool" ? { ...message, content: message.content.map(withPlainId) } : message
}

const withPlainId = <P extends Prompt.AssistantMessagePart>(part: P): P =>
  part.type === "tool-call" || part.type === "tool-result"
    ? { ...part, id: part.id.replaceAll(/[^a-zA-Z0-9_-]/g, "_") }
    : part

const cacheOf = (finish: Response.FinishPart): { readonly read: number; readonly write: number } => {
  const usage = finish.metadata["anthropic"]?.["usage"]
  const written = Predicate.hasProperty(usage, "cache_creation_input_tokens") ? usage.cache_creation_input_tokens : 0
  return { read: finish.usage.cachedInputTokens ?? 0, write: Predicate.isNumber(written) ? written : 0 }
}

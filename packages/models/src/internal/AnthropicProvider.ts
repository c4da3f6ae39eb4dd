/** Anthropic's Messages API through `@effect/ai-anthropic`. Loaded on first use only: the library is large. */
import { AnthropicClient, AnthropicLanguageModel } from "@effect/ai-anthropic"
import { Prompt, type Response } from "@effect/ai"
import { FetchHttpClient, HttpClient } from "@effect/platform"
import { Effect, Layer, Predicate, type Redacted } from "effect"
import { makeAnthropicWire } from "./AnthropicWire.ts"
import { guard, systemAsUser } from "./GuardedModel.ts"
import { secretsOf, type Configurable } from "./Settings.ts"
import { wired } from "./WireFetch.ts"

export const make = (options: {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string | undefined
  /** The API asks for a limit on every request. */
  readonly maxTokens: number
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<Configurable> => {
  const client = AnthropicClient.layer({
    apiKey: options.apiKey,
    // Trace ids are the host's own affair.
    transformClient: HttpClient.withTracerPropagation(false),
    ...(options.baseUrl === undefined ? {} : { apiUrl: options.baseUrl.replace(/\/(?:v1\/?)?$/, "") })
  })
  return AnthropicLanguageModel.make({ model: options.model, config: { max_tokens: options.maxTokens } }).pipe(
    Effect.provide(Layer.provide(client, FetchHttpClient.layer)),
    Effect.map((service) => (settings) => {
      const secrets = [options.apiKey, ...secretsOf(settings)]
      return Effect.succeed(
        guard(service, {
          provider: "anthropic",
          secrets,
          lower,
          cacheOnTop: cacheOf,
          prepare: (request) => {
            // The library would leave out the tools, which history may name and the cache begins with (MD-55).
            const silent = request.toolChoice === "none"
            const wire = { model: options.model, settings, silent }
            const fetch = wired(options.fetch, () => makeAnthropicWire(wire))
            return [silent ? { ...request, toolChoice: "auto" } : request, fetch]
          }
        })
      )
    })
  )
}

/** Reasoning without its signature cannot be sent back, and is left out by the library. */
const lower = (prompt: Prompt.Prompt): Prompt.Prompt =>
  Prompt.fromMessages(systemAsUser(prompt).content.map(withPlainIds))

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

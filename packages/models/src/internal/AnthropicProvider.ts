/** Anthropic's Messages API through `@effect/ai-anthropic`. Loaded on first use: the library is large. */
import * as AnthropicClient from "@effect/ai-anthropic/AnthropicClient"
import * as AnthropicLanguageModel from "@effect/ai-anthropic/AnthropicLanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer, Predicate, type Redacted } from "effect"
import { makeAnthropicWire, shadowed } from "./AnthropicWire.ts"
import { guard } from "./GuardedModel.ts"
import { type Configurable, secretsOf } from "./Settings.ts"
import { wired } from "./WireFetch.ts"
import { hostedAsText, mapAnswers, systemAsUser } from "./WireHistory.ts"

export const make = (options: {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string | undefined
  /** The API requires a limit on every request. */
  readonly maxTokens: number
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<Configurable> => {
  const client = AnthropicClient.layer({
    apiKey: options.apiKey,
    // Trace ids are not sent to the provider.
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
          shadowed,
          callIds: { refused: /[^a-zA-Z0-9_-]/g, length: 64 },
          lower,
          cacheOnTop: cacheOf,
          prepare: (request, names) => {
            // The library would omit the tools, but the history may refer to them, and the cached prefix starts with
            // them (MD-55).
            const silent = request.toolChoice === "none"
            const wire = { model: options.model, settings, silent }
            const fetch = wired(options.fetch, () => makeAnthropicWire(wire, names))
            return [silent ? { ...request, toolChoice: "auto" } : request, fetch]
          }
        })
      )
    })
  )
}

const lower = (prompt: Prompt.Prompt): Prompt.Prompt =>
  mapAnswers(hostedAsText(systemAsUser(prompt), takesBack), (content) =>
    content.filter((part) => part.type !== "reasoning" || isSigned(part))
  )

/** Reasoning is sent back only with its signature. */
const isSigned = ({ options }: Prompt.ReasoningPart): boolean => {
  const own: unknown = options.anthropic
  const key = Predicate.hasProperty(own, "type") && own.type === "thinking" ? "signature" : "redactedData"
  return Predicate.hasProperty(own, key) && Predicate.isString(own[key]) && own[key] !== ""
}

/** Whether the library and the provider accept this result of a hosted tool. */
const takesBack = ({ id, name, params }: Prompt.ToolCallPart, { result }: Prompt.ToolResultPart): boolean => {
  if (!id.startsWith("srvtoolu_") || !Predicate.isRecord(params)) return false
  const type = Predicate.hasProperty(result, "type") ? String(result.type) : ""
  if (name === "AnthropicWebSearch") return Array.isArray(result) || type === "web_search_tool_result_error"
  return name === "AnthropicCodeExecution" && type.startsWith("code_execution_")
}

const cacheOf = (finish: Response.FinishPart): { readonly read: number; readonly write: number } => {
  const usage = finish.metadata["anthropic"]?.["usage"]
  const tokens = (count: unknown): number => (Predicate.isNumber(count) ? count : 0)
  return { read: tokens(usage?.cache_read_input_tokens), write: tokens(usage?.cache_creation_input_tokens) }
}

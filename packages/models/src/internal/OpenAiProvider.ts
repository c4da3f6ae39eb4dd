/** OpenAI's Responses API through `@effect/ai-openai`. Loaded on first use: the library is large. */
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer, Predicate, type Redacted } from "effect"
import { guard } from "./GuardedModel.ts"
import { makeOpenAiWire } from "./OpenAiWire.ts"
import { type Configurable, secretsOf } from "./Settings.ts"
import { wired } from "./WireFetch.ts"
import { mapAnswers } from "./WireHistory.ts"

export const make = (options: {
  readonly model: string
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string | undefined
  /** Whether the model reasons, so that its encrypted reasoning is requested. */
  readonly reasons: boolean
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<Configurable> => {
  const client = OpenAiClient.layer({
    apiKey: options.apiKey,
    // Trace ids are not sent to the provider.
    transformClient: HttpClient.withTracerPropagation(false),
    ...(options.baseUrl === undefined ? {} : { apiUrl: options.baseUrl.replace(/\/$/, "") })
  })
  // Nothing is stored at the provider: each request is built from the session's log.
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
          callIds: { refused: /[^\x21-\x7e]/g, length: 64 },
          lower,
          prepare: (request) => [request, fetch]
        })
      )
    })
  )
}

/**
 * Reasoning is sent back only with its encrypted content and what followed it: the provider stores nothing, so an id
 * alone is rejected. If part of that is missing, or an id is repeated, the answer is sent without reasoning, and
 * without the ids of its other parts, which would require it (MD-14).
 */
const lower = (prompt: Prompt.Prompt): Prompt.Prompt => {
  const used = new Set<string>()
  return mapAnswers(prompt, (content) => {
    const ids = idsOf(content)
    if (ids === undefined || ids.some((id) => used.has(id))) {
      return content.filter((part) => part.type !== "reasoning").map((part) => ({ ...part, options: {} }))
    }
    for (const id of ids) used.add(id)
    return content
  })
}

/** The item ids of an answer; undefined if it cannot be sent back unchanged. */
const idsOf = (content: Prompt.AssistantMessage["content"]): ReadonlyArray<string> | undefined => {
  const reasonings = new Set<string>()
  const others: Array<string> = []
  for (const part of content) {
    const options: unknown = part.options.openai
    const id = Predicate.hasProperty(options, "itemId") ? options.itemId : undefined
    if (part.type === "reasoning") {
      const encrypted =
        Predicate.hasProperty(options, "encryptedContent") && Predicate.isString(options.encryptedContent)
      if (!Predicate.isString(id) || !encrypted) return undefined
      reasonings.add(id)
    } else if (part.type === "tool-result" || (part.type === "tool-call" && part.providerExecuted)) {
      // Calls and results of hosted tools are not sent back.
      return undefined
    } else if (id !== undefined) {
      if (!Predicate.isString(id)) return undefined
      others.push(id)
    }
  }
  const ids = [...reasonings, ...others]
  return content.at(-1)?.type === "reasoning" || new Set(ids).size < ids.length ? undefined : ids
}

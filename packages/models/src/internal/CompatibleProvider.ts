/** Chat completions as Ollama, llama.cpp, vLLM and many gateways serve them, through the AI SDK. Loaded on first use. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModel } from "@effect/ai"
import { Redacted, type Effect } from "effect"
import * as AiSdkLanguageModel from "../AiSdkLanguageModel.ts"

export const make = (options: {
  readonly model: string
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly effort: string | undefined
  readonly maxTokens: number | undefined
  readonly fetch: typeof globalThis.fetch
}): Effect.Effect<LanguageModel.Service> => {
  const provider = createOpenAICompatible({
    name: "openaiCompatible",
    baseURL: options.baseUrl,
    includeUsage: true,
    fetch: options.fetch,
    ...(options.apiKey === undefined ? {} : { apiKey: Redacted.value(options.apiKey) }),
    ...(options.headers === undefined ? {} : { headers: { ...options.headers } })
  })
  return AiSdkLanguageModel.make({
    model: provider.chatModel(options.model),
    secrets: [
      ...(options.apiKey === undefined ? [] : [options.apiKey]),
      ...Object.values(options.headers ?? {}).map((value) => Redacted.make(value))
    ],
    settings: {
      ...(options.maxTokens === undefined ? {} : { maxOutputTokens: options.maxTokens }),
      ...(options.effort === undefined
        ? {}
        : { providerOptions: { openaiCompatible: { reasoningEffort: options.effort } } })
    }
  })
}

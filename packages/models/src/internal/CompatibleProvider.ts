/** Chat completions as Ollama, llama.cpp, vLLM and many gateways serve them, through the AI SDK. Loaded on first use. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { Redacted } from "effect"
import { bridge } from "./AiSdkModel.ts"
import { callSettings } from "./AiSdkSettings.ts"
import { makeEagerCalls } from "./EagerCalls.ts"
import { headersOf, lay, secretsOf, type Configurable } from "./Settings.ts"
import { wired, type Json } from "./WireFetch.ts"
import { hostedAsText, systemAsUser } from "./WireHistory.ts"

export const make =
  (options: {
    readonly model: string
    readonly baseUrl: string
    readonly apiKey: Redacted.Redacted | undefined
    readonly headers: Readonly<Record<string, string>> | undefined
    readonly maxTokens: number | undefined
    /** Whether the server takes system messages anywhere in the conversation. */
    readonly systemAnywhere: boolean
    readonly fetch: typeof globalThis.fetch
  }): Configurable =>
  (settings) => {
    const { effort, headers: _, ...named } = settings
    const own = Object.keys(options.headers ?? {})
    const wire = { request: (body: Json) => lay(body, settings), headers: () => headersOf(settings, own) }
    // A provider of the AI SDK is a few closures: what is worth keeping, the connections, belongs to `fetch`.
    const provider = createOpenAICompatible({
      name: "openaiCompatible",
      baseURL: options.baseUrl,
      includeUsage: true,
      fetch: wired(options.fetch, () => wire),
      ...(options.apiKey === undefined ? {} : { apiKey: Redacted.value(options.apiKey) }),
      ...(options.headers === undefined ? {} : { headers: { ...options.headers } })
    })
    return bridge({
      model: provider.chatModel(options.model),
      // OpenAI's own service takes ids of 40 characters at most.
      callIds: { refused: /[^\x21-\x7e]/g, length: 40 },
      lower: (prompt) => {
        // The protocol has no calls that the provider runs.
        const plain = hostedAsText(prompt, () => false)
        return options.systemAnywhere ? plain : systemAsUser(plain)
      },
      makeEager: makeEagerCalls,
      secrets: [
        ...(options.apiKey === undefined ? [] : [options.apiKey]),
        ...Object.values(options.headers ?? {}).map((value) => Redacted.make(value)),
        ...secretsOf(settings)
      ],
      settings: {
        includeRawChunks: true,
        ...(options.maxTokens === undefined ? {} : { maxOutputTokens: options.maxTokens }),
        ...callSettings(named),
        ...(effort === undefined ? {} : { providerOptions: { openaiCompatible: { reasoningEffort: effort } } })
      }
    })
  }

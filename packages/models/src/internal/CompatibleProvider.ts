/** Chat completions of Ollama, llama.cpp, vLLM and many gateways, through the AI SDK. Loaded on first use. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { Redacted } from "effect"
import { bridge } from "./AiSdkModel.ts"
import { callSettings } from "./AiSdkSettings.ts"
import { makeEagerCalls } from "./EagerCalls.ts"
import { type Configurable, headersOf, lay, secretsOf } from "./Settings.ts"
import { type Json, wired } from "./WireFetch.ts"
import { hostedAsText, systemAsUser } from "./WireHistory.ts"

export const make =
  (options: {
    readonly model: string
    readonly baseUrl: string
    readonly apiKey: Redacted.Redacted | undefined
    readonly headers: Readonly<Record<string, string>> | undefined
    readonly maxTokens: number | undefined
    /** Whether the server accepts system messages anywhere in the conversation. */
    readonly systemAnywhere: boolean
    readonly fetch: typeof globalThis.fetch
  }): Configurable =>
  (settings) => {
    const { effort, headers: _, ...named } = settings
    const own = Object.keys(options.headers ?? {})
    const wire = { request: (body: Json) => lay(body, settings), headers: () => headersOf(settings, own) }
    // An AI SDK provider is cheap: the connections belong to `fetch`.
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
      // OpenAI's service accepts ids of at most 40 characters.
      callIds: { refused: /[^\x21-\x7e]/g, length: 40 },
      lower: (prompt) => {
        // The protocol has no provider-executed calls.
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

/**
 * Converts request settings to the AI SDK's form, which has no common field for effort or additional JSON. Spec: MD-47.
 */
import type { LanguageModelV3CallOptions } from "@ai-sdk/provider"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import { headersOf } from "./Settings.ts"

type CallSettings = Pick<
  LanguageModelV3CallOptions,
  "headers" | "maxOutputTokens" | "stopSequences" | "temperature" | "topK" | "topP"
>

export const callSettings = (settings: RequestSettings): CallSettings => {
  const { maxOutputTokens, stop, temperature, topK, topP } = settings
  return {
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(settings.headers === undefined ? {} : { headers: headersOf(settings) })
  }
}

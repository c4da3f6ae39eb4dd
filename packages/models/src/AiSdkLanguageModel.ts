/**
 * Adapts language models of the AI SDK's provider interface (version 3) to `@effect/ai`, so that they can serve
 * sessions. One call makes one request, an interruption aborts it, and every failure is an AiError.
 * Spec: MD-25..MD-29.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions } from "@ai-sdk/provider"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type { Effect, Redacted } from "effect"
import { bridge } from "./internal/AiSdkModel.ts"
import { systemAsUser } from "./internal/WireHistory.ts"

/** Options of `make`. */
export interface Options {
  readonly model: LanguageModelV3
  /** Values that must never appear in an error, such as keys. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted>
  /** Settings of every request: output limit, temperature, provider options and so on. */
  readonly settings?: Omit<LanguageModelV3CallOptions, "prompt" | "tools" | "toolChoice" | "abortSignal">
  /**
   * Whether system messages may appear anywhere in the conversation. By default, later ones are lowered to user
   * messages, because many servers accept only leading ones.
   */
  readonly systemAnywhere?: boolean
}

/**
 * Makes an `@effect/ai` LanguageModel from an AI SDK model (MD-25).
 *
 * @example
 * ```ts
 * import type { LanguageModelV3 } from "@ai-sdk/provider"
 * import { AiSdkLanguageModel } from "@daybook/models"
 *
 * declare const mistral: (model: string) => LanguageModelV3
 *
 * export const model = AiSdkLanguageModel.make({ model: mistral("mistral-large-latest") })
 * ```
 */
export const make = (options: Options): Effect.Effect<LanguageModel.Service> =>
  bridge({
    model: options.model,
    secrets: options.secrets ?? [],
    settings: options.settings ?? {},
    callIds: { refused: /[^\x21-\x7e]/g, length: 64 },
    lower: options.systemAnywhere === true ? (prompt) => prompt : systemAsUser
  })

/** What a step used and what it cost, from the provider's count. Pure. Spec: EX-R3. */
import type { Response } from "@effect/ai"
import { Predicate } from "effect"
import type { ModelInfo } from "../model/ModelResolver.ts"
import type { ProviderMetadata, Tokens } from "../session/Schemas.ts"

/** A provider's count that is no count is not known: 0. */
const counted = (value: unknown): number =>
  Predicate.isNumber(value) && Number.isFinite(value) && value > 0 ? value : 0

/** Tokens written to the provider's cache: as `@daybook/models` says for any provider, or as Anthropic's own library does. */
const cacheWritten = ({ anthropic, daybook }: ProviderMetadata): number => {
  if (Predicate.isRecord(daybook) && "cacheWriteTokens" in daybook) return counted(daybook["cacheWriteTokens"])
  const own = Predicate.isRecord(anthropic) && Predicate.isRecord(anthropic["usage"]) ? anthropic["usage"] : {}
  return counted(own["cache_creation_input_tokens"])
}

/** Tokens as the provider counted them. */
export const toTokens = (usage: Response.Usage, metadata: ProviderMetadata): Tokens => ({
  input: counted(usage.inputTokens),
  output: counted(usage.outputTokens),
  reasoning: counted(usage.reasoningTokens),
  cache: { read: counted(usage.cachedInputTokens), write: cacheWritten(metadata) }
})

/** US dollars; 0 when the price is not known. */
export const toCost = (tokens: Tokens, price: ModelInfo["price"]): number => {
  if (price === undefined) return 0
  const fresh = Math.max(0, tokens.input - tokens.cache.read - tokens.cache.write)
  return (
    (fresh * price.input +
      tokens.output * price.output +
      tokens.cache.read * price.cacheRead +
      tokens.cache.write * price.cacheWrite) /
    1_000_000
  )
}

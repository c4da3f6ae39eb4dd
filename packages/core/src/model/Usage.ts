/**
 * Computes the usage and cost of a step, from the provider's count or an estimate where the count is absent. Pure.
 * Spec: EX-R3, EX-B5.
 */
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import type { Price, ProviderMetadata, Tokens } from "@daybook/log/domain/Values"
import type { ModelInfo, Pricing } from "./ModelResolver.ts"

/** An invalid count is treated as unknown: 0. */
const counted = (value: unknown) => (Predicate.isNumber(value) && Number.isFinite(value) && value > 0 ? value : 0)

/** Tokens written to the provider's cache, in the form of `@daybook/models` or of Anthropic's library. */
const cacheWritten = ({ anthropic, daybook }: ProviderMetadata): number => {
  if (Predicate.isRecord(daybook) && "cacheWriteTokens" in daybook) return counted(daybook["cacheWriteTokens"])
  const own = Predicate.isRecord(anthropic) && Predicate.isRecord(anthropic["usage"]) ? anthropic["usage"] : {}
  return counted(own["cache_creation_input_tokens"])
}

/** Characters received of an answer; `all` includes `reasoning`. */
export interface Received {
  readonly all: number
  readonly reasoning: number
}

export const nothingReceived: Received = { all: 0, reasoning: 0 }

/** Usage of a request, in event form. */
export interface Used {
  readonly cost: number
  readonly tokens: Tokens
  readonly estimated?: true
}

/** A quarter of the characters, rounded up, as for requests without a counter (CP-5). */
const tokensFor = (characters: number): number => Math.ceil(characters / 4)

/** Estimated usage of an unfinished request: the request estimate, and the output so far. */
export const estimateOf = (inputEstimate: number, received: Received, price: ModelInfo["price"]): Used => {
  const tokens: Tokens = {
    input: inputEstimate,
    output: tokensFor(received.all),
    reasoning: tokensFor(received.reasoning),
    cache: { read: 0, write: 0 }
  }
  return { cost: toCost(tokens, price), tokens, estimated: true }
}

/** The provider's count; absent counts are estimated. Input is never 0. */
export const usedOf = (counted: Tokens, inputEstimate: number, received: Received, price: ModelInfo["price"]): Used => {
  const guess = estimateOf(inputEstimate, received, price).tokens
  const input = counted.input > 0 ? counted.input : guess.input
  const output = counted.output > 0 ? counted.output : guess.output
  const tokens = { ...counted, input, output }
  const same = input === counted.input && output === counted.output
  return { cost: toCost(tokens, price), tokens, ...(same ? {} : { estimated: true as const }) }
}

export const toTokens = (usage: Response.Usage, metadata: ProviderMetadata): Tokens => ({
  input: counted(usage.inputTokens),
  output: counted(usage.outputTokens),
  reasoning: counted(usage.reasoningTokens),
  cache: { read: counted(usage.cachedInputTokens), write: cacheWritten(metadata) }
})

export const priceAt = ({ tiers = [], ...base }: Pricing, input: number): Price => {
  const tier = tiers.findLast(({ above }) => input > above)
  if (tier === undefined) return base
  const { above: _, ...price } = tier
  return price
}

/** US dollars; 0 when the price is unknown. */
export const toCost = (tokens: Tokens, pricing: ModelInfo["price"]): number => {
  if (pricing === undefined) return 0
  const price = priceAt(pricing, tokens.input)
  const fresh = Math.max(0, tokens.input - tokens.cache.read - tokens.cache.write)
  return (
    (fresh * price.input +
      tokens.output * price.output +
      tokens.cache.read * price.cacheRead +
      tokens.cache.write * price.cacheWrite) /
    1_000_000
  )
}

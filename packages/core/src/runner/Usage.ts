/**
 * What a step used and what it cost: from the provider's count, or an estimate where the provider did not count. Pure.
 * Spec: EX-R3, EX-B5.
 */
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

/** Characters of an answer so far; those of its reasoning are among them. */
export interface Received {
  readonly all: number
  readonly reasoning: number
}

export const nothingReceived: Received = { all: 0, reasoning: 0 }

/** What a request used, as events carry it. */
export interface Used {
  readonly cost: number
  readonly tokens: Tokens
  readonly estimated?: true
}

/** A quarter of the characters, as for requests without a counter (CP-5); something is never nothing. */
const tokensFor = (characters: number): number => Math.ceil(characters / 4)

/** What an unfinished request used: the estimate of the request, and the output so far. */
export const estimateOf = (inputEstimate: number, received: Received, price: ModelInfo["price"]): Used => {
  const tokens: Tokens = {
    input: inputEstimate,
    output: tokensFor(received.all),
    reasoning: tokensFor(received.reasoning),
    cache: { read: 0, write: 0 }
  }
  return { cost: toCost(tokens, price), tokens, estimated: true }
}

/** The provider's count; what it did not count is estimated. No request is without input. */
export const usedOf = (counted: Tokens, inputEstimate: number, received: Received, price: ModelInfo["price"]): Used => {
  const guess = estimateOf(inputEstimate, received, price).tokens
  const input = counted.input > 0 ? counted.input : guess.input
  const output = counted.output > 0 ? counted.output : guess.output
  const tokens = { ...counted, input, output }
  const same = input === counted.input && output === counted.output
  return { cost: toCost(tokens, price), tokens, ...(same ? {} : { estimated: true as const }) }
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

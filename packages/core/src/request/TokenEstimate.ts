/**
 * Estimates tokens of a request before the provider counts them. With the model's tokenizer, texts are counted; without
 * one, a part costs a quarter of its JSON's characters. Pure except for a cache by object, which counts an unchanged
 * message once. Spec: CP-5 to CP-9 (CM-1, CM-13).
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate, Schema } from "effect"
import type { Tokens } from "@daybook/log/domain/Values"

/** The model's tokenizer, if known. */
export type CountTokens = (text: string) => number

export interface ToolShape {
  readonly name: string
  readonly description?: string | undefined
  readonly parameters: unknown
}

export interface EstimatedRequest {
  readonly system: ReadonlyArray<string>
  readonly messages: ReadonlyArray<Prompt.MessageEncoded>
  readonly tools: ReadonlyArray<ToolShape>
}

export const Estimate = Schema.Struct({
  system: Schema.Finite,
  messages: Schema.Finite,
  tools: Schema.Finite,
  total: Schema.Finite,
  /** One number for each system text, message and tool, in order. */
  perSystem: Schema.Array(Schema.Finite),
  perMessage: Schema.Array(Schema.Finite),
  perTool: Schema.Array(Schema.Finite)
})
export type Estimate = typeof Estimate.Type

/** Approximate tokens of an image, independent of its encoded length. */
export const imageTokens = 1_600
const maxDocumentTokens = 64_000
const bytesPerDocumentToken = 32
/** Role and delimiters around a message or a definition, for tokenizers that count text only. */
const framing = 4
/** Tokenizers may take more than linear time on a long run of characters, so text is split at this size. */
const countedAtOnce = 4_000

/** A quarter of the characters, rounded (CM-1). */
const byLength = (chars: number): number => Math.round(chars / 4)

export const tokensOf = (text: string, count?: CountTokens): number => {
  if (count === undefined) return byLength(text.length)
  let tokens = 0
  for (let at = 0; at < text.length; at += countedAtOnce) tokens += count(text.slice(at, at + countedAtOnce))
  return tokens
}

/** The JSON of a value; empty for values without a JSON form. */
const json = (value: unknown): string => JSON.stringify(value) ?? ""

/** Tokens of a file by kind and size, not by the length of its encoding. The size of a URL is unknown. */
const mediaTokens = ({ data, mediaType }: Prompt.FilePartEncoded): number => {
  if (mediaType.startsWith("image/")) return imageTokens
  const bytes = Predicate.isString(data) ? (data.length * 3) / 4 : data instanceof URL ? 0 : data.length
  return Math.min(maxDocumentTokens, Math.max(imageTokens, Math.round(bytes / bytesPerDocumentToken)))
}

type AnyPart = Exclude<Prompt.MessageEncoded["content"], string>[number]

const partTokens = (part: AnyPart, count: CountTokens | undefined): number => {
  if (part.type === "file") {
    return mediaTokens(part) + tokensOf(json({ ...part, data: "" }), count)
  }
  if (count === undefined) return byLength(json(part).length)
  // Opaque provider data (signatures, encrypted reasoning) is not text for a tokenizer.
  const native = part.options === undefined ? 0 : byLength(json(part.options).length)
  switch (part.type) {
    case "text":
    case "reasoning":
      return native + tokensOf(part.text, count)
    case "tool-call":
      return native + tokensOf(part.name, count) + tokensOf(json(part.params), count)
    case "tool-result":
      return native + tokensOf(Predicate.isString(part.result) ? part.result : json(part.result), count)
  }
}

const messageParts = (message: Prompt.MessageEncoded, count: CountTokens | undefined): number => {
  if (Predicate.isString(message.content)) {
    return framing + tokensOf(count === undefined ? json(message.content) : message.content, count)
  }
  let tokens = framing
  for (const part of message.content) tokens += partTokens(part, count)
  return tokens
}

const toolShape = ({ description, name, parameters }: ToolShape, count: CountTokens | undefined): number =>
  framing + tokensOf(json({ name, description, parameters }), count)

/** The cache key for "no tokenizer". */
const noCounter: CountTokens = ({ length }) => byLength(length)

/** Caches by object and tokenizer: requests and their parts are immutable. */
const remembered = <A extends object>(measure: (value: A, count: CountTokens | undefined) => number) => {
  const known = new WeakMap<CountTokens, WeakMap<A, number>>()
  return (value: A, count: CountTokens | undefined): number => {
    const key = count ?? noCounter
    let sizes = known.get(key)
    if (sizes === undefined) known.set(key, (sizes = new WeakMap()))
    let tokens = sizes.get(value)
    if (tokens === undefined) sizes.set(value, (tokens = measure(value, count)))
    return tokens
  }
}

export const messageTokens = remembered(messageParts)
const toolTokens = remembered(toolShape)

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((total, size) => total + size, 0)

/** Estimates the whole request: system texts, messages and tools (CM-1, CM-13). */
export const estimate = (request: EstimatedRequest, count?: CountTokens): Estimate => {
  const perSystem = request.system.map((text) => framing + tokensOf(count === undefined ? json(text) : text, count))
  const perMessage = request.messages.map((message) => messageTokens(message, count))
  const perTool = request.tools.map((tool) => toolTokens(tool, count))
  const [system, messages, tools] = [sum(perSystem), sum(perMessage), sum(perTool)]
  return { system, messages, tools, total: system + messages + tools, perSystem, perMessage, perTool }
}

/** The provider's last count, and its position in the request. */
export interface LastUsage {
  readonly tokens: Pick<Tokens, "input" | "output">
  /** Number of the request's messages that this step saw or wrote; later ones are new. */
  readonly messages: number
}

/**
 * The request's size with the provider's last count as a lower bound: that count plus the estimate of later messages
 * (CM-13). Valid only for the same model, and only if nothing that the step saw was pruned since.
 */
export const withUsage = (estimated: Estimate, last: LastUsage | undefined): number => {
  if (last === undefined) return estimated.total
  const counted = last.tokens.input + last.tokens.output
  // A count of zero means that the provider does not count.
  if (counted === 0) return estimated.total
  return Math.max(estimated.total, counted + sum(estimated.perMessage.slice(last.messages)))
}

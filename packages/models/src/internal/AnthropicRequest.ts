/**
 * Completes a request to Anthropic's Messages API: settings under their wire names, limited to what the model, its
 * thinking and the history allow, and the marks of the prompt cache. Pure. Spec: MD-65, MD-47..MD-49, MD-55..MD-57.
 */
import { Predicate } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import { defined, headersOf, lay } from "./Settings.ts"
import type { Json } from "./WireFetch.ts"

export interface AnthropicRequest {
  readonly model: string
  readonly settings: RequestSettings
  /** The model sees the tools but must not call one. */
  readonly silent?: boolean
}

/** Completes the library's request in `body`. */
export const finishRequest = (body: Json, { model, settings, silent = false }: AnthropicRequest): Json => {
  const { effort, maxOutputTokens, stop, temperature, topK, topP } = settings
  const traits = traitsOf(model)
  const thinking = isThinking({ ...body, ...settings.body }, traits.thinks)
  const sampled = traits.sampled && !thinking
  const named = defined({
    max_tokens: maxOutputTokens,
    stop_sequences: stop,
    output_config: effort === undefined ? undefined : { effort },
    temperature: sampled ? temperature : undefined,
    // Since Opus 4.1 a request may have a temperature or a `top_p`, not both.
    top_p: sampled && temperature === undefined ? topP : undefined,
    top_k: sampled ? topK : undefined,
    thinking: traits.binds ? bound : undefined
  })
  const laid = withTools(lay({ ...body, ...named }, settings))
  const sent = { ...laid, ...roomForWords(laid, settings), ...toolChoice(laid, thinking, silent) }
  return marked(begunWithoutThought(sent) ? defined({ ...sent, thinking: undefined }) : sent)
}

/** A history with calls requires tool definitions: if none is offered, defines those in the history as not callable. */
const withTools = (body: Json): Json => {
  if (list(body["tools"]).length > 0) return body
  const names = new Set(
    list(body["messages"])
      .flatMap(contentOf)
      .flatMap((block) => (isBlock(block, "tool_use") ? [block["name"]] : []))
  )
  if (names.size === 0) return body
  const tools = [...names].map((name) => ({
    name,
    description: "This tool cannot be called now.",
    input_schema: { type: "object" }
  }))
  return { ...body, tools, tool_choice: { type: "none" } }
}

/**
 * Whether the answer before the latest tool results began without thinking, because another model wrote it or it was
 * cut off: then a request with a thinking budget would be rejected.
 */
const begunWithoutThought = (body: Json): boolean => {
  const thinking = body["thinking"]
  if (!Predicate.isRecord(thinking) || thinking["type"] !== "enabled") return false
  const messages = list(body["messages"])
  const isAsked = (message: unknown) =>
    isUser(message) && !contentOf(message).some((block) => isBlock(block, "tool_result"))
  const answer = messages.slice(messages.findLastIndex(isAsked) + 1).find((message) => !isUser(message))
  return answer !== undefined && !unmarkable.has(String(typeOf(contentOf(answer)[0])))
}

/** Thinking counts towards the limit, so the limit must exceed its budget: a summary's small limit is added on top. */
const roomForWords = ({ max_tokens: limit, thinking }: Json, { body }: RequestSettings): Json => {
  const budget = Predicate.isRecord(thinking) ? thinking["budget_tokens"] : undefined
  if (!Predicate.isNumber(limit) || !Predicate.isNumber(budget) || budget < limit) return {}
  return body?.["max_tokens"] === undefined ? { max_tokens: budget + limit } : {}
}

/** The headers for a completed request. */
export const requestHeaders = (body: Json, { settings }: AnthropicRequest): Record<string, string> => {
  const headers = headersOf(settings)
  if (!Predicate.hasProperty(body["thinking"], "block_binding")) return headers
  return { ...headers, [beta]: [headers[beta], bindingBeta].filter(Predicate.isNotUndefined).join(",") }
}

const beta = "anthropic-beta"
const bindingBeta = "thinking-binding-controls-2026-08-01"

/**
 * The default of these models, and a request to drop reasoning whose preceding content changed (a pruned result, a new
 * system prompt): otherwise the request would be rejected (MD-57).
 */
const bound = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } }

/** A family, then its version; models before 4 reverse the order. */
const version = /^claude-(?:([123])(?:-\d)?-|[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?![\d]))/

interface Traits {
  /** Accepts `temperature`, `top_p` and `top_k`. */
  readonly sampled: boolean
  /** Thinks by default. */
  readonly thinks: boolean
  /** Checks that the content before its reasoning is unchanged. */
  readonly binds: boolean
}

/** Derives traits from a model's name. Other names belong to a proxy, whose models are unknown. */
const traitsOf = (model: string): Traits => {
  if (!model.startsWith("claude-")) return { sampled: true, thinks: false, binds: false }
  const [, early, major, minor] = version.exec(model) ?? []
  const numbered = early ?? (major === undefined ? undefined : `${major}.${minor ?? 0}`)
  // Names without a version are previews, newer than any rule here.
  const number = numbered === undefined ? Infinity : Number(numbered)
  const binds = numbered !== undefined && (number >= 5.5 || (number >= 5.1 && model.startsWith("claude-fable-")))
  return { sampled: number < 4.7, thinks: number >= 5, binds }
}

/** Whether the model will think: as the request says, else by default. */
const isThinking = (body: Json, byItself: boolean): boolean => {
  const thinking = body["thinking"]
  return Predicate.isRecord(thinking) ? thinking["type"] !== "disabled" : byItself
}

/** A thinking model rejects a forced tool choice; it is offered the tools instead (MD-55). */
const toolChoice = (body: Json, thinking: boolean, silent: boolean): Json => {
  const choice = body["tool_choice"]
  if (!Predicate.isRecord(choice)) return {}
  if (silent) return { tool_choice: { type: "none" } }
  if (!thinking || (choice["type"] !== "any" && choice["type"] !== "tool")) return {}
  const { name: _, ...rest } = choice
  return { tool_choice: { ...rest, type: "auto" } }
}

/**
 * Marks the prefixes that the next request will share: tools and system prompt, the conversation so far, and the end of
 * the previous request. The last one is needed because the provider looks back only 20 blocks from a mark, and one
 * answer may have more calls than that. If the body already has marks, none is added.
 */
const marked = (body: Json): Json => {
  const messages = list(body["messages"])
  const blocks = [...list(body["system"]), ...list(body["tools"]), ...messages.flatMap(contentOf)]
  if (blocks.some((block) => Predicate.hasProperty(block, "cache_control"))) return body
  const lastAnswer = messages.findLastIndex((message) => roleOf(message) === "assistant")
  const ends = new Set([messages.length - 1, messages.slice(0, Math.max(lastAnswer, 0)).findLastIndex(isUser)])
  const head = list(body["system"]).length > 0 ? "system" : "tools"
  return {
    ...body,
    ...(list(body[head]).length === 0 ? {} : { [head]: markedList(list(body[head])) }),
    messages: messages.map((message, index) => (ends.has(index) ? markedMessage(message) : message))
  }
}

const markedMessage = (message: unknown): unknown =>
  Predicate.isRecord(message) && Array.isArray(message["content"])
    ? { ...message, content: markedList(message["content"]) }
    : message

/** Marks the last block that can be marked: thinking and empty text cannot. */
const markedList = (blocks: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const last = blocks.findLastIndex(
    (block) => Predicate.isRecord(block) && !unmarkable.has(String(block["type"])) && block["text"] !== ""
  )
  return blocks.map((block, index) =>
    index === last && Predicate.isRecord(block) ? { ...block, cache_control: { type: "ephemeral" } } : block
  )
}

const unmarkable: ReadonlySet<string> = new Set(["thinking", "redacted_thinking"])

const typeOf = (block: unknown): unknown => (Predicate.isRecord(block) ? block["type"] : undefined)
const isBlock = (block: unknown, type: string): block is Json => typeOf(block) === type
const roleOf = (message: unknown): unknown => (Predicate.isRecord(message) ? message["role"] : undefined)
const isUser = (message: unknown): boolean => roleOf(message) === "user"
const contentOf = (message: unknown): ReadonlyArray<unknown> =>
  Predicate.isRecord(message) ? list(message["content"]) : []
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/**
 * A request to Anthropic's Messages API in its last form: the settings under their names there, only what the model,
 * its thinking and the history allow, and the marks of the prompt cache. Pure. Spec: MD-20, MD-47..MD-49, MD-55..MD-57.
 */
import type { RequestSettings } from "@daybook/core"
import { Predicate } from "effect"
import { defined, headersOf, lay } from "./Settings.ts"
import type { Json } from "./WireFetch.ts"

export interface AnthropicRequest {
  readonly model: string
  readonly settings: RequestSettings
  /** The model must not call a tool, though it is shown the tools. */
  readonly silent?: boolean
}

/** What a model is asked, with the library's form of it in `body`. */
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
    // Since Opus 4.1 one request may have a temperature or a `top_p`, not both.
    top_p: sampled && temperature === undefined ? topP : undefined,
    top_k: sampled ? topK : undefined,
    thinking: traits.binds ? bound : undefined
  })
  const laid = withTools(lay({ ...body, ...named }, settings))
  const sent = { ...laid, ...roomForWords(laid, settings), ...toolChoice(laid, thinking, silent) }
  return marked(begunWithoutThought(sent) ? defined({ ...sent, thinking: undefined }) : sent)
}

/** A history with calls needs definitions of tools: where none is offered, those that it names, none to be called. */
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
 * Whether the answer that results of tools belong to began without thought, as another model's does, or one that was cut
 * off: a request that asks for thought by a budget is then refused.
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

/** What is thought counts in the limit, which has to be the greater: a summary's small one is left for its words. */
const roomForWords = ({ max_tokens: limit, thinking }: Json, { body }: RequestSettings): Json => {
  const budget = Predicate.isRecord(thinking) ? thinking["budget_tokens"] : undefined
  if (!Predicate.isNumber(limit) || !Predicate.isNumber(budget) || budget < limit) return {}
  return body?.["max_tokens"] === undefined ? { max_tokens: budget + limit } : {}
}

/** The headers that go with a request in its last form. */
export const requestHeaders = (body: Json, { settings }: AnthropicRequest): Record<string, string> => {
  const headers = headersOf(settings)
  if (!Predicate.hasProperty(body["thinking"], "block_binding")) return headers
  return { ...headers, [beta]: [headers[beta], bindingBeta].filter(Predicate.isNotUndefined).join(",") }
}

const beta = "anthropic-beta"
const bindingBeta = "thinking-binding-controls-2026-08-01"

/**
 * What these models do anyway, and that reasoning from before a change of what precedes it (a pruned result, a new
 * system prompt) is passed over: otherwise it would be a reason to refuse the request (MD-57).
 */
const bound = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } }

/** A family, then its version; models before 4 have them the other way round. */
const version = /^claude-(?:([123])(?:-\d)?-|[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?![\d]))/

interface Traits {
  /** Takes `temperature`, `top_p` and `top_k`. */
  readonly sampled: boolean
  /** Thinks without being asked to. */
  readonly thinks: boolean
  /** Checks that what precedes its reasoning has not changed. */
  readonly binds: boolean
}

/** What a name says of a model. A name that is not Claude's is some proxy's, and only the proxy knows. */
const traitsOf = (model: string): Traits => {
  if (!model.startsWith("claude-")) return { sampled: true, thinks: false, binds: false }
  const [, early, major, minor] = version.exec(model) ?? []
  const numbered = early ?? (major === undefined ? undefined : `${major}.${minor ?? 0}`)
  // Names without a version are those of previews, newer than any rule here.
  const number = numbered === undefined ? Infinity : Number(numbered)
  const binds = numbered !== undefined && (number >= 5.5 || (number >= 5.1 && model.startsWith("claude-fable-")))
  return { sampled: number < 4.7, thinks: number >= 5, binds }
}

/** Whether the answer will be thought about first: as the request says, or as the model does by itself. */
const isThinking = (body: Json, byItself: boolean): boolean => {
  const thinking = body["thinking"]
  return Predicate.isRecord(thinking) ? thinking["type"] !== "disabled" : byItself
}

/** A model that thinks refuses to be forced to a tool; it is offered the tools instead (MD-55). */
const toolChoice = (body: Json, thinking: boolean, silent: boolean): Json => {
  const choice = body["tool_choice"]
  if (!Predicate.isRecord(choice)) return {}
  if (silent) return { tool_choice: { type: "none" } }
  if (!thinking || (choice["type"] !== "any" && choice["type"] !== "tool")) return {}
  const { name: _, ...rest } = choice
  return { tool_choice: { ...rest, type: "auto" } }
}

/**
 * Marks what the next request will begin with: tools and system prompt, the conversation up to now, and what the
 * request before this one ended with. The last, because the provider looks back from a mark over 20 blocks only, and
 * one answer may have more calls than that. Whoever has set marks of their own has them alone.
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

/** The last block that can be marked: thinking and empty text cannot. */
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

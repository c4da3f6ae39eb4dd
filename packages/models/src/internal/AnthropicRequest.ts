/**
 * A request to Anthropic's Messages API in its last form: the settings under their names there, only what the model and
 * its thinking allow, and the marks of the prompt cache. Pure. Spec: MD-20, MD-47..MD-49, MD-54, MD-55.
 */
import type { RequestSettings } from "@daybook/core"
import { Predicate } from "effect"
import { defined, lay } from "./Settings.ts"
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
    top_k: sampled ? topK : undefined
  })
  const laid = lay({ ...body, ...named }, settings)
  return marked({ ...laid, ...toolChoice(laid, thinking, silent) })
}

/** A family, then its version; models before 4 have them the other way round. */
const version = /^claude-(?:([123])(?:-\d)?-|[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?![\d]))/

/**
 * Whether a model takes `temperature`, `top_p` and `top_k` at all, and whether it thinks without being asked. Claude has
 * done without the first since 4.7, and has done the second since 5; a name that is not Claude's is some proxy's, and
 * only the proxy knows.
 */
const traitsOf = (model: string): { readonly sampled: boolean; readonly thinks: boolean } => {
  if (!model.startsWith("claude-")) return { sampled: true, thinks: false }
  const [, early, major, minor] = version.exec(model) ?? []
  const number = early !== undefined ? Number(early) : major === undefined ? Infinity : Number(`${major}.${minor ?? 0}`)
  return { sampled: number < 4.7, thinks: number >= 5 }
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

const roleOf = (message: unknown): unknown => (Predicate.isRecord(message) ? message["role"] : undefined)
const isUser = (message: unknown): boolean => roleOf(message) === "user"
const contentOf = (message: unknown): ReadonlyArray<unknown> =>
  Predicate.isRecord(message) ? list(message["content"]) : []
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

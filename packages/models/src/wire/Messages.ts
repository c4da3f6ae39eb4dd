/**
 * Anthropic's Messages API and the servers that speak it. Requests are limited to what the model, its thinking and the history
 * allow, and mark the prefixes that the cache shares. Spec: MD-20..MD-24, MD-47..MD-49, MD-55..MD-57, MD-62, MD-65 in
 * specs/models.md.
 */
import * as Prompt from "@effect/ai/Prompt"
import { Predicate, Record } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import { present } from "@daybook/log/support/Optional"
import type { Answer, UsageFacts } from "./Answer.ts"
import { base64Of, joined, notedOn, resultText, substitute, urlOf } from "./History.ts"
import { filled, type Json, list, record, text } from "./Json.ts"
import { limitOf, type Protocol, type Reader, type WireRequest, type WireTool } from "./Protocol.ts"

// --- writing

/** The API requires a limit, even if the catalogue has none. */
const leastMaxTokens = 8192

const write = (request: WireRequest): Json => {
  const { format, model, profile, settings, tools } = request
  const { effort, stop, temperature, topK, topP } = settings
  const thinking = isThinking(request)
  const sampled = !thinking && before47.test(model)
  const messages = joined(request.messages.flatMap(messageOf), together)
  const shared = {
    system: request.messages.flatMap((message) =>
      message.role === "system" ? [withMark({ type: "text", text: message.content }, message)] : []
    ),
    tools: tools.length > 0 ? tools.map(toolOf) : toolsIn(messages),
    messages
  }
  return present({
    model,
    max_tokens: limitOf(request) ?? leastMaxTokens,
    stream: true,
    stop_sequences: stop,
    output_config: filled({ effort, format: format && { type: "json_schema", schema: format.schema } }),
    temperature: sampled ? temperature : undefined,
    // Since Opus 4.1 a request may have a temperature or a `top_p`, not both.
    top_p: sampled && temperature === undefined ? topP : undefined,
    top_k: sampled ? topK : undefined,
    thinking: binding.test(model) ? bound : undefined,
    tool_choice: shared.tools.length === 0 ? undefined : choiceOf(request, thinking),
    ...Record.filter(profile.cacheMarks ? marked(shared) : shared, (blocks) => blocks.length > 0)
  })
}

/** What depends on the settings' own JSON fields. */
const finish = (body: Json, settings: RequestSettings): Json => {
  const { budget_tokens: budget, type } = record(body["thinking"])
  const { max_tokens: limit } = body
  const isShort = Predicate.isNumber(limit) && Predicate.isNumber(budget) && budget >= limit
  return {
    ...body,
    // Thinking counts towards the limit, so the limit must exceed its budget: a summary's small limit is added on top.
    ...(isShort && settings.body?.["max_tokens"] === undefined ? { max_tokens: budget + limit } : {}),
    ...(type === "enabled" && begunWithoutThought(body) ? { thinking: undefined } : {})
  }
}

const toolOf = (tool: WireTool): Json =>
  tool._tag === "Hosted"
    ? { type: tool.id.replace(/^anthropic\./, ""), name: tool.name, ...tool.args }
    : present({ name: tool.name, description: tool.description, input_schema: tool.schema })

/** A thinking model rejects a forced tool choice; it is offered the tools instead (MD-55). */
const choiceOf = ({ toolChoice, tools }: WireRequest, thinking: boolean): Json => {
  if (toolChoice === "none" || tools.length === 0) return { type: "none" }
  if (toolChoice === "auto" || thinking) return { type: "auto" }
  return toolChoice === "required" ? { type: "any" } : { type: "tool", name: toolChoice.tool }
}

type Content = Prompt.AssistantMessage["content"]

interface Message {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Json>
}

const messageOf = (message: Prompt.Message): ReadonlyArray<Message> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return [{ role: "user", content: withLastMark(message.content.map(userBlock), message) }]
    case "tool":
      return [{ role: "user", content: withLastMark(message.content.map(resultBlock), message) }]
    case "assistant":
      return [{ role: "assistant", content: withLastMark(message.content.flatMap(answerBlocks), message) }]
  }
}

/** Neighbours of one role as one message; results stand before the rest. */
const together = (a: Message, b: Message): Message | undefined =>
  a.role === b.role ? { ...a, content: [...a.content, ...b.content] } : undefined

/** A cache mark that the caller set. */
const withMark = (block: Json, part: { readonly options: unknown }): Json => {
  const { cacheControl, cache_control: mark = cacheControl } = notedOn(part, "anthropic")
  return mark === undefined ? block : { ...block, cache_control: mark }
}

const withLastMark = (blocks: ReadonlyArray<Json>, message: { readonly options: unknown }): ReadonlyArray<Json> =>
  blocks.map((block, index) => (index === blocks.length - 1 ? withMark(block, message) : block))

const userBlock = (part: Prompt.UserMessagePart): Json => {
  if (part.type === "text") return withMark({ type: "text", text: part.text }, part)
  const data = base64Of(part)
  const source =
    data === undefined ? { type: "url", url: urlOf(part) } : { type: "base64", media_type: part.mediaType, data }
  return part.mediaType === "application/pdf"
    ? withMark(present({ type: "document", source, title: part.fileName }), part)
    : withMark({ type: "image", source }, part)
}

const resultBlock = (part: Prompt.ToolResultPart): Json =>
  withMark({ type: "tool_result", tool_use_id: part.id, content: resultText(part), is_error: part.isFailure }, part)

const answerBlocks = (part: Prompt.AssistantMessagePart): ReadonlyArray<Json> => {
  switch (part.type) {
    case "text":
      return [withMark({ type: "text", text: part.text }, part)]
    case "reasoning": {
      const { redactedData, signature } = notedOn(part, "anthropic")
      return [
        Predicate.isString(redactedData)
          ? { type: "redacted_thinking", data: redactedData }
          : { type: "thinking", thinking: part.text, signature }
      ]
    }
    case "tool-call":
      return part.providerExecuted
        ? [{ type: "server_tool_use", id: part.id, name: hostedName(part.name), input: record(part.params) }]
        : [withMark({ type: "tool_use", id: part.id, name: part.name, input: record(part.params) }, part)]
    case "tool-result":
      return [{ type: resultType(part), tool_use_id: part.id, content: part.result }]
    case "file":
      return []
  }
}

/** The server's names of its own tools; the library's toolkit has others. */
const hostedNames: Readonly<Record<string, string>> = {
  AnthropicWebSearch: "web_search",
  AnthropicCodeExecution: "code_execution"
}
const hostedName = (name: string): string => hostedNames[name] ?? name

const typeOf = (result: unknown): string => text(record(result)["type"]) ?? ""

/** The results of code execution: `bash_code_execution_result`. */
const executed = /^(?:bash_|text_editor_)?code_execution_/

const resultType = ({ name, result }: Prompt.ToolResultPart): string => {
  const [kind = "code_execution_"] = executed.exec(typeOf(result)) ?? []
  return hostedName(name) === "web_search" ? "web_search_tool_result" : `${kind}tool_result`
}

/** Whether the provider accepts this result of a hosted tool. */
const takesHosted = ({ id, name, params }: Prompt.ToolCallPart, { result }: Prompt.ToolResultPart): boolean => {
  if (!id.startsWith("srvtoolu_") || !Predicate.isRecord(params)) return false
  const type = typeOf(result)
  if (hostedName(name) === "web_search") return Array.isArray(result) || type === "web_search_tool_result_error"
  return hostedName(name) === "code_execution" && executed.test(type)
}

const isSigned = (part: Prompt.ReasoningPart): boolean => {
  const { redactedData, signature, type } = notedOn(part, "anthropic")
  return text(type === "redacted_thinking" ? redactedData : signature) !== undefined
}

/** An answer with thinking at its beginning, signed or not. */
const thought = (content: Content): Content => {
  if (content.some(({ type }) => type === "reasoning")) return content
  const calls = content.filter((part) => part.type === "tool-call")
  return [Prompt.reasoningPart({ text: substitute(calls) }), ...content]
}

/** A history with calls requires tool definitions: if none is offered, those in the history are, as not callable. */
const toolsIn = (messages: ReadonlyArray<Message>): ReadonlyArray<Json> => {
  const blocks = messages.flatMap(({ content }) => content)
  const names = new Set(blocks.flatMap((block) => (block["type"] === "tool_use" ? [block["name"]] : [])))
  const description = "This tool cannot be called now."
  return [...names].map((name) => ({ name, description, input_schema: { type: "object" } }))
}

const thoughts: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"])

/**
 * Whether the answer before the latest tool results began without thinking, because another model wrote it or it was
 * cut off: then a request with a thinking budget would be rejected.
 */
const begunWithoutThought = (body: Json): boolean => {
  const types = list(body["messages"]).map((message) => {
    const { content, role } = record(message)
    return { role, types: list(content).map((block) => record(block)["type"]) }
  })
  const asked = types.findLastIndex(({ role, types }) => role === "user" && !types.includes("tool_result"))
  const answer = types.slice(asked + 1).find(({ role }) => role === "assistant")
  return answer !== undefined && !thoughts.has(answer.types[0])
}

/**
 * The default of these models, and a request to drop reasoning whose preceding content changed (a pruned result, a new
 * system prompt): otherwise the request would be rejected (MD-57).
 */
const bound = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } }
const bindingBeta = "thinking-binding-controls-2026-08-01"

/**
 * Rules by version. A Claude without a version is a preview, newer than any rule here; other names belong to a proxy, whose models
 * are unknown.
 */
const before5 = /^(?!claude-)|^claude-(?:[123]-|[a-z]+-[1-4](?!\d))/
const before47 = /^(?!claude-)|^claude-(?:[123]-|[a-z]+-(?:[1-3](?!\d)|4(?!\d)(?!-(?:[7-9]|\d\d)(?!\d))))/
/** Since 5.5, and Fable since 5.1: checks that the content before its reasoning is unchanged. */
const binding = /^claude-(?:[a-z]+-(?:5-[5-9]|5-\d\d|[6-9]|\d\d)|fable-5-[1-4])(?!\d)/

/** Whether the model will think: as the request says, else by default since version 5. */
const isThinking = ({ model, settings }: WireRequest): boolean => {
  const { thinking } = record(settings.body)
  return Predicate.isRecord(thinking) ? thinking["type"] !== "disabled" : !before5.test(model)
}

interface Shared {
  readonly system: ReadonlyArray<Json>
  readonly tools: ReadonlyArray<Json>
  readonly messages: ReadonlyArray<Message>
}

/**
 * Marks the prefixes that the next request will share: tools and system prompt, the conversation so far, and the end of
 * the previous request. The last one is needed because the provider looks back only 20 blocks from a mark, and one
 * answer may have more calls than that. If the caller set marks, none is added.
 */
const marked = (shared: Shared): Shared => {
  const { messages, system, tools } = shared
  const blocks = [...system, ...tools, ...messages.flatMap(({ content }) => content)]
  if (blocks.some((block) => "cache_control" in block)) return shared
  const answer = Math.max(
    messages.findLastIndex(({ role }) => role === "assistant"),
    0
  )
  const ends = [messages.length - 1, messages.slice(0, answer).findLastIndex(({ role }) => role === "user")]
  return {
    system: markedList(system),
    tools: system.length > 0 ? tools : markedList(tools),
    messages: messages.map(({ content, role }, index) => ({
      role,
      content: ends.includes(index) ? markedList(content) : content
    }))
  }
}

/** Marks the last block that can be marked: thinking and empty text cannot. */
const markedList = (blocks: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const last = blocks.findLastIndex(({ text: words, type }) => !thoughts.has(type) && words !== "")
  return blocks.map((block, index) => (index === last ? { ...block, cache_control: { type: "ephemeral" } } : block))
}

// --- reading

interface Block {
  readonly key: string
  readonly type: string
}

const isCall = ({ type }: Block): boolean => type === "tool_use" || type === "server_tool_use"

/** A delta of this release; some gateways leave the type out. */
const knownDelta = /^(?:text|thinking|signature|input_json)_delta$/

const read = (answer: Answer): Reader => {
  /** The open blocks, by index. Gateways use an index again. */
  const open = new Map<unknown, Block>()
  const ended = new Set<unknown>()
  let nth = 0

  const begin = (index: unknown, block: Json): Block => {
    end(index)
    const one = { key: `${nth++}`, type: String(block["type"]) }
    open.set(index, one)
    give(one, block)
    return one
  }

  const thinks = (key: string, words: unknown, signature: unknown): void =>
    answer.extend("reasoning", key, text(words) ?? "", {
      anthropic: present({ type: "thinking", signature: text(signature) })
    })

  const give = ({ key, type }: Block, block: Json): void => {
    switch (type) {
      case "text":
        return answer.extend("text", key, text(block["text"]) ?? "")
      case "thinking":
        return thinks(key, block["thinking"], block["signature"])
      case "redacted_thinking":
        return answer.extend("reasoning", key, "", { anthropic: { type, redactedData: block["data"] } })
      case "tool_use":
      case "server_tool_use": {
        const { input } = block
        const isGiven = Predicate.isString(input) || Object.keys(record(input)).length > 0
        return answer.call(key, {
          id: text(block["id"]),
          name: text(block["name"]),
          hosted: type === "server_tool_use",
          input: isGiven ? input : undefined
        })
      }
      default: {
        if (!type.endsWith("_tool_result")) return
        const { content, tool_use_id } = block
        const name = type === "web_search_tool_result" ? "web_search" : "code_execution"
        const isFailure = typeOf(content).endsWith("_error")
        return answer.result(text(tool_use_id) ?? "", name, content ?? null, isFailure)
      }
    }
  }

  /** A delta without a beginning is one of a text; after the end it is none. */
  const extend = (index: unknown, delta: Json): void => {
    if (!open.has(index) && ended.has(index)) return
    const block = open.get(index) ?? begin(index, { type: "text" })
    const { partial_json: input, signature, text: words, thinking, type = "text_delta" } = delta
    if (!knownDelta.test(String(type))) return
    if (isCall(block)) answer.call(block.key, { input })
    else if (thinking !== undefined || signature !== undefined) thinks(block.key, thinking, signature)
    else answer.extend("text", block.key, text(words) ?? "")
  }

  const end = (index: unknown): void => {
    const block = open.get(index)
    ended.add(index)
    open.delete(index)
    if (block === undefined) return
    if (!isCall(block)) {
      answer.close("text", block.key)
      answer.close("reasoning", block.key)
      // The output limit may have cut a call: the reason of the end decides about it.
    } else if (!answer.isCut(block.key)) answer.complete(block.key)
  }

  const finished = ({ stop_reason }: Json): void => {
    const reason = text(stop_reason)
    if (reason === "refusal") answer.refuse()
    if (reason !== undefined) answer.finish(reason)
  }

  /** A message, which is empty at its start. */
  const message = (value: Json): void => {
    const { content } = value
    answer.identity(value["id"], value["model"])
    answer.usage(usageOf(record(value["usage"])))
    const blocks = Predicate.isString(content) ? [{ type: "text", text: content }] : list(content).map(record)
    for (const [index, block] of blocks.entries()) {
      begin(index, block)
      end(index)
    }
    finished(value)
  }

  return (event, name) => {
    switch ("content" in event ? "message" : (event["type"] ?? name)) {
      case "message":
        message(event)
        return answer.end(answer.begun)
      case "message_start":
        return message(record(event["message"]))
      case "content_block_start":
        return void begin(event["index"], record(event["content_block"]))
      case "content_block_delta":
        return extend(event["index"], record(event["delta"]))
      case "content_block_stop":
        return end(event["index"])
      case "message_delta":
        answer.usage(usageOf(record(event["usage"])))
        return finished(record(event["delta"]))
      case "message_stop":
        return answer.end(true)
    }
  }
}

/** Anthropic counts what the cache served beside the input. */
const usageOf = (usage: Json): UsageFacts => ({
  freshInput: usage["input_tokens"],
  input: usage["prompt_tokens"],
  output: usage["output_tokens"] ?? usage["completion_tokens"],
  cacheRead: usage["cache_read_input_tokens"],
  cacheWrite: usage["cache_creation_input_tokens"]
})

export const messages: Protocol = {
  path: () => "messages",
  headers: (body): Readonly<Record<string, string>> =>
    "block_binding" in record(body["thinking"]) ? { "anthropic-beta": bindingBeta } : {},
  write,
  finish,
  whole: ["content"],
  read,
  takesHosted,
  makeLower: (profile) => (content) =>
    profile.thinking.required ? thought(content) : content.filter((part) => part.type !== "reasoning" || isSigned(part))
}

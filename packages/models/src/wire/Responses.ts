/**
 * OpenAI's Responses API and the servers that speak it. Spec: MD-14, MD-20, MD-22, MD-49, MD-100..MD-106 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import type { Profile } from "../Profiles.ts"
import { notedOn, resultInWords, resultText, urlOf } from "./History.ts"
import { defined, filled, type Json, record, text } from "./Json.ts"
import type { Protocol, WireRequest, WireTool } from "./Protocol.ts"
import { ResponsesReader } from "./ResponsesReader.ts"

type Content = Prompt.AssistantMessage["content"]

const write = (request: WireRequest): Json => {
  const { format, messages, model, profile, settings, thinks, tools } = request
  const { effort, maxOutputTokens, temperature, topP } = settings
  const sampled = !thinks || effort === "none"
  const include = [...(thinks ? ["reasoning.encrypted_content"] : []), ...tools.flatMap(includedBy)]
  return defined({
    model,
    input: messages.flatMap((message) => itemsOf(message, profile)),
    stream: true,
    // Nothing is stored at the provider: each request is built from the session's log.
    store: false,
    include: include.length === 0 ? undefined : [...new Set(include)],
    reasoning: filled({
      summary: thinks ? "auto" : undefined,
      effort: profile.effort === "none" ? undefined : effort
    }),
    max_output_tokens: maxOutputTokens,
    temperature: sampled ? temperature : undefined,
    top_p: sampled ? topP : undefined,
    text:
      format === undefined
        ? undefined
        : { format: { type: "json_schema", name: format.name, schema: format.schema, strict: false } },
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf), tool_choice: choiceOf(request) })
  })
}

// --- tools

const hostedType = (id: string): string => id.replace(/^openai\./, "")

const toolOf = (tool: WireTool): Json =>
  tool._tag === "Hosted"
    ? { ...tool.args, type: hostedType(tool.id) }
    : defined({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.schema,
        strict: false
      })

/** What the results of a hosted tool lack unless it is asked for. */
const includedBy = (tool: WireTool): ReadonlyArray<string> => {
  if (tool._tag === "Local") return []
  const type = hostedType(tool.id)
  if (type === "code_interpreter") return ["code_interpreter_call.outputs"]
  return type.startsWith("web_search") ? ["web_search_call.action.sources"] : []
}

const choiceOf = ({ profile, toolChoice, tools }: WireRequest): unknown => {
  if (toolChoice === "none" || !profile.toolChoice) return toolChoice === "none" ? toolChoice : "auto"
  if (Predicate.isString(toolChoice)) return toolChoice
  const hosted = tools.find((tool) => tool._tag === "Hosted")
  const isLocal = tools.some((tool) => tool._tag === "Local" && tool.name === toolChoice.tool)
  return hosted?._tag === "Hosted" && !isLocal
    ? { type: hostedType(hosted.id) }
    : { type: "function", name: toolChoice.tool }
}

// --- conversation

const itemsOf = (message: Prompt.Message, profile: Profile): ReadonlyArray<Json> => {
  switch (message.role) {
    case "system":
      return [{ role: profile.systemRole, content: message.content }]
    case "user":
      return [{ role: "user", content: message.content.map(inputOf) }]
    case "assistant":
      return answerItems(message.content)
    case "tool":
      return message.content.map((part) => ({
        type: "function_call_output",
        call_id: part.id,
        output: resultText(part)
      }))
  }
}

const inputOf = (part: Prompt.UserMessagePart): Json => {
  if (part.type === "text") return { type: "input_text", text: part.text }
  if (part.mediaType !== "application/pdf") {
    return {
      type: "input_image",
      image_url: urlOf(part),
      detail: text(notedOn(part, "openai")["imageDetail"]) ?? "auto"
    }
  }
  return part.data instanceof URL
    ? { type: "input_file", file_url: urlOf(part) }
    : { type: "input_file", filename: part.fileName ?? "document.pdf", file_data: urlOf(part) }
}

/** The parts of one item stand together: texts of a message, summaries of reasoning. */
const answerItems = (content: Content): ReadonlyArray<Json> => {
  const items: Array<Json> = []
  const parts = new Map<string, Array<Json>>()
  /** The list of an item's parts; the first part adds the item. */
  const partsOf = (id: string | undefined, item: (parts: ReadonlyArray<Json>) => Json): Array<Json> => {
    const known = id === undefined ? undefined : parts.get(id)
    if (known !== undefined) return known
    const made: Array<Json> = []
    items.push(item(made))
    if (id !== undefined) parts.set(id, made)
    return made
  }
  for (const part of content) {
    const { encryptedContent, itemId, phase } = notedOn(part, "openai")
    const id = text(itemId)
    if (part.type === "text") {
      const texts = partsOf(id, (content) => defined({ role: "assistant", content, id, phase: text(phase) }))
      texts.push({ type: "output_text", text: part.text })
    } else if (part.type === "tool-call") {
      const input = JSON.stringify(record(part.params))
      items.push(defined({ type: "function_call", call_id: part.id, name: part.name, arguments: input, id }))
    } else if (part.type === "reasoning" && id !== undefined) {
      const reasoning = { id, type: "reasoning", encrypted_content: encryptedContent }
      const summary = partsOf(id, (summary) => ({ ...reasoning, summary }))
      if (part.text !== "") summary.push({ type: "summary_text", text: part.text })
    }
  }
  return items
}

/**
 * Reasoning is sent back only with its encrypted content and what followed it: the provider stores nothing, so an id
 * alone is rejected. If part of that is missing, or an id is repeated, the answer is sent without reasoning, and
 * without the ids of its other parts, which would require it (MD-14).
 */
const makeLower = () => {
  const used = new Set<string>()
  return (content: Content): Content => {
    const ids = idsOf(content)
    if (ids === undefined || ids.some((id) => used.has(id))) return content.flatMap(withoutItem)
    for (const id of ids) used.add(id)
    return content
  }
}

const withoutItem = (part: Content[number]): Content => {
  if (part.type === "reasoning") return []
  if (part.type === "tool-result") return [resultInWords(part)]
  const { phase } = notedOn(part, "openai")
  const options = phase === undefined ? {} : { openai: { phase } }
  return part.type === "tool-call" && part.providerExecuted ? [] : [{ ...part, options }]
}

/** The item ids of an answer; undefined if it cannot be sent back unchanged. */
const idsOf = (content: Content): ReadonlyArray<string> | undefined => {
  const [reasonings, messages] = [new Set<string>(), new Set<string>()]
  const calls: Array<string> = []
  for (const part of content) {
    const { encryptedContent, itemId: id } = notedOn(part, "openai")
    if (part.type === "reasoning") {
      if (!Predicate.isString(id) || !Predicate.isString(encryptedContent)) return undefined
      reasonings.add(id)
    } else if (part.type === "tool-result" || (part.type === "tool-call" && part.providerExecuted)) {
      // Calls of hosted tools are not sent back, and their results as text only.
      return undefined
    } else if (id !== undefined) {
      if (!Predicate.isString(id)) return undefined
      if (part.type === "text") messages.add(id)
      else calls.push(id)
    }
  }
  const ids = [...reasonings, ...messages, ...calls]
  return content.at(-1)?.type === "reasoning" || new Set(ids).size < ids.length ? undefined : ids
}

export const responses: Protocol = {
  path: () => "responses",
  write,
  whole: ["output"],
  read: (answer, request) => {
    const reader = new ResponsesReader(answer, request)
    return (event, name) => reader.event(event, name)
  },
  // The writer turns their results into text: an answer with one goes back without its reasoning.
  takesHosted: () => true,
  makeLower
}

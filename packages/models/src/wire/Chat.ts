/**
 * Chat completions: the protocol of most servers. Spec: MD-20, MD-24, MD-26, MD-60, MD-80..MD-96 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import type { Profile } from "../Profile.ts"
import type { Answer } from "./Answer.ts"
import { resultText, urlOf } from "./History.ts"
import { defined, type Json, list, record, text } from "./Json.ts"
import type { Protocol, Reader, WireRequest, WireTool } from "./Protocol.ts"

// --- writing

const write = (request: WireRequest): Json => {
  const { format, messages, model, outputTokens, profile, settings, tools } = request
  const limit = settings.maxOutputTokens ?? (outputTokens === 0 ? undefined : outputTokens)
  return defined({
    model,
    messages: messages.flatMap((message) => messagesOf(message, profile)),
    stream: true,
    stream_options: profile.streamOptions ? { include_usage: true } : undefined,
    ...(profile.maxTokens === "none" ? {} : { [profile.maxTokens]: limit }),
    temperature: settings.temperature,
    top_p: settings.topP,
    stop: settings.stop,
    ...effortOf(settings.effort, profile),
    response_format:
      format === undefined
        ? undefined
        : { type: "json_schema", json_schema: { name: format.name, schema: format.schema } },
    ...(tools.length === 0 ? {} : { tools: tools.flatMap(toolOf), tool_choice: choiceOf(request) })
  })
}

const effortOf = (effort: string | undefined, { effort: form }: Profile): Json => {
  if (effort === undefined) return {}
  const thinks = effort !== "none" && effort !== "off"
  switch (form) {
    case "reasoning_effort":
      return { reasoning_effort: effort }
    case "reasoning.effort":
      return { reasoning: { effort } }
    case "thinking.type":
      return { thinking: { type: thinks ? "enabled" : "disabled" } }
    case "enable_thinking":
      return { enable_thinking: thinks }
    case "chat_template_kwargs":
      return { chat_template_kwargs: { enable_thinking: thinks } }
    case "none":
      return {}
  }
}

/** The protocol has no hosted tools. */
const toolOf = (tool: WireTool): ReadonlyArray<Json> =>
  tool._tag === "Hosted"
    ? []
    : [
        {
          type: "function",
          function: defined({ name: tool.name, description: tool.description, parameters: tool.schema })
        }
      ]

const choiceOf = ({ profile, toolChoice }: WireRequest): unknown => {
  if (toolChoice === "auto" || toolChoice === "none") return toolChoice
  if (!profile.toolChoice) return "auto"
  return toolChoice === "required" ? "required" : { type: "function", function: { name: toolChoice.tool } }
}

const messagesOf = (message: Prompt.Message, profile: Profile): ReadonlyArray<Json> => {
  switch (message.role) {
    case "system":
      return [{ role: profile.systemRole, content: message.content }]
    case "user":
      return [{ role: "user", content: userContent(message.content) }]
    case "assistant":
      return [answerOf(message.content, profile)]
    case "tool":
      return message.content.map((part) => ({ role: "tool", tool_call_id: part.id, content: resultText(part) }))
  }
}

/** Text alone is a string: some servers take nothing else. */
const userContent = (parts: Prompt.UserMessage["content"]): unknown => {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []))
  if (texts.length === parts.length) return texts.join("\n\n")
  return parts.map((part): Json => {
    if (part.type === "text") return { type: "text", text: part.text }
    if (part.mediaType !== "application/pdf") return { type: "image_url", image_url: { url: urlOf(part) } }
    return { type: "file", file: { filename: part.fileName ?? "document.pdf", file_data: urlOf(part) } }
  })
}

/** The metadata that a reader noted on a part. */
const notedOn = (part: { readonly options: unknown }): Json => record(record(part.options)["chat"])

const answerOf = (content: Prompt.AssistantMessage["content"], { thinking }: Profile): Json => {
  const calls = content.filter((part): part is Prompt.ToolCallPart => part.type === "tool-call")
  const said = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
  const thoughts = content.filter((part): part is Prompt.ReasoningPart => part.type === "reasoning")
  const back = thinking.back === "always" || (thinking.back === "calls" && calls.length > 0)
  const thought = thoughts.map((part) => part.text).join("\n\n")
  const noted = thoughts.map(notedOn)
  const field = text(noted[0]?.["field"]) ?? thinking.field
  const details = [...thoughts, ...calls].flatMap((part) => list(notedOn(part)["reasoning_details"]))
  return defined({
    role: "assistant",
    content: said === "" ? (calls.length > 0 ? null : "") : said,
    ...(back && (thought !== "" || thinking.required) ? { [field]: thought } : {}),
    reasoning_details: details.length === 0 ? undefined : details,
    tool_calls: calls.length === 0 ? undefined : calls.map(callOf)
  })
}

const callOf = (part: Prompt.ToolCallPart): Json =>
  defined({
    id: part.id,
    type: "function",
    function: { name: part.name, arguments: JSON.stringify(Predicate.isRecord(part.params) ? part.params : {}) },
    extra_content: notedOn(part)["extra_content"]
  })

// --- reading

const reasons: Readonly<Record<string, Response.FinishReason>> = {
  stop: "stop",
  end_turn: "stop",
  eos: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  content_filter: "content-filter",
  sensitive: "content-filter",
  tool_calls: "tool-calls",
  function_call: "tool-calls"
}

const read = (answer: Answer): Reader => {
  let identified = false
  let current: string | undefined
  let nth = 0
  let block = 0
  let speaking: "thoughts" | "words" | "calls" | undefined
  /** Details of thinking that belong to the whole answer, sent with its calls. */
  const details: Array<Json> = []

  const thoughts = (delta: Json): void => {
    const field = ["reasoning_content", "reasoning", "thinking"].find((name) => text(delta[name]) !== undefined)
    if (field !== undefined) {
      if (speaking !== "thoughts") block += 1
      speaking = "thoughts"
      answer.closeAll("text")
      answer.extend("reasoning", `${block}`, text(delta[field]) ?? "", { chat: { field } })
    }
    for (const detail of list(delta["reasoning_details"])) {
      const { index: _, ...rest } = record(detail)
      details.push({ ...rest, ...("index" in record(detail) ? { index: record(detail)["index"] } : {}) })
    }
  }

  const says = (words: string | undefined): void => {
    if (words === undefined) return
    if (speaking !== "words") block += 1
    speaking = "words"
    answer.closeAll("reasoning")
    answer.extend("text", `${block}`, words)
  }

  /** Content in parts, as Mistral sends it. */
  const part = (value: unknown): void => {
    const { text: words, thinking, type } = record(value)
    if (type === "thinking") {
      const inner = Predicate.isString(thinking)
        ? thinking
        : list(thinking)
            .map((one) => text(record(one)["text"]) ?? "")
            .join("")
      thoughts({ reasoning_content: inner })
    } else says(text(words))
  }

  /** The key of the call that a piece belongs to: by index, by id, else the last one. */
  const keyOf = (piece: Json, name: string | undefined): string => {
    const id = text(piece["id"])
    const at = piece["index"]
    const known = Predicate.isNumber(at) ? `at ${at}` : undefined
    const begins =
      current === undefined ||
      (id !== undefined && id !== ids.get(current)) ||
      (known === undefined && id === undefined && name !== undefined && answer.isWhole(current))
    if (known !== undefined) {
      const open = keys.get(known)
      if (open !== undefined && (id === undefined || ids.get(open) === undefined || ids.get(open) === id)) return open
    } else if (current !== undefined && !begins) return current
    const key = `call ${nth++}`
    if (known !== undefined) keys.set(known, key)
    return key
  }
  const keys = new Map<string, string>()
  const ids = new Map<string, string | undefined>()

  const call = (value: unknown): void => {
    const piece = record(value)
    const { arguments: input, name: given } = record(piece["function"])
    const name = text(given)
    const key = keyOf(piece, name)
    if (key !== current) {
      answer.closeAll()
      // The protocol has no end of a call: the next one ends it, if its input is complete.
      for (const open of answer.openCalls) if (answer.isWhole(open)) answer.complete(open)
    }
    current = key
    speaking = "calls"
    if (!ids.has(key) || ids.get(key) === undefined) ids.set(key, text(piece["id"]))
    answer.call(key, {
      id: text(piece["id"]),
      name,
      input,
      ...(piece["extra_content"] === undefined ? {} : { metadata: { chat: { extra_content: piece["extra_content"] } } })
    })
  }

  const delta = (value: Json): void => {
    thoughts(value)
    const { content } = value
    if (Predicate.isString(content)) says(text(content))
    else for (const one of list(content)) part(one)
    if (text(value["refusal"]) !== undefined) {
      says(text(value["refusal"]))
      refused = true
    }
    for (const one of list(value["tool_calls"])) call(one)
    if (Predicate.isRecord(value["function_call"])) call({ function: value["function_call"] })
  }
  let refused = false

  const finish = (reason: string, choice: Json): void => {
    if (reason === "error")
      return answer.fail({
        code: "server_error",
        message: "the server ended the answer with an error",
        ...record(choice["error"])
      })
    const known = reasons[reason] ?? "unknown"
    if (details.length > 0) {
      const [first] = answer.openCalls
      if (first === undefined)
        answer.extend("reasoning", `${speaking === "thoughts" ? block : block + 1}`, "", {
          chat: { reasoning_details: details }
        })
      else answer.call(first, { metadata: { chat: { reasoning_details: details } } })
    }
    if (known !== "length") for (const open of answer.openCalls) answer.complete(open)
    answer.finish(refused ? "content-filter" : known, refused ? { daybook: { refusal: true } } : undefined)
  }

  const event = (chunk: Json): void => {
    if (!identified && (text(chunk["id"]) ?? text(chunk["model"])) !== undefined) {
      identified = true
      answer.identity({ id: text(chunk["id"]), modelId: text(chunk["model"]) })
    }
    const choice = record(list(chunk["choices"]).find((one) => (record(one)["index"] ?? 0) === 0))
    answer.usage(usageOf(record(chunk["usage"] ?? choice["usage"] ?? record(chunk["x_groq"])["usage"])))
    delta(record(choice["delta"] ?? choice["message"]))
    const reason = text(choice["finish_reason"])
    // Some servers send an empty reason, or the word, with every chunk.
    if (reason !== undefined && reason !== "null" && !answer.finishing) finish(reason.toLowerCase(), choice)
  }
  return {
    event,
    whole: (body) => {
      event(body)
      answer.end(answer.begun)
    }
  }
}

const usageOf = (usage: Json) => {
  const prompt = record(usage["prompt_tokens_details"])
  return {
    input: usage["prompt_tokens"],
    output: usage["completion_tokens"],
    reasoning: record(usage["completion_tokens_details"])["reasoning_tokens"],
    cacheRead: prompt["cached_tokens"] ?? usage["cached_tokens"] ?? usage["prompt_cache_hit_tokens"],
    cacheWrite: prompt["cache_write_tokens"]
  }
}

export const chat: Protocol = {
  path: () => "chat/completions",
  headers: (key) => (key === undefined ? {} : { authorization: `Bearer ${key}` }),
  write,
  read,
  takesHosted: () => false,
  // What of its thinking goes back, the writer decides by the profile.
  makeLower: () => (content) => content
}

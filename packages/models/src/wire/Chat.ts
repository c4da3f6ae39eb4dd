/**
 * Chat completions: the protocol of most servers. Spec: MD-20, MD-24, MD-26, MD-60, MD-80..MD-96, MD-121..MD-126, MD-788 in
 * specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import { present } from "@daybook/log/support/Optional"
import type { Profile } from "../Profiles.ts"
import { type Answer, usageOf } from "./Answer.ts"
import { notedOn, resultText, substitute, urlOf } from "./History.ts"
import { count, filled, idOf, type Json, list, many, record, text, wordsOf } from "./Json.ts"
import { limitOf, type Protocol, type Reader, type WireRequest, type WireTool } from "./Protocol.ts"

// --- writing

const write = (request: WireRequest): Json => {
  const { format, messages, model, profile, settings, tools } = request
  const written = messages.flatMap((message) => messagesOf(message, profile))
  return present({
    ...profile.body,
    model,
    messages: profile.cacheMarks ? marked(written) : written,
    stream: true,
    stream_options: profile.streamOptions ? { include_usage: true } : undefined,
    ...(profile.maxTokens === "none" ? {} : { [profile.maxTokens]: limitOf(request) }),
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
  if (effort === undefined || form === "none") return {}
  const thinks = effort !== "none" && effort !== "off"
  const level = thinks ? { reasoning_effort: effort } : {}
  const thinking = { type: thinks ? "enabled" : "disabled" }
  const forms: Readonly<Record<typeof form, Json>> = {
    reasoning_effort: { reasoning_effort: effort },
    "reasoning.effort": { reasoning: { effort } },
    thinking: { thinking, ...level },
    "thinking.type": { thinking },
    enable_thinking: { enable_thinking: thinks },
    // Templates ignore what they do not know: some read the switch, some the level.
    chat_template_kwargs: { chat_template_kwargs: { enable_thinking: thinks, ...level } }
  }
  return forms[form]
}

const toolOf = (tool: WireTool): ReadonlyArray<Json> =>
  tool._tag === "Hosted"
    ? []
    : [
        {
          type: "function",
          function: present({ name: tool.name, description: tool.description, parameters: tool.schema })
        }
      ]

const choiceOf = ({ profile, toolChoice }: WireRequest): unknown => {
  if (toolChoice === "auto" && !profile.toolChoice) return undefined
  return Predicate.isString(toolChoice) ? toolChoice : { type: "function", function: { name: toolChoice.tool } }
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

const answerOf = (content: Prompt.AssistantMessage["content"], profile: Profile): Json => {
  const calls = content.filter((part): part is Prompt.ToolCallPart => part.type === "tool-call")
  const said = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
  const thoughts = content.filter((part): part is Prompt.ReasoningPart => part.type === "reasoning")
  const attached = attachments.map((name) => {
    const all = [...thoughts, ...calls].map((part) => notedOn(part, "chat")[name]).filter(Predicate.isNotUndefined)
    return [name, all.length === 0 ? undefined : name === "reasoning_opaque" ? all.at(-1) : all.flatMap(list)] as const
  })
  const { parts, ...fields } = thoughtsOf(thoughts, calls, profile)
  const words = said === "" ? (calls.length > 0 ? profile.noText : "") : said
  return present({
    role: "assistant",
    content: parts === undefined ? words : [...parts, ...(said === "" ? [] : [{ type: "text", text: said }])],
    ...fields,
    ...present(Object.fromEntries(attached)),
    tool_calls:
      calls.length === 0 ? undefined : calls.map((call, nth) => callOf(call, nth === 0 ? profile.signature : undefined))
  })
}

/** What servers attach to thinking: OpenRouter and MiniMax, LiteLLM, Copilot. */
const attachments = ["reasoning_details", "thinking_blocks", "reasoning_opaque"] as const

/** The thinking of an answer in the server's form: fields of the message, or parts of its content. */
const thoughtsOf = (
  thoughts: ReadonlyArray<Prompt.ReasoningPart>,
  calls: ReadonlyArray<Prompt.ToolCallPart>,
  { thinking }: Profile
): Json & { readonly parts?: ReadonlyArray<Json> } => {
  const { back, field, required } = thinking
  const goes = back === "always" || (back === "calls" && calls.length > 0)
  const own = thoughts.map((part) => part.text).join("\n\n")
  const thought = own === "" && required ? substitute(calls) : own
  if (!goes || thought === "") return {}
  const received = text(notedOn(thoughts[0], "chat")["field"])
  const form = field === "content" || field === "reasoning_details" ? field : (received ?? field)
  if (form === "content") return { parts: [{ type: "thinking", thinking: [{ type: "text", text: thought }] }] }
  if (form === "reasoning_details") return { [form]: [{ type: "reasoning.text", text: thought }] }
  return { [form]: thought }
}

const callOf = (part: Prompt.ToolCallPart, signature: string | undefined): Json =>
  present({
    id: part.id,
    type: "function",
    function: { name: part.name, arguments: JSON.stringify(record(part.params)) },
    extra_content:
      notedOn(part, "chat")["extra_content"] ??
      (signature === undefined ? undefined : { google: { thought_signature: signature } })
  })

/** Anthropic's cache marks as gateways take them: at the system prompt, and at the last message of the user and of a tool. */
const marked = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const last = new Set(
    ["system", "user", "tool"].map((role) => messages.findLastIndex((message) => message["role"] === role))
  )
  return messages.map((message, index) => (last.has(index) ? withMark(message) : message))
}

const mark = { cache_control: { type: "ephemeral" } }

const withMark = (message: Json): Json => {
  const { content, role } = message
  // The content of a result is a text.
  if (role === "tool") return { ...message, ...mark }
  const parts = Predicate.isString(content) ? [{ type: "text", text: content }] : list(content).map(record)
  return { ...message, content: [...parts.slice(0, -1), { ...parts.at(-1), ...mark }] }
}

// --- reading

/** Fields of thinking, by server. */
const fields = ["reasoning_content", "reasoning", "reasoning_text", "thinking"]

/** Where the text of a detail of this type stands. */
const textFields: Readonly<Record<string, string>> = {
  "reasoning.text": "text",
  "reasoning.summary": "summary",
  thinking: "thinking"
}

/** The details of thinking that gateways send in pieces beside its text: signatures and encrypted parts go back as they came. */
class Details {
  readonly #all: Array<Json> = []

  /** Adds a piece; pieces of one text have its type and index. Returns its words. */
  add(piece: Json): string {
    const last = this.#all.at(-1) ?? {}
    const field = textFields[String(piece["type"])] ?? ""
    const words = text(piece[field]) ?? ""
    if (field === "" || last["type"] !== piece["type"] || last["index"] !== piece["index"]) this.#all.push(piece)
    else {
      const whole = text(`${text(last[field]) ?? ""}${words}`)
      const given = Object.entries(piece).filter(([, value]) => !Predicate.isNullable(value))
      this.#all.splice(-1, 1, { ...last, ...Object.fromEntries(given), ...present({ [field]: whole }) })
    }
    return words
  }

  /** Removes and returns what goes back, if anything does; `words`: also the text, which came nowhere else. */
  take(words: boolean): ReadonlyArray<Json> | undefined {
    const all = this.#all.splice(0)
    const kept = all.filter(
      ({ signature, type }) =>
        words || !/^(?:reasoning\.text|thinking)$/.test(String(type)) || text(signature) !== undefined
    )
    return kept.length === 0 ? undefined : kept
  }
}

const read = (answer: Answer): Reader => {
  let current: string | undefined
  let nth = 0
  let speaking: "thoughts" | "words" | "calls" | undefined
  const [details, blocks] = [new Details(), new Details()]
  let opaque: string | undefined
  let field: string | undefined

  const thinks = (words: string | undefined, from: string): void => {
    if (words === undefined) return
    const begins = speaking !== "thoughts" || field !== from
    speaking = "thoughts"
    field = from
    answer.say("reasoning", words, begins ? { chat: { field } } : undefined)
  }

  const thoughts = (delta: Json): void => {
    const from = fields.find((name) => wordsOf(delta[name]) !== undefined)
    if (from !== undefined) thinks(wordsOf(delta[from]), from)
    const words = list(delta["reasoning_details"]).map((piece) => details.add(record(piece)))
    for (const block of list(delta["thinking_blocks"])) blocks.add(record(block))
    opaque = text(delta["reasoning_opaque"]) ?? opaque
    if (from === undefined && (field === undefined || field === "reasoning_details"))
      thinks(text(words.join("")), "reasoning_details")
  }

  /** Keeps the details so far with the thinking, or the call, that they belong to; a text needs none. */
  const keepDetails = (): void => {
    const chat = filled({
      reasoning_details: details.take(field === "reasoning_details"),
      thinking_blocks: blocks.take(false),
      reasoning_opaque: opaque
    })
    const [call] = answer.openCalls
    const metadata = chat && { chat }
    opaque = undefined
    if (metadata === undefined) return
    if (speaking === "thoughts") answer.say("reasoning", "", metadata)
    else if (call !== undefined) answer.call(call, { metadata })
  }

  const says = (words: string | undefined): void => {
    if (words === undefined) return
    if (speaking === "thoughts") keepDetails()
    speaking = "words"
    answer.say("text", words)
  }

  /** A text, or parts as Mistral sends them. */
  const content = (value: unknown): void => {
    for (const one of Array.isArray(value) ? value : [value]) {
      const { refusal, thinking, type } = record(one)
      if (type === "thinking") thinks(wordsOf(thinking), "content")
      else if (type === "refusal") refuses(refusal)
      else says(wordsOf(one))
    }
  }

  const refuses = (words: unknown): void => {
    if (text(words) === undefined) return
    answer.refuse()
    says(text(words))
  }

  const keys = new Map<unknown, string>()
  const ids = new Map<string, string>()

  /**
   * The key of the call that a piece belongs to: of the open call with its id, else by index, else the last one. Some servers give
   * all calls one index, or no id, or the pieces of one call two indices.
   */
  const keyOf = (index: number | undefined, id: string | undefined, name: string | undefined): string => {
    const same = id === undefined ? undefined : answer.openCalls.find((open) => ids.get(open) === id)
    if (same !== undefined && !answer.isWhole(same)) return same
    const isMore = id === undefined && name === undefined && current !== undefined && !answer.isWhole(current)
    const known = index === undefined ? current : (keys.get(index) ?? (isMore ? current : undefined))
    const another =
      name !== undefined &&
      known !== undefined &&
      (id === undefined ? answer.isWhole(known) : ids.has(known) && ids.get(known) !== id)
    if (known !== undefined && !another) return known
    const key = `call ${nth++}`
    keys.set(index, key)
    return key
  }

  const call = (value: unknown): void => {
    const piece = record(value)
    const { arguments: input, name: given } = Predicate.isRecord(piece["function"]) ? piece["function"] : piece
    const [id, name] = [idOf(piece["id"]), text(given)]
    const key = keyOf(count(piece["index"]), id, name)
    if (speaking === "thoughts") keepDetails()
    if (key !== current) {
      answer.closeAll()
      // The protocol has no end of a call: the next one ends it, if its input is complete.
      for (const open of answer.openCalls) if (answer.isWhole(open)) answer.complete(open)
    }
    current = key
    speaking = "calls"
    if (id !== undefined && !ids.has(key)) ids.set(key, id)
    const { extra_content } = piece
    answer.call(key, {
      id,
      name,
      input,
      metadata: extra_content === undefined ? undefined : { chat: { extra_content } }
    })
  }

  const delta = (value: Json): void => {
    thoughts(value)
    content(value["content"])
    refuses(value["refusal"])
    for (const one of many(value["tool_calls"])) call(one)
    if (Predicate.isRecord(value["function_call"])) call({ function: value["function_call"] })
  }

  return (chunk) => {
    answer.identity(chunk["id"], chunk["model"])
    const choices = many(chunk["choices"]).map(record)
    // Of several answers the first is read. Copilot divides it between choices of one index.
    const parts = choices.filter(({ index }) => (count(index) ?? 0) === 0)
    const last = parts.at(-1) ?? {}
    const counts = [chunk["usage"], last["usage"], record(chunk["x_groq"])["usage"], timed(record(chunk["timings"]))]
    const usage = counts.find(Predicate.isRecord)
    if (usage !== undefined) answer.usage(usageOf(usage))
    // MiniMax ends a stream with the whole message; the older completions have a text.
    const hasBegun = answer.begun
    for (const choice of parts) {
      const message = hasBegun ? undefined : choice["message"]
      delta(record(choice["delta"] ?? message ?? { content: choice["text"] }))
    }
    const reason = text(last["finish_reason"])
    if (reason === undefined || reason === "null") return
    keepDetails()
    // OpenRouter's own reason may hide that the server behind it failed.
    for (const word of [text(last["native_finish_reason"]), reason])
      if (word !== undefined) answer.finish(word, record(last["error"]))
  }
}

/** The timings of llama.cpp, which are in every answer, as usage. */
const timed = ({ cache_n: cached, predicted_n: output, prompt_n: fresh }: Json): Json | undefined =>
  count(fresh) === undefined
    ? undefined
    : { prompt_tokens: (count(fresh) ?? 0) + (count(cached) ?? 0), completion_tokens: output, cached_tokens: cached }

export const chat: Protocol = { path: () => "chat/completions", write, read, whole: ["choices"] }

/**
 * Google's own protocol, `generateContent`, of Gemini's API and of gateways to it. Spec: MD-110..MD-117 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import { present } from "@daybook/log/support/Optional"
import type { Answer, UsageFacts } from "./Answer.ts"
import { base64Of, joined, notedOn, resultText, urlOf } from "./History.ts"
import { count, filled, type Json, many, record, text } from "./Json.ts"
import type { Protocol, Reader, WireRequest, WireTool } from "./Protocol.ts"

// --- writing

const write = (request: WireRequest): Json => {
  const { messages, model, tools } = request
  const system = messages.flatMap(({ content, role }) => (role === "system" ? [{ text: content }] : []))
  return present({
    contents: contentsOf(messages, thinkingOf(model) === "level"),
    systemInstruction: system.length === 0 ? undefined : { parts: system },
    generationConfig: generationConfig(request),
    ...(tools.length === 0
      ? {}
      : { tools: toolsOf(tools), toolConfig: { functionCallingConfig: callingConfig(request) } })
  })
}

const generationConfig = ({ format, model, settings, thinks }: WireRequest): Json | undefined =>
  filled({
    maxOutputTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    topK: settings.topK,
    stopSequences: settings.stop,
    thinkingConfig: thinkingConfig(model, settings.effort, thinks),
    ...(format === undefined
      ? {}
      : { responseMimeType: "application/json", responseJsonSchema: plainSchema(format.schema) })
  })

/** How a model takes an effort: Gemini 2.5 as a budget of tokens, later ones as a level, earlier ones do not think. */
const thinkingOf = (model: string): "none" | "budget" | "level" => {
  const [, major, minor = "0"] = /gemini-(\d+)(?:\.(\d+))?/.exec(model) ?? []
  // Names without a version are aliases of the latest: `gemini-flash-latest`.
  if (major === undefined) return /gemini-(?:pro|flash)[\w-]*-latest/.test(model) ? "level" : "none"
  if (Number(major) >= 3) return "level"
  return Number(major) === 2 && Number(minor) >= 5 ? "budget" : "none"
}

/** Budgets and levels of Google's own table for `reasoning_effort`. Thinking of the larger models cannot be switched off. */
const thinkingConfig = (model: string, effort: string | undefined, thinks: boolean): Json | undefined => {
  const form = thinkingOf(model)
  if (/image|-tts|-live/.test(model) || (form === "none" && !thinks)) return undefined
  const isPro = model.includes("pro")
  const isOff = effort === "none" || effort === "off"
  if (form === "budget") {
    const budget = isOff ? (isPro ? 128 : 0) : budgets[effort ?? ""]
    return present({ includeThoughts: true, thinkingBudget: budget })
  }
  const least = isPro ? "low" : "minimal"
  const level = isOff || effort === "minimal" ? least : effort === "xhigh" || effort === "max" ? "high" : effort
  return present({ includeThoughts: true, thinkingLevel: level })
}

const budgets: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576
}

// --- tools

/** Functions stand in one entry, each hosted tool in its own: `google.google_search` as `googleSearch`. */
const toolsOf = (tools: ReadonlyArray<WireTool>): ReadonlyArray<Json> => {
  // `parametersJsonSchema` takes JSON Schema; `parameters` takes a subset of OpenAPI's, without unions and references.
  const functions = tools.flatMap((tool) =>
    tool._tag === "Hosted"
      ? []
      : [present({ name: tool.name, description: tool.description, parametersJsonSchema: plainSchema(tool.schema) })]
  )
  const hosted = tools.flatMap((tool) => (tool._tag === "Hosted" ? [{ [camel(tool.id)]: tool.args }] : []))
  return functions.length === 0 ? hosted : [{ functionDeclarations: functions }, ...hosted]
}

const camel = (id: string): string =>
  id.replace(/^google\./, "").replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

const plainSchema = (schema: Json): Json => present({ ...schema, $schema: undefined })

const callingConfig = ({ toolChoice }: WireRequest): Json => {
  if (toolChoice === "none") return { mode: "NONE" }
  if (toolChoice === "auto") return { mode: "AUTO" }
  return toolChoice === "required" ? { mode: "ANY" } : { mode: "ANY", allowedFunctionNames: [toolChoice.tool] }
}

// --- conversation

/** Neighbours of one role are one content; results must answer the calls before them alone. */
const contentsOf = (messages: ReadonlyArray<Prompt.Message>, signs: boolean): ReadonlyArray<Json> => {
  const all = messages.map((message) => ({ role: message.role, parts: partsOf(message, signs) }))
  return joined(
    all.filter(({ parts }) => parts.length > 0),
    (a, b) => (a.role === b.role ? { ...a, parts: [...a.parts, ...b.parts] } : undefined)
  ).map(({ parts, role }) => ({ role: role === "assistant" ? "model" : "user", parts }))
}

const partsOf = (message: Prompt.Message, signs: boolean): ReadonlyArray<Json> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return message.content.flatMap(userPart)
    case "assistant": {
      const parts = message.content.flatMap(answerPart)
      return signs ? signed(parts) : parts
    }
    case "tool":
      return message.content.map(resultPart)
  }
}

const userPart = (part: Prompt.UserMessagePart): ReadonlyArray<Json> => {
  if (part.type === "text") return part.text === "" ? [] : [{ text: part.text }]
  const data = base64Of(part)
  return data === undefined
    ? [{ fileData: { mimeType: part.mediaType, fileUri: urlOf(part) } }]
    : [{ inlineData: { mimeType: part.mediaType, data } }]
}

const signatureOf = (part: { readonly options: unknown }): Json =>
  present({ thoughtSignature: text(notedOn(part, "google")["thoughtSignature"]) })

const answerPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Json> => {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text, ...signatureOf(part) }]
    case "reasoning":
      return [{ text: part.text, thought: true, ...signatureOf(part) }]
    case "tool-call":
      return [{ functionCall: { id: part.id, name: part.name, args: record(part.params) }, ...signatureOf(part) }]
    default:
      return []
  }
}

/** Google's word for a call that Gemini did not make: it rejects a step whose first call has no signature. */
const unsigned = "skip_thought_signature_validator"

const signed = (parts: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const first = parts.findIndex((part) => "functionCall" in part)
  return parts.map((part, index) => (index === first ? { thoughtSignature: unsigned, ...part } : part))
}

const resultPart = (part: Prompt.ToolResultPart): Json => {
  const response = part.isFailure ? { error: resultText(part) } : { output: part.result ?? null }
  return { functionResponse: { id: part.id, name: part.name, response } }
}

// --- reading

/** The names of fields as gateways write them, with underscores. */
const underscored = new Map<string, string>()

/** A field under its name, or as gateways write it. */
const field = (json: Json, name: string): unknown => {
  if (name in json) return json[name]
  const other = underscored.get(name) ?? name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  underscored.set(name, other)
  return json[other]
}

const read = (answer: Answer): Reader => {
  let nth = 0
  const seen = new Set<string>()

  /** Parts of one kind are one block, up to a signature, which may follow alone, in an empty part. */
  const says = (given: "text" | "reasoning", words: string, signature: string | undefined): void => {
    const kind = words === "" ? answer.saying : given
    if (kind === undefined) return
    // Thinking is marked, so that it goes back as thinking.
    const google = filled({ thought: kind === "reasoning" ? true : undefined, thoughtSignature: signature })
    answer.say(kind, words, google && { google })
    if (signature !== undefined) answer.closeAll()
  }

  const call = (value: Json, signature: string | undefined): void => {
    const { args, name } = value
    const id = text(value["id"])
    if (name === undefined && args === undefined) return
    // A call that is sent again, with the same id, is the same call.
    const once = JSON.stringify([id, name, args])
    if (id !== undefined && seen.has(once)) return
    seen.add(once)
    answer.closeAll()
    const key = `${nth++}`
    const metadata = signature === undefined ? undefined : { google: { thoughtSignature: signature } }
    answer.call(key, { id, name: text(name), input: args ?? {}, metadata })
    answer.complete(key)
  }

  const part = (value: Json): void => {
    const signature = text(field(value, "thoughtSignature"))
    const called = field(value, "functionCall")
    if (Predicate.isRecord(called)) return call(called, signature)
    const { thought } = value
    const isThought = thought === true || text(thought) !== undefined
    const words = value["text"] ?? (isThought ? thought : undefined)
    if (Predicate.isString(words)) says(isThought ? "reasoning" : "text", words, signature)
  }

  return (given) => {
    // Google's Code Assist puts each event into an envelope.
    const chunk = Predicate.isRecord(given["response"]) ? given["response"] : given
    answer.identity(chunk["responseId"], chunk["modelVersion"])
    const usage = field(chunk, "usageMetadata")
    if (Predicate.isRecord(usage)) answer.usage(usageOf(usage))
    const candidate = record(many(chunk["candidates"]).find((one) => (count(record(one)["index"]) ?? 0) === 0))
    for (const one of many(record(candidate["content"])["parts"])) part(record(one))
    const reason = text(field(candidate, "finishReason"))
    const blocked = text(field(record(field(chunk, "promptFeedback")), "blockReason"))
    if (reason !== undefined && !/_UNSPECIFIED$/i.test(reason)) answer.finish(reason, {}, "other")
    else if (blocked !== undefined) answer.finish("content_filter")
  }
}

const usageOf = (usage: Json): UsageFacts => {
  const input = sum(field(usage, "promptTokenCount"), field(usage, "toolUsePromptTokenCount"))
  const output = sum(field(usage, "candidatesTokenCount"), field(usage, "thoughtsTokenCount"))
  const total = count(field(usage, "totalTokenCount")) ?? 0
  return {
    input,
    // Later reports may leave thinking out of all but the total.
    output: output && Math.max(output, total - (input ?? 0)),
    reasoning: field(usage, "thoughtsTokenCount"),
    cacheRead: field(usage, "cachedContentTokenCount")
  }
}

const sum = (...counts: ReadonlyArray<unknown>): number | undefined => {
  const known = counts.map(count).filter(Predicate.isNotUndefined)
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0)
}

export const gemini: Protocol = {
  path: ({ model }) => `${model.includes("/") ? model : `models/${model}`}:streamGenerateContent?alt=sse`,
  write,
  read,
  whole: ["candidates", "promptFeedback", "usageMetadata"],
  // Summaries of thinking need not go back; what is signed does.
  makeLower: () => (content) =>
    content.filter((part) => part.type !== "reasoning" || "thoughtSignature" in signatureOf(part))
}

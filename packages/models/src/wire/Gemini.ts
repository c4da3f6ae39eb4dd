/**
 * Google's own protocol, `generateContent`, of Gemini's API and of gateways to it. Spec: MD-110..MD-117 in specs/models.md.
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import type { Answer } from "./Answer.ts"
import { base64Of, resultText, urlOf } from "./History.ts"
import { count, defined, type Json, many, record, text } from "./Json.ts"
import type { Protocol, Reader, WireRequest, WireTool } from "./Protocol.ts"

// --- writing

const write = (request: WireRequest): Json => {
  const { messages, model, tools } = request
  const system = messages.flatMap(({ content, role }) => (role === "system" ? [{ text: content }] : []))
  const config = generationConfig(request)
  return defined({
    contents: contentsOf(messages, thinkingOf(model) === "level"),
    systemInstruction: system.length === 0 ? undefined : { parts: system },
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
    ...(tools.length === 0
      ? {}
      : { tools: toolsOf(tools), toolConfig: { functionCallingConfig: callingConfig(request) } })
  })
}

const generationConfig = ({ format, model, settings, thinks }: WireRequest): Json =>
  defined({
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
  const isOff = effort === "none" || effort === "off"
  if (form === "budget") {
    const budget = isOff ? (model.includes("pro") ? 128 : 0) : budgets.get(effort)
    return defined({ includeThoughts: true, thinkingBudget: budget })
  }
  const least = model.includes("pro") ? "low" : "minimal"
  const level = isOff || effort === "minimal" ? least : effort === "xhigh" || effort === "max" ? "high" : effort
  return defined({ includeThoughts: true, thinkingLevel: level })
}

const budgets: ReadonlyMap<unknown, number> = new Map([
  ["minimal", 1024],
  ["low", 1024],
  ["medium", 8192],
  ["high", 24_576],
  ["xhigh", 24_576],
  ["max", 24_576]
])

// --- tools

/** Functions stand in one entry, each hosted tool in its own: `google.google_search` as `googleSearch`. */
const toolsOf = (tools: ReadonlyArray<WireTool>): ReadonlyArray<Json> => {
  const functions = tools.flatMap((tool) => (tool._tag === "Local" ? [declarationOf(tool)] : []))
  const hosted = tools.flatMap((tool) => (tool._tag === "Hosted" ? [{ [camel(tool.id)]: tool.args }] : []))
  return functions.length === 0 ? hosted : [{ functionDeclarations: functions }, ...hosted]
}

const camel = (id: string): string =>
  id.replace(/^google\./, "").replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** `parametersJsonSchema` takes JSON Schema; `parameters` takes a subset of OpenAPI's, without unions and references. */
const declarationOf = ({ description, name, schema }: Extract<WireTool, { _tag: "Local" }>): Json =>
  defined({ name, description, parametersJsonSchema: plainSchema(schema) })

const plainSchema = (schema: Json): Json => defined({ ...schema, $schema: undefined })

const callingConfig = ({ profile, toolChoice }: WireRequest): Json => {
  if (toolChoice === "none") return { mode: "NONE" }
  if (toolChoice === "auto" || !profile.toolChoice) return { mode: "AUTO" }
  return toolChoice === "required" ? { mode: "ANY" } : { mode: "ANY", allowedFunctionNames: [toolChoice.tool] }
}

// --- conversation

interface Content {
  readonly role: "user" | "model"
  readonly parts: ReadonlyArray<Json>
  /** Whether it is all results: they must answer the calls before them alone. */
  readonly results: boolean
}

const contentsOf = (messages: ReadonlyArray<Prompt.Message>, signs: boolean): ReadonlyArray<Json> => {
  const all: Array<Content> = []
  for (const message of messages) {
    const content = contentOf(message, signs)
    const last = all.at(-1)
    if (content === undefined || content.parts.length === 0) continue
    if (last?.role !== content.role || last.results !== content.results) all.push(content)
    else all.splice(-1, 1, { ...last, parts: [...last.parts, ...content.parts] })
  }
  return all.map(({ parts, role }) => ({ role, parts }))
}

const contentOf = (message: Prompt.Message, signs: boolean): Content | undefined => {
  switch (message.role) {
    case "system":
      return undefined
    case "user":
      return { role: "user", parts: message.content.flatMap(userPart), results: false }
    case "assistant": {
      const parts = message.content.flatMap(answerPart)
      return { role: "model", parts: signs ? signed(parts) : parts, results: false }
    }
    case "tool":
      return { role: "user", parts: message.content.map(resultPart), results: true }
  }
}

const userPart = (part: Prompt.UserMessagePart): ReadonlyArray<Json> => {
  if (part.type === "text") return part.text === "" ? [] : [{ text: part.text }]
  const data = base64Of(part)
  return data === undefined
    ? [{ fileData: { mimeType: part.mediaType, fileUri: urlOf(part) } }]
    : [{ inlineData: { mimeType: part.mediaType, data } }]
}

/** The signature that the reader noted on a part. */
const signatureOf = (part: { readonly options: unknown }): Json =>
  defined({ thoughtSignature: text(record(record(part.options)["google"])["thoughtSignature"]) })

const answerPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Json> => {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text, ...signatureOf(part) }]
    case "reasoning":
      return [{ text: part.text, thought: true, ...signatureOf(part) }]
    case "tool-call": {
      const args = Predicate.isRecord(part.params) ? part.params : {}
      return [{ functionCall: { id: part.id, name: part.name, args }, ...signatureOf(part) }]
    }
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

const reasons: ReadonlyMap<string, Response.FinishReason> = new Map([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  ["SAFETY", "content-filter"],
  ["RECITATION", "content-filter"],
  ["BLOCKLIST", "content-filter"],
  ["PROHIBITED_CONTENT", "content-filter"],
  ["SPII", "content-filter"],
  ["MODEL_ARMOR", "content-filter"],
  ["IMAGE_SAFETY", "content-filter"],
  ["IMAGE_PROHIBITED_CONTENT", "content-filter"],
  ["IMAGE_RECITATION", "content-filter"]
])

/** The model failed, not the request: another try may succeed. */
const faults: ReadonlyMap<string, string> = new Map([
  ["MALFORMED_FUNCTION_CALL", "the model wrote a call that the server could not read"],
  ["MALFORMED_RESPONSE", "the model wrote an answer that the server could not read"],
  ["UNEXPECTED_TOOL_CALL", "the model called a tool that was not offered"],
  ["MISSING_THOUGHT_SIGNATURE", "the server misses a signature"],
  ["TOO_MANY_TOOL_CALLS", "the model made too many calls in a row"]
])

/** A field under its name, or as gateways write it, with underscores. */
const field = (json: Json, name: string): unknown =>
  json[name] ?? json[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]

const read = (answer: Answer): Reader => {
  let identified = false
  let nth = 0
  /** The open block: parts of one kind are one block, up to a signature. */
  let block: { readonly kind: "text" | "reasoning"; readonly key: string } | undefined
  const seen = new Set<string>()

  const closeBlock = (): void => {
    if (block !== undefined) answer.close(block.kind, block.key)
    block = undefined
  }

  const says = (kind: "text" | "reasoning", words: string, signature: string | undefined): void => {
    // A signature may follow alone, in an empty part.
    if (block !== undefined && block.kind !== kind && words !== "") closeBlock()
    if (block === undefined && words === "") return
    block ??= { kind, key: `${nth++}` }
    // Thinking is marked, so that it goes back as thinking.
    const google = defined({ thought: block.kind === "reasoning" ? true : undefined, thoughtSignature: signature })
    answer.extend(block.kind, block.key, words, Object.keys(google).length === 0 ? undefined : { google })
    if (signature !== undefined) closeBlock()
  }

  const call = (value: Json, signature: string | undefined): void => {
    const { args, name } = value
    const id = text(value["id"])
    // A call that is sent again, with the same id, is the same call.
    const once = JSON.stringify([id, name, args])
    if (id !== undefined && seen.has(once)) return
    seen.add(once)
    closeBlock()
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

  const finish = (reason: string): void => {
    closeBlock()
    const fault = faults.get(reason)
    // In the words of `classifyError`: retryable.
    if (fault !== undefined) answer.fail({ code: "server_error", message: `${fault} (${reason})` })
    else answer.finish(reasons.get(reason) ?? "other")
  }

  const event = (given: Json): void => {
    // Google's Code Assist puts each event into an envelope.
    const chunk = Predicate.isRecord(given["response"]) ? given["response"] : given
    const [id, modelId] = [text(chunk["responseId"]), text(chunk["modelVersion"])]
    if (!identified && (id ?? modelId) !== undefined) {
      identified = true
      answer.identity({ id, modelId })
    }
    answer.usage(usageOf(record(field(chunk, "usageMetadata"))))
    const candidate = record(many(chunk["candidates"]).find((one) => (count(record(one)["index"]) ?? 0) === 0))
    for (const one of many(record(candidate["content"])["parts"])) part(record(one))
    const reason = text(field(candidate, "finishReason"))?.toUpperCase()
    if (reason !== undefined && !reason.endsWith("_UNSPECIFIED")) return finish(reason)
    if (text(field(record(field(chunk, "promptFeedback")), "blockReason")) !== undefined)
      answer.finish("content-filter")
  }

  return {
    event,
    whole: (body) => {
      if (!["candidates", "promptFeedback", "usageMetadata"].some((field) => field in body)) return false
      event(body)
      answer.end(answer.begun)
      return true
    }
  }
}

const usageOf = (usage: Json) => ({
  input: sum(field(usage, "promptTokenCount"), field(usage, "toolUsePromptTokenCount")),
  output: sum(field(usage, "candidatesTokenCount"), field(usage, "thoughtsTokenCount")),
  reasoning: field(usage, "thoughtsTokenCount"),
  cacheRead: field(usage, "cachedContentTokenCount")
})

const sum = (...counts: ReadonlyArray<unknown>): number | undefined => {
  const known = counts.map(count).filter(Predicate.isNotUndefined)
  return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0)
}

export const gemini: Protocol = {
  path: ({ model }) => `${model.includes("/") ? model : `models/${model}`}:streamGenerateContent?alt=sse`,
  headers: (key, _, { profile }) =>
    key === undefined
      ? {}
      : profile.keyHeader === "bearer"
        ? { authorization: `Bearer ${key}` }
        : { "x-goog-api-key": key },
  write,
  read,
  takesHosted: () => false,
  // Summaries of thinking need not go back; what is signed does.
  makeLower: () => (content) =>
    content.filter((part) => part.type !== "reasoning" || "thoughtSignature" in signatureOf(part))
}

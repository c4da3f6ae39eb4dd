/**
 * Records of Codex's rollouts, in all forms so far, and what their contents and figures become. Since September 2025 a
 * record is an envelope `{ timestamp, type, payload }`; before, response items stand alone after a header. Spec:
 * FM-150, FM-152..FM-155 in specs/formats.md.
 */
import { Option, Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import {
  type AnswerPart,
  type Content,
  contentBy,
  shownText,
  type Spending,
  textOf
} from "../conversation/Conversation.ts"
import { isTooDeep, parsed } from "../lines/JsonLines.ts"
import { beyond, count, list, nothing, text, tolerant, unchecked, word } from "../reading/Tolerant.ts"

/** Cumulative or of one request. Cached tokens are part of `input_tokens`, reasoning is part of `output_tokens`. */
const TokenUsage = Schema.Struct({
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_input_tokens: count,
  output_tokens: count,
  reasoning_output_tokens: count
})
type TokenUsage = typeof TokenUsage.Type

/** What any payload may have. Fields that this reader does not use stay in the item's `record`. */
export const Payload = Schema.Struct({
  type: word,
  id: word,
  timestamp: text,
  cwd: word,
  model: word,
  model_provider: word,
  forked_from_id: word,
  parent_thread_id: word,
  source: unchecked,
  role: word,
  author: word,
  content: unchecked,
  summary: unchecked,
  call_id: word,
  name: word,
  arguments: unchecked,
  input: unchecked,
  output: unchecked,
  tools: unchecked,
  action: unchecked,
  status: word,
  result: text,
  revised_prompt: text,
  message: text,
  images: list,
  item: unchecked,
  replacement_history: list,
  thread_name: word,
  num_turns: tolerant(Schema.NonNegativeInt),
  info: tolerant(Schema.Struct({ total_token_usage: tolerant(TokenUsage), last_token_usage: tolerant(TokenUsage) })),
  usage: tolerant(TokenUsage),
  thread_token_usage: tolerant(TokenUsage)
})
export type Payload = typeof Payload.Type

const decodePayload = Schema.decodeUnknownSync(Payload)

const Envelope = Schema.Struct({ timestamp: text, type: word, payload: unchecked, record_type: word, id: word })
const decodeEnvelope = Schema.decodeUnknownSync(Envelope)

export interface CodexRecord {
  /** `session_meta`, `response_item`, `event_msg`, `turn_context`, `compacted` and others; `state` marks nothing. */
  readonly type: string
  readonly timestamp: string | undefined
  readonly payload: Payload
}

/** Reads any JSON object as a record: every field may be absent. */
export const decode = (value: JsonRecord): CodexRecord => {
  const { id, payload, record_type, timestamp, type } = decodeEnvelope(value)
  if (type !== undefined && Predicate.isReadonlyRecord(payload)) {
    return { type, timestamp, payload: decodePayload(payload) }
  }
  const bare = decodePayload(value)
  if (type !== undefined) return { type: "response_item", timestamp, payload: bare }
  const isHeader = record_type === undefined && id !== undefined && timestamp !== undefined
  return { type: isHeader ? "session_meta" : (record_type ?? "unknown"), timestamp, payload: bare }
}

// Converts the contents of Codex's items: prompts, answers, inputs and outputs of tools.

const ContentItem = Schema.Struct({ type: word, text, image_url: text, audio_url: text })
const decodeItem = Schema.decodeUnknownOption(ContentItem)

/** A data URL as media, any other URL as its text. */
const shownUrl = (url: string): Content => {
  const comma = url.indexOf(",")
  const [, mime] = /^data:([^;,]+)(?:;[^,]*)?;base64$/.exec(url.slice(0, Math.max(0, comma)).slice(0, 300)) ?? []
  return mime === undefined ? shownText(url) : [{ type: "media", mime, data: url.slice(comma + 1) }]
}

/** What an item of a content shows. An item of an unknown type is shown as its JSON. */
const shown = (given: unknown): Content => {
  if (typeof given === "string") return shownText(given)
  const item = Option.getOrUndefined(decodeItem(given))
  if (item?.text !== undefined) return shownText(item.text)
  const url = item?.image_url ?? item?.audio_url
  return url === undefined ? shownText(JSON.stringify(given) ?? "") : shownUrl(url)
}

/** Content as rollouts write it: a text, items, or nothing. */
export const contentOf = contentBy(shown)

const Asked = Schema.Struct({ type: Schema.Literal("UserMessage"), content: Schema.Array(Schema.Unknown) })
const decodeAsked = Schema.decodeUnknownOption(Asked)
const isShownAsked = Schema.is(
  Schema.Union(Schema.Struct({ text: Schema.String }), Schema.Struct({ image_url: Schema.String }))
)

/** What a person said in an event: texts and pictures, without paths of files and names of skills. */
export const askedBy = ({ images, item, message, type }: Payload): Content => {
  if (type === "user_message") {
    const pictures = images?.filter(Predicate.isString).map((url) => ({ image_url: url }))
    return [...contentOf(message), ...contentOf(pictures)]
  }
  const asked = Option.getOrUndefined(decodeAsked(item))
  return contentOf(asked?.content.filter(isShownAsked))
}

const inputOf = (given: unknown): JsonRecord => {
  const value = typeof given === "string" ? parsed(given) : given
  // Arguments are JSON within JSON: the reader of lines has not seen how deep they are.
  if (typeof given === "string" && isTooDeep(value, given.length)) return { input: given }
  if (Predicate.isReadonlyRecord(value)) return value
  return given === undefined || given === null ? {} : { input: given }
}

const Outcome = Schema.Struct({ metadata: Schema.Struct({ exit_code: Schema.Number }) })
const isOutcome = Schema.is(Outcome)

/** The exit code that the first line of an output says, or its JSON. */
const failedText = (text: string): boolean => {
  const [, code] = /^Exit code: (-?\d{1,9})/.exec(text) ?? []
  if (code !== undefined) return Number(code) !== 0
  const outcome = text.startsWith("{") && text.length < 1_000_000 ? parsed(text) : undefined
  return isOutcome(outcome) && outcome.metadata.exit_code !== 0
}

/** The output of a call: a text, items, or in older rollouts `{ content, success }`. */
export const outputOf = (output: unknown): { readonly content: Content; readonly failed: boolean } => {
  if (Predicate.isReadonlyRecord(output) && "content" in output) {
    return { content: contentOf(output["content"]), failed: output["success"] === false }
  }
  return { content: contentOf(output), failed: typeof output === "string" && failedText(output) }
}

// Counts the growth of the cumulative usage, since `token_count` events repeat it; after a fall, the last request
// counts (FM-156).

const spentOf = (usage: TokenUsage): Spending => {
  const cacheRead = usage.cached_input_tokens ?? 0
  const cacheWrite = usage.cache_write_input_tokens ?? 0
  return {
    ...nothing,
    input: Math.max(0, (usage.input_tokens ?? 0) - cacheRead - cacheWrite),
    output: usage.output_tokens ?? 0,
    reasoning: usage.reasoning_output_tokens ?? 0,
    cacheRead,
    cacheWrite
  }
}

const allOf = ({ cacheRead, cacheWrite, input, output }: Spending): number => input + cacheRead + cacheWrite + output

export const make = () => {
  let before = nothing
  return {
    /** What was spent since the last count. */
    count: ({ info, thread_token_usage, usage }: Payload): Spending => {
      const total = info?.total_token_usage ?? thread_token_usage
      const last = info?.last_token_usage ?? usage
      if (total === undefined) return last === undefined ? nothing : spentOf(last)
      const now = spentOf(total)
      const fell = allOf(now) < allOf(before)
      const growth = fell ? spentOf(last ?? total) : beyond(now, before)
      before = now
      return growth
    }
  }
}

// Says which part of an answer a response item is.

export interface ModelItem {
  readonly parts: ReadonlyArray<AnswerPart>
  /** The result, if the provider ran the tool itself. */
  readonly result?: {
    readonly callID: string
    readonly tool: string
    readonly content: Content
    readonly failed: boolean
  }
}

const joined = (...texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n\n")

const textParts = (type: "text" | "reasoning", text: string): ReadonlyArray<AnswerPart> =>
  text === "" ? [] : [{ type, text }]

/** A call that the provider ran: its result is part of the item. */
const providerCall = (payload: Payload, key: string, tool: string, input: unknown, content: Content): ModelItem => {
  const callID = payload.call_id ?? payload.id ?? key
  return {
    parts: [{ type: "call", id: callID, name: tool, input: inputOf(input) }],
    result: { callID, tool, content, failed: payload.status === "failed" || payload.status === "incomplete" }
  }
}

const call = (payload: Payload, key: string, name: string, input: unknown): ModelItem => ({
  parts: [{ type: "call", id: payload.call_id ?? payload.id ?? key, name, input: inputOf(input) }]
})

/** Undefined: a model did not produce the item. `key` names a call without an id. */
export const producedOf = (payload: Payload, key: string): ModelItem | undefined => {
  switch (payload.type) {
    case "message":
      return payload.role === "assistant" ? { parts: textParts("text", textOf(contentOf(payload.content))) } : undefined
    case "reasoning":
      // The readable part. The encrypted one stays in the record.
      return {
        parts: textParts("reasoning", joined(textOf(contentOf(payload.summary)), textOf(contentOf(payload.content))))
      }
    case "function_call":
      return call(payload, key, payload.name ?? "unknown", payload.arguments)
    case "custom_tool_call":
      return call(payload, key, payload.name ?? "unknown", payload.input)
    case "local_shell_call":
      return call(payload, key, "local_shell", payload.action)
    case "tool_search_call":
      return call(payload, key, "tool_search", payload.arguments)
    case "web_search_call":
      return providerCall(payload, key, "web_search", payload.action, [])
    case "image_generation_call":
      return providerCall(
        payload,
        key,
        "image_generation",
        payload.revised_prompt === undefined ? {} : { prompt: payload.revised_prompt },
        payload.result ? [{ type: "media", mime: "image/png", data: payload.result }] : []
      )
    default:
      return undefined
  }
}

// Says what a user message of a rollout is: a prompt, a text of Codex, or a command of a person (FM-151).

/** What texts that Codex adds as user messages start with. */
const added =
  /^(?:<(?:environment_context|environments_instructions|user_instructions|turn_aborted|permissions instructions|collaboration_mode|subagent_notification|skills_instructions|apps_instructions|plugins_instructions|realtime_conversation|personality_spec|model_switch|hook_prompt|goal_context|codex_internal_context|skill|recommended_plugins|token_budget|INSTRUCTIONS)[\s>]|# AGENTS\.md instructions|Warning: (?:apply_patch was requested|The maximum number of unified exec))/

export type UserMessage =
  | { readonly is: "prompt" }
  | { readonly is: "note" }
  | { readonly is: "command"; readonly command: string; readonly output: string; readonly exitCode: number | undefined }

const between = (text: string, open: string, close: string): string => {
  const start = text.indexOf(open)
  const end = start < 0 ? -1 : text.lastIndexOf(close)
  return end < start + open.length ? "" : text.slice(start + open.length, end).replace(/^\n|\n$/g, "")
}

/** The folder that an environment context names: older rollouts have it nowhere else. */
export const folderOf = (text: string): string | undefined => {
  if (!text.trimStart().startsWith("<environment_context>")) return undefined
  const tagged = between(text, "<cwd>", "</cwd>").trim()
  if (tagged.startsWith("/")) return tagged
  const [, listed] = /^Current working directory: (.+)$/m.exec(text.slice(0, 10_000)) ?? []
  return listed?.trim()
}

export const userMessageOf = (given: string): UserMessage => {
  const text = given.trimStart()
  if (added.test(text)) return { is: "note" }
  if (!text.startsWith("<user_shell_command>")) return { is: "prompt" }
  const result = between(text, "<result>", "</result>")
  const [, code] = /^Exit code: (-?\d{1,9})$/m.exec(result) ?? []
  const output = result.indexOf("Output:\n")
  return {
    is: "command",
    command: between(
      text.slice(0, text.indexOf("<result>") < 0 ? undefined : text.indexOf("<result>")),
      "<command>",
      "</command>"
    ),
    output: output < 0 ? result : result.slice(output + "Output:\n".length),
    exitCode: code === undefined ? undefined : Number(code)
  }
}

/**
 * Adapts the wire to `@effect/ai-anthropic`, which decodes events strictly, treats a local tool named `bash` as
 * Anthropic's, and ends the stream on tool input that is not JSON. `GuardedModel` completes the calls whose end is
 * dropped here. Spec: MD-20..MD-24.
 */
import { Predicate } from "effect"
import { type AnthropicRequest, finishRequest, requestHeaders } from "./AnthropicRequest.ts"
import { type Json, offeredTools, parseObject, type Wire } from "./WireFetch.ts"
import type { WireNames } from "./WireNames.ts"

/** Local names that the library confuses with Anthropic's tools: they get an alias (MD-58). */
export const shadowed: ReadonlySet<string> = new Set([
  "bash",
  "code_execution",
  "computer",
  "str_replace_based_edit_tool",
  "str_replace_editor",
  "web_search"
])
const blocks: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "web_search_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result"
])
const deltas: ReadonlySet<string> = new Set(["text_delta", "thinking_delta", "signature_delta", "input_json_delta"])
const citations: ReadonlySet<string> = new Set([
  "char_location",
  "page_location",
  "content_block_location",
  "web_search_result_location",
  "search_result_location"
])
const stopReasons: ReadonlySet<string> = new Set([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal"
])
const errorTypes: ReadonlySet<string> = new Set([
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "request_too_large",
  "rate_limit_error",
  "api_error",
  "overloaded_error"
])

/** Completes the request, and adapts the answer for the library. */
export const makeAnthropicWire = (options: AnthropicRequest, { toWire }: Pick<WireNames, "toWire">): Wire => {
  /** A model may call a tool by the name it knows, instead of the alias. */
  const called = (name: string, request: Json): string => {
    const alias = shadowed.has(name) ? toWire(name) : name
    return offeredTools(request).has(alias) ? alias : name
  }
  /** Open blocks that were passed on: local calls with name and input, others with an empty name. */
  const open = new Map<unknown, { readonly tool: string; input: string }>()
  return {
    headers: (body) => requestHeaders(body, options),
    request: (body) => finishRequest({ ...body, messages: list(body["messages"]).map(unquoteResults) }, options),
    event: (event, request) => {
      const index = event["index"]
      switch (event["type"]) {
        case "ping":
        case "message_stop":
          return [event]
        case "message_start":
          return [{ type: "message_start", message: startOf(record(event["message"])) }]
        case "message_delta":
          return [messageDelta(event)]
        case "content_block_start": {
          const block = record(event["content_block"])
          const type = String(block["type"])
          const given = String(block["name"] ?? "")
          const name = type === "tool_use" ? called(given, request) : given
          const hosted = type === "server_tool_use" && (name === "web_search" || name === "code_execution")
          if (!blocks.has(type) && !hosted) return []
          open.set(index, { tool: type === "tool_use" ? name : "", input: "" })
          const defaults =
            type === "thinking" ? { signature: "", thinking: "" } : hosted || type === "tool_use" ? { input: {} } : {}
          const named = type === "tool_use" ? { name } : {}
          return [{ ...event, content_block: { ...defaults, ...block, ...named } }]
        }
        case "content_block_delta": {
          const delta = record(event["delta"])
          const type = String(delta["type"])
          const block = open.get(index)
          if (block === undefined) return []
          if (type === "citations_delta") return citations.has(String(record(delta["citation"])["type"])) ? [event] : []
          if (!deltas.has(type)) return []
          if (Predicate.isString(delta["partial_json"])) block.input += delta["partial_json"]
          return [event]
        }
        case "content_block_stop": {
          const block = open.get(index)
          open.delete(index)
          if (block === undefined) return []
          const readable =
            block.tool === "" ||
            (offeredTools(request).has(block.tool) &&
              !shadowed.has(block.tool) &&
              (block.input === "" || isJson(block.input)))
          return readable ? [event] : []
        }
        case "error": {
          const error = record(event["error"])
          const type = errorTypes.has(String(error["type"])) ? error["type"] : "api_error"
          return [{ type: "error", error: { type, message: String(error["message"] ?? error["type"] ?? "unknown") } }]
        }
        default:
          return []
      }
    }
  }
}

/** Keeps only the fields that are read: others may change form without harm. */
const startOf = (message: Json): Json => {
  const usage = record(message["usage"])
  return {
    id: String(message["id"] ?? ""),
    type: "message",
    role: "assistant",
    model: String(message["model"] ?? ""),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: count(usage["input_tokens"]) ?? 0,
      output_tokens: count(usage["output_tokens"]) ?? 0,
      cache_creation_input_tokens: count(usage["cache_creation_input_tokens"]) ?? null,
      cache_read_input_tokens: count(usage["cache_read_input_tokens"]) ?? null
    }
  }
}

const messageDelta = (event: Json): Json => {
  const delta = record(event["delta"])
  const usage = record(event["usage"])
  const reason = delta["stop_reason"]
  return {
    type: "message_delta",
    delta: {
      stop_reason:
        reason === "model_context_window_exceeded" ? "max_tokens" : stopReasons.has(String(reason)) ? reason : null,
      stop_sequence: Predicate.isString(delta["stop_sequence"]) ? delta["stop_sequence"] : null
    },
    usage: { output_tokens: count(usage["output_tokens"]) ?? null }
  }
}

/** Sends a text result as text, not as a JSON string literal. */
const unquoteResults = (message: unknown): unknown => {
  if (!Predicate.isRecord(message) || !Array.isArray(message["content"])) return message
  return {
    ...message,
    content: message["content"].map((part: unknown) =>
      Predicate.isRecord(part) && part["type"] === "tool_result" ? { ...part, content: unquote(part["content"]) } : part
    )
  }
}

/** The text in a JSON string literal; other values are returned unchanged. */
export const unquote = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !value.startsWith('"')) return value
  try {
    const text: unknown = JSON.parse(value)
    return Predicate.isString(text) ? text : value
  } catch {
    return value
  }
}

const isJson = (text: string): boolean => parseObject(text) !== undefined

const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const count = (value: unknown): number | undefined =>
  Predicate.isNumber(value) && Number.isInteger(value) && value >= 0 ? value : undefined

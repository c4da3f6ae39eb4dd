/**
 * Adapts the wire to `@effect/ai-openai`, which skips events that it cannot decode (even the final one), reports a
 * failed response as a normal end, and ends its stream on tool input that is not JSON. `GuardedModel` completes the
 * calls whose end is dropped here. Spec: MD-20..MD-24.
 */
import { Predicate } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import { unquote } from "./AnthropicWire.ts"
import { defined, headersOf, lay } from "./Settings.ts"
import { type Json, offeredTools, parseObject, type Wire } from "./WireFetch.ts"

const serviceTiers: ReadonlySet<unknown> = new Set(["auto", "default", "flex", "scale", "priority"])

/**
 * Builds the wire for one request.
 *
 * @param settings the request's settings; this protocol has no `top_k` and no stop sequences
 * @param reasons whether the model reasons: then it accepts `temperature` and `top_p` only with the effort `none`
 * (MD-49)
 */
export const makeOpenAiWire = (settings: RequestSettings, reasons: boolean): Wire => ({
  request: (body) =>
    lay(
      {
        ...body,
        ...named(record(body["reasoning"]), settings, reasons),
        input: list(body["input"]).map((item) =>
          Predicate.isRecord(item) && item["type"] === "function_call_output"
            ? { ...item, output: unquote(item["output"]) }
            : item
        )
      },
      settings
    ),
  headers: () => headersOf(settings),
  event: (event, request) => {
    switch (event["type"]) {
      case "response.failed": {
        const error = record(record(event["response"])["error"])
        return [errorEvent(string(error["code"]) ?? "server_error", string(error["message"]) ?? "the response failed")]
      }
      case "error": {
        // Some servers wrap the fields in `error`, as HTTP error bodies do.
        const error = Predicate.isRecord(event["error"]) ? event["error"] : event
        const code = string(error["code"]) ?? (error === event ? undefined : string(error["type"]))
        return [errorEvent(code ?? "server_error", string(error["message"]) ?? "the provider reported an error")]
      }
      case "response.created":
      case "response.in_progress":
      case "response.completed":
      case "response.incomplete":
        return [{ ...numbered(event), response: responseOf(record(event["response"])) }]
      case "response.output_item.added":
      case "response.output_item.done": {
        const item = record(event["item"])
        if (event["type"] === "response.output_item.done" && item["type"] === "function_call") {
          const readable =
            offeredTools(request).has(String(item["name"])) && parseObject(String(item["arguments"])) !== undefined
          if (!readable) return []
        }
        return [{ ...numbered(event), item: item["type"] === "web_search_call" ? searchOf(item) : item }]
      }
      case "response.refusal.delta":
        // A refusal is the answer for the person; the library would drop it.
        return [{ ...numbered(event), type: "response.output_text.delta", logprobs: [] }]
      default:
        return [numbered(event)]
    }
  },
  malformed: () => [errorEvent("malformed_chunk", "the provider sent a part of its answer that is not JSON")]
})

const named = (reasoning: Json, settings: RequestSettings, reasons: boolean): Json => {
  const { effort, maxOutputTokens, temperature, topP } = settings
  const sampled = !reasons || effort === "none"
  return defined({
    max_output_tokens: maxOutputTokens,
    temperature: sampled ? temperature : undefined,
    top_p: sampled ? topP : undefined,
    reasoning: effort === undefined ? undefined : { ...reasoning, effort }
  })
}

const errorEvent = (code: string, message: string): Json => ({
  type: "error",
  sequence_number: 0,
  code,
  message,
  param: null
})

const numbered = (event: Json): Json =>
  Predicate.isNumber(event["sequence_number"]) ? event : { ...event, sequence_number: 0 }

/** Keeps only the fields that are read: the rest repeats the request and may change form without harm. */
const responseOf = (response: Json): Json => {
  const usage = Predicate.isRecord(response["usage"]) ? response["usage"] : undefined
  const reason = record(response["incomplete_details"])["reason"]
  return {
    id: String(response["id"] ?? ""),
    object: "response",
    created_at: count(response["created_at"]),
    model: String(response["model"] ?? ""),
    error: null,
    incomplete_details: reason === "max_output_tokens" || reason === "content_filter" ? { reason } : null,
    output: [],
    instructions: null,
    parallel_tool_calls: true,
    tools: [],
    tool_choice: "auto",
    metadata: null,
    temperature: null,
    top_p: null,
    ...(serviceTiers.has(response["service_tier"]) ? { service_tier: response["service_tier"] } : {}),
    ...(usage === undefined
      ? {}
      : {
          usage: {
            input_tokens: count(usage["input_tokens"]),
            input_tokens_details: { cached_tokens: count(record(usage["input_tokens_details"])["cached_tokens"]) },
            output_tokens: count(usage["output_tokens"]),
            output_tokens_details: {
              reasoning_tokens: count(record(usage["output_tokens_details"])["reasoning_tokens"])
            },
            total_tokens: count(usage["total_tokens"])
          }
        })
  }
}

/** Gives a web search that lists several queries, as newer answers do, the one query that the library expects. */
const searchOf = (item: Json): Json => {
  const action = record(item["action"])
  if (action["type"] !== "search" || Predicate.isString(action["query"])) return item
  return { ...item, action: { ...action, query: list(action["queries"]).filter(Predicate.isString).join("; ") } }
}

const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const string = (value: unknown): string | undefined => (Predicate.isString(value) && value !== "" ? value : undefined)
const count = (value: unknown): number => (Predicate.isNumber(value) && Number.isFinite(value) ? Math.floor(value) : 0)

/** Servers of Anthropic's Messages, OpenAI's Responses and Gemini's own protocol. */
import { Predicate } from "effect"
import { faultsOf } from "../ProviderHistory.ts"
import {
  type Action,
  type Json,
  list,
  type ModelServer,
  type Note,
  pieces,
  reasonOf,
  record,
  refusal,
  repeated,
  type Wire
} from "./ModelServer.ts"

const event = (value: { readonly type: string } & Json): string =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`

/** What the thinking of this answer is signed with. */
const signatureOf = (reason: string): string => Buffer.from(`signed ${reason}`).toString("base64")

// --- Anthropic

const block = (index: number, start: Json, deltas: ReadonlyArray<Json>): ReadonlyArray<string> => [
  event({ type: "content_block_start", index, content_block: start }),
  ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
  event({ type: "content_block_stop", index })
]

const anthropicBlock = (action: Action, index: number, nth: number): ReadonlyArray<string> => {
  if ("text" in action) {
    const deltas = pieces(action.text).map((text) => ({ type: "text_delta", text }))
    return block(index, { type: "text", text: "" }, deltas)
  }
  if ("reason" in action) {
    return block(index, { type: "thinking", thinking: "", signature: "" }, [
      ...pieces(action.reason).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: signatureOf(action.reason) }
    ])
  }
  const start = { type: "tool_use", id: `toolu_${nth}_${index}`, name: action.tool, input: {} }
  const deltas = pieces(JSON.stringify(action.input)).map((partial_json) => ({
    type: "input_json_delta",
    partial_json
  }))
  return block(index, start, deltas)
}

const writeAnthropic = (actions: ReadonlyArray<Action>, nth: number): Wire => {
  const usage = { input_tokens: 100, cache_read_input_tokens: 20, cache_creation_input_tokens: 0, output_tokens: 1 }
  const stop_reason = actions.some((one) => "tool" in one) ? "tool_use" : "end_turn"
  const message = {
    id: `msg_${nth}`,
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    usage
  }
  const last = actions.at(-1)
  const said = actions.flatMap((action, index) => anthropicBlock(action, index, nth))
  // A text that does not end has no end of its block.
  const open = last !== undefined && "text" in last ? said.slice(0, -1) : said
  return {
    said: [event({ type: "message_start", message }), event({ type: "ping" }), ...open],
    end: [
      ...said.slice(open.length),
      event({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 30 } }),
      event({ type: "message_stop" })
    ]
  }
}

const checkAnthropic = (body: Json, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note): void => {
  for (const fault of faultsOf("anthropic", body)) note(fault)
  if (!Predicate.isNumber(body["max_tokens"])) note("max_tokens: Field required")
  for (const message of list(body["messages"])) {
    if (message["role"] !== "assistant") continue
    const content = list(message["content"])
    const call = content.find(({ type }) => type === "tool_use")
    const words = content.flatMap(({ text, type }) => (type === "text" ? [String(text)] : [])).join("")
    const before = repeated(said, call === undefined ? undefined : JSON.stringify(call["input"]), words)
    const reason = before === undefined ? "" : reasonOf(before)
    const [thought] = content.filter(({ type }) => type === "thinking")
    if (reason === "") continue
    if (thought?.["thinking"] !== reason || thought["signature"] !== signatureOf(reason)) {
      note("thinking blocks in the latest assistant message cannot be modified")
    }
  }
}

const anthropicError = (type: string, message: string) => ({
  type: "error",
  error: { type, message },
  request_id: "req_1"
})

const anthropic: ModelServer = {
  profile: "anthropic",
  api: "anthropic",
  model: "claude-opus-5-5",
  base: "",
  path: "/v1/messages",
  key: "x-api-key",
  pictures: true,
  thinks: true,
  write: writeAnthropic,
  check: checkAnthropic,
  refusals: {
    overflow: refusal(
      400,
      anthropicError("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum")
    ),
    rateLimit: refusal(429, anthropicError("rate_limit_error", "This request would exceed your rate limit"), {
      "retry-after": "7"
    }),
    auth: refusal(401, anthropicError("authentication_error", "invalid x-api-key"))
  }
}

// --- OpenAI's Responses

const responsesItem = (action: Action, output_index: number, nth: number): ReadonlyArray<string> => {
  const id = `item_${nth}_${output_index}`
  const frames = (item: Json, deltas: ReadonlyArray<Json & { readonly type: string }>, done: Json) => [
    event({ type: "response.output_item.added", output_index, item: { id, status: "in_progress", ...item } }),
    ...deltas.map((delta) => event({ item_id: id, output_index, ...delta })),
    event({ type: "response.output_item.done", output_index, item: { id, status: "completed", ...item, ...done } })
  ]
  if ("text" in action) {
    const deltas = pieces(action.text).map((delta) => ({ type: "response.output_text.delta", content_index: 0, delta }))
    const content = [{ type: "output_text", text: action.text, annotations: [] }]
    return frames({ type: "message", role: "assistant", content: [] }, deltas, { content })
  }
  if ("reason" in action) {
    const deltas = pieces(action.reason).map((delta) => ({
      type: "response.reasoning_summary_text.delta",
      summary_index: 0,
      delta
    }))
    const summary = [{ type: "summary_text", text: action.reason }]
    return frames({ type: "reasoning", summary: [] }, deltas, {
      summary,
      encrypted_content: signatureOf(action.reason)
    })
  }
  const call = { type: "function_call", call_id: `call_${nth}_${output_index}`, name: action.tool }
  const input = JSON.stringify(action.input)
  const deltas = pieces(input).map((delta) => ({ type: "response.function_call_arguments.delta", delta }))
  return frames({ ...call, arguments: "" }, deltas, { arguments: input })
}

const writeResponses = (actions: ReadonlyArray<Action>, nth: number): Wire => {
  const response = { id: `resp_${nth}`, object: "response", created_at: 1_790_000_000, model: "m", output: [] }
  const said = actions.flatMap((action, index) => responsesItem(action, index, nth))
  const last = actions.at(-1)
  const open = last !== undefined && "text" in last ? said.slice(0, -1) : said
  const usage = { input_tokens: 120, output_tokens: 30, total_tokens: 150, input_tokens_details: { cached_tokens: 20 } }
  return {
    said: [event({ type: "response.created", response: { ...response, status: "in_progress" } }), ...open],
    end: [
      ...said.slice(open.length),
      event({ type: "response.completed", response: { ...response, status: "completed", usage } })
    ]
  }
}

const checkResponses = (body: Json, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note): void => {
  for (const fault of faultsOf("openai", body)) note(fault)
  if (body["store"] !== false) note("store must be false")
  for (const tool of list(body["tools"])) {
    if (tool["type"] !== "function" || !("parameters" in tool)) note(`the tool ${String(tool["name"])} has no schema`)
  }
  const items = list(body["input"])
  for (const [index, item] of items.entries()) {
    if (item["type"] !== "function_call") continue
    const before = repeated(said, String(item["arguments"]), "")
    const reason = before === undefined ? "" : reasonOf(before)
    // The calls of one answer follow its reasoning item.
    const from = items.slice(0, index).findLast(({ type }) => type !== "function_call")
    if (reason !== "" && from?.["encrypted_content"] !== signatureOf(reason)) {
      note("a function_call was provided without its required reasoning item")
    }
  }
}

const openaiError = (message: string, code: string) => ({
  error: { message, type: "invalid_request_error", param: null, code }
})

const openai: ModelServer = {
  profile: "openai",
  api: "openai",
  model: "gpt-6.1-terra",
  base: "/v1",
  path: "/responses",
  key: "authorization",
  pictures: true,
  thinks: true,
  write: writeResponses,
  check: checkResponses,
  refusals: {
    overflow: refusal(
      400,
      openaiError("Your input exceeds the context window of this model.", "context_length_exceeded")
    ),
    rateLimit: refusal(429, openaiError("Rate limit reached for gpt-6.1-terra", "rate_limit_exceeded"), {
      "retry-after": "7"
    }),
    auth: refusal(401, openaiError("Incorrect API key provided", "invalid_api_key"))
  }
}

const azure: ModelServer = { ...openai, profile: "azure", model: "house-gpt", base: "/openai/v1" }

// --- Gemini

const writeGemini = (actions: ReadonlyArray<Action>, nth: number): Wire => {
  const frame = (part: Json, more: Json = {}, candidate: Json = {}) =>
    `data: ${JSON.stringify({
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, ...candidate }],
      modelVersion: "m",
      responseId: `r_${nth}`,
      ...more
    })}\r\n\r\n`
  const reason = reasonOf(actions)
  const isFirst = (action: Action) => action === actions.find((one) => "tool" in one)
  const said = actions.flatMap((action) => {
    if ("text" in action) return pieces(action.text).map((text) => frame({ text }))
    if ("reason" in action) return pieces(action.reason).map((text) => frame({ text, thought: true }))
    const functionCall = { name: action.tool, args: action.input }
    return [frame({ functionCall, ...(isFirst(action) ? { thoughtSignature: signatureOf(reason) } : {}) })]
  })
  const usageMetadata = {
    promptTokenCount: 120,
    cachedContentTokenCount: 20,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 10,
    totalTokenCount: 150
  }
  return { said, end: [frame({ text: "" }, { usageMetadata }, { finishReason: "STOP" })] }
}

const checkGemini = (body: Json, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note): void => {
  const contents = list(body["contents"])
  if (contents[0]?.["role"] !== "user") note("contents must begin with the user")
  for (const [index, { parts, role }] of contents.entries()) {
    if (role !== "user" && role !== "model") note(`Please use a valid role: user, model; not ${String(role)}`)
    if (role === "model" && contents[index - 1]?.["role"] === "model") note("an answer follows an answer")
    const all = list(parts)
    if (all.length === 0) note("contents.parts must not be empty")
    const calls = all.filter((part) => "functionCall" in part)
    if (calls.length === 0) continue
    const answers = list(contents[index + 1]?.["parts"]).filter((part) => "functionResponse" in part)
    const names = (of: ReadonlyArray<Json>, kind: string) => of.map((part) => record(part[kind])["name"]).join()
    if (names(calls, "functionCall") !== names(answers, "functionResponse")) {
      note("the number of function response parts must equal that of function call parts")
    }
    const before = repeated(said, JSON.stringify(record(calls[0]?.["functionCall"])["args"]), "")
    const wanted = before === undefined ? undefined : signatureOf(reasonOf(before))
    const signature = calls[0]?.["thoughtSignature"]
    if (!Predicate.isString(signature)) note("Function call is missing a thought_signature in functionCall parts.")
    else if (wanted !== undefined && signature !== wanted) note("Invalid thought signature")
  }
}

const geminiError = (code: number, message: string, status: string) => [{ error: { code, message, status } }]

const gemini: ModelServer = {
  profile: "google",
  api: "gemini",
  model: "gemini-3.1-pro-preview",
  base: "/v1beta",
  path: "/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse",
  key: "x-goog-api-key",
  pictures: true,
  thinks: true,
  write: writeGemini,
  check: checkGemini,
  refusals: {
    overflow: refusal(
      400,
      geminiError(
        400,
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
        "INVALID_ARGUMENT"
      )
    ),
    rateLimit: refusal(429, geminiError(429, "Resource has been exhausted", "RESOURCE_EXHAUSTED"), {
      "retry-after": "7"
    }),
    auth: refusal(400, geminiError(400, "API key not valid.", "INVALID_ARGUMENT"))
  }
}

export const nativeServers: ReadonlyArray<ModelServer> = [anthropic, openai, azure, gemini]

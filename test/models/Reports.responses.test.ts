/** What servers of the Responses API were reported to send: OpenAI, Azure, gateways, vLLM, LM Studio, Ollama. */
import { data, raw, reported, type Row } from "./support/Reported.ts"
import { events, refusal, type Reply } from "./support/Server.ts"

type Json = Record<string, unknown>
type Event = { readonly type: string } & Json

const created: Event = { type: "response.created", response: { id: "resp_1", model: "m" } }
const added = (output_index: number, item: Json): Event => ({ type: "response.output_item.added", output_index, item })
const done = (output_index: number, item: Json): Event => ({ type: "response.output_item.done", output_index, item })
const delta = (words: string, more: Json = {}): Event => ({
  type: "response.output_text.delta",
  item_id: "m1",
  output_index: 0,
  content_index: 0,
  delta: words,
  ...more
})
const said = (text: string, id = "m1") => ({
  type: "message",
  id,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }]
})
const call = (input: unknown, more: Json = {}) => ({
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "look",
  arguments: input,
  ...more
})
const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8, input_tokens_details: { cached_tokens: 2 } }
const completed = (output: unknown = [], more: Json = {}): Event => ({
  type: "response.completed",
  response: { id: "resp_1", status: "completed", output, usage, ...more }
})
const one = { path: "one" }
const two = { path: "two" }
const text = JSON.stringify
const fine = { text: "fine", reason: "stop" }
const answer = (...middle: ReadonlyArray<Event>): Reply => events(created, ...middle, completed())

const texts: ReadonlyArray<Row> = [
  ["MD-100", "deltas without items", answer(delta("fi"), delta("ne")), fine],
  [
    "MD-100",
    "deltas without ids and positions",
    answer({ type: "response.output_text.delta", delta: "fi" }, { type: "response.output_text.delta", delta: "ne" }),
    fine
  ],
  [
    "MD-100",
    "only the end of the text",
    answer(added(0, said("")), {
      type: "response.output_text.done",
      item_id: "m1",
      output_index: 0,
      content_index: 0,
      text: "fine"
    }),
    fine
  ],
  [
    "MD-100",
    "only the end of the part",
    answer({
      type: "response.content_part.done",
      item_id: "m1",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "fine" }
    }),
    fine
  ],
  ["MD-100", "only the end of the item", answer(done(0, said("fine"))), fine],
  [
    "MD-100",
    "only the final event",
    events(created, completed([said("fine")])),
    { ...fine, input: 5, output: 3, cached: 2 }
  ],
  [
    "MD-100",
    "all of them",
    answer(
      added(0, said("")),
      delta("fine"),
      { type: "response.output_text.done", item_id: "m1", output_index: 0, content_index: 0, text: "fine" },
      {
        type: "response.content_part.done",
        item_id: "m1",
        output_index: 0,
        content_index: 0,
        part: { type: "output_text", text: "fine" }
      },
      done(0, said("fine"))
    ),
    fine
  ],
  [
    "MD-100",
    "another id in each event (Copilot)",
    events(
      created,
      added(0, said("", "a")),
      delta("fi", { item_id: "b" }),
      delta("ne", { item_id: "c" }),
      done(0, said("fine", "d")),
      completed([said("fine", "e")])
    ),
    fine
  ],
  ["MD-100", "duplicated frames of the end", answer(delta("fine"), done(0, said("fine")), done(0, said("fine"))), fine],
  [
    "MD-100",
    "names of events only",
    { chunks: answer(delta("fine")).chunks.map((one) => one.replace(/"type":"response[\w.]+",?/, "")) },
    fine
  ],
  ["MD-100", "types without names of events", raw(data(created), data(delta("fine")), data(completed())), fine],
  ["MD-100", "a content that is a text", answer(done(0, { type: "message", id: "m1", content: "fine" })), fine],
  [
    "MD-100",
    "a part of the type text (gateways)",
    answer(done(0, { type: "message", id: "m1", content: [{ type: "text", text: "fine" }] })),
    fine
  ],
  ["MD-100", "a delta that is an object (gateways)", answer(delta("x", { delta: { text: "fine" } })), fine],
  ["MD-100", "a delta that is null or empty", answer(delta("x", { delta: null }), delta(""), delta("fine")), fine],
  [
    "MD-100",
    "positions in texts",
    answer(delta("fi", { output_index: "0" }), delta("ne", { output_index: "0" })),
    fine
  ],
  [
    "MD-100",
    "annotations are skipped",
    answer(delta("fine"), {
      type: "response.output_text.annotation.added",
      item_id: "m1",
      annotation: { type: "url_citation" }
    }),
    fine
  ],
  [
    "MD-100",
    "events of later releases, a keepalive and pings",
    answer(
      { type: "keepalive" },
      { type: "ping" },
      { type: "response.queued", response: {} },
      { type: "response.new.thing", item: { type: "new" } },
      { type: "codex.rate_limits", x: 1 },
      delta("fine")
    ),
    fine
  ],
  [
    "MD-100",
    "two messages (commentary, final answer)",
    events(
      created,
      added(0, said("", "a")),
      delta("fi", { item_id: "a" }),
      done(0, said("fi", "a")),
      added(1, said("", "b")),
      delta("ne", { item_id: "b", output_index: 1 }),
      done(1, said("ne", "b")),
      completed()
    ),
    fine
  ],
  [
    "MD-100",
    "a whole answer",
    refusal(200, { id: "resp_1", object: "response", status: "completed", output: [said("fine")], usage }),
    { ...fine, input: 5, output: 3 }
  ],
  [
    "MD-100",
    "a whole answer as an event without a type",
    raw(data({ id: "resp_1", object: "response", status: "completed", output: [said("fine")] })),
    fine
  ],
  [
    "MD-103",
    "a refusal",
    answer({ type: "response.refusal.delta", item_id: "m1", output_index: 0, content_index: 0, delta: "no" }),
    { text: "no", reason: "content-filter" }
  ],
  [
    "MD-101",
    "thinking in its own fields (vLLM)",
    answer(
      { type: "response.reasoning_text.delta", item_id: "r1", output_index: 0, content_index: 0, delta: "hm" },
      delta("fine", { output_index: 1 })
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-101",
    "thinking under older names",
    answer(
      { type: "response.reasoning.delta", item_id: "r1", output_index: 0, delta: "hm" },
      delta("fine", { output_index: 1 })
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-101",
    "a summary only in its item",
    answer(
      done(0, { type: "reasoning", id: "r1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "e" }),
      delta("fine", { output_index: 1 })
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-101",
    "a summary that is null, or a text",
    answer(
      done(0, { type: "reasoning", id: "r1", summary: null, content: null }),
      done(1, { type: "reasoning", id: "r2", summary: "hm" }),
      delta("fine", { output_index: 2 })
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-101",
    "encrypted thinking alone",
    answer(
      added(0, { type: "reasoning", id: "r1", summary: [] }),
      done(0, { type: "reasoning", id: "r1", summary: [], encrypted_content: "e" }),
      delta("fine", { output_index: 1 })
    ),
    { ...fine, thought: "" }
  ]
]

const calls: ReadonlyArray<Row> = [
  [
    "MD-102",
    "an input only in the item",
    answer(added(0, call("")), done(0, call(text(one)))),
    { calls: [one], reason: "tool-calls" }
  ],
  ["MD-102", "an input only in its announcement", answer(added(0, call(text(one)))), { calls: [one] }],
  [
    "MD-102",
    "an input in pieces and in the item",
    answer(
      added(0, call("")),
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '{"path":' },
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '"one"}' },
      { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 0, arguments: text(one) },
      done(0, call(text(one)))
    ),
    { calls: [one] }
  ],
  ["MD-102", "an input as an object", answer(done(0, call(one))), { calls: [one] }],
  ["MD-102", "an input that is null", answer(done(0, call(null))), { calls: [{}] }],
  [
    "MD-102",
    "a call only in the final event",
    events(created, completed([call(text(one))])),
    { calls: [one], reason: "tool-calls" }
  ],
  [
    "MD-102",
    "calls in turns",
    answer(
      added(0, call("")),
      added(1, call("", { id: "fc_2", call_id: "call_2" })),
      { type: "response.function_call_arguments.delta", item_id: "fc_2", output_index: 1, delta: text(two) },
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: text(one) },
      done(0, call(text(one))),
      done(1, call(text(two), { id: "fc_2", call_id: "call_2" }))
    ),
    { reason: "tool-calls" }
  ],
  [
    "MD-102",
    "pieces without an id, by position",
    answer(
      added(0, call("")),
      { type: "response.function_call_arguments.delta", output_index: 0, delta: text(one) },
      done(0, call(""))
    ),
    { calls: [one] }
  ],
  [
    "MD-102",
    "no call_id (LM Studio)",
    answer(done(0, call(text(one), { call_id: undefined }))),
    { calls: [one], ids: ["fc_1"] }
  ],
  [
    "MD-102",
    "no id (Ollama)",
    answer(done(0, call(text(one), { id: undefined })), done(1, call(text(two), { id: undefined, call_id: "call_2" }))),
    { calls: [one, two], ids: ["call_1", "call_2"] }
  ],
  ["MD-102", "ids that are empty", answer(done(0, call(text(one), { id: "", call_id: "" }))), { calls: [one] }],
  [
    "MD-102",
    "one call_id for two calls",
    answer(done(0, call(text(one))), done(1, call(text(two), { id: "fc_2" }))),
    { calls: [one, two], ids: ["call_1", "call_1_2"] }
  ],
  [
    "MD-102",
    "the same call in the final event, under another id",
    events(created, done(0, call(text(one))), completed([call(text(one), { id: "fc_9" })])),
    { calls: [one] }
  ],
  [
    "MD-102",
    "a name with its namespace (gpt-oss)",
    answer(done(0, call(text(one), { name: "functions.look" }))),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-102",
    "an item of the type tool_call (gateways)",
    answer(done(0, { ...call(text(one)), type: "tool_call" })),
    { calls: [one] }
  ],
  [
    "MD-102",
    "a call that the limit cut",
    events(
      created,
      added(0, call("")),
      { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '{"path":"on' },
      {
        type: "response.incomplete",
        response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output: [] }
      }
    ),
    { calls: [], reason: "length" }
  ]
]

const ends: ReadonlyArray<Row> = [
  [
    "MD-104",
    "response.done (gateways)",
    events(created, delta("fine"), { type: "response.done", response: { status: "completed", output: [] } }),
    fine
  ],
  [
    "MD-104",
    "a mark of chat completions after the end",
    { chunks: [...answer(delta("fine")).chunks, data("[DONE]")] },
    fine
  ],
  [
    "MD-104",
    "a mark of chat completions alone",
    { chunks: [...events(created, delta("fine")).chunks, data("[DONE]")] },
    { text: "fine" }
  ],
  ["MD-104", "no final event", events(created, delta("fine")), { error: "before it was complete", retryable: true }],
  ["MD-104", "a final event without a response", events(created, delta("fine"), { type: "response.completed" }), fine],
  ["MD-104", "an output that is null", events(created, delta("fine"), completed(null)), fine],
  ["MD-104", "an output as an object", events(created, completed({ 0: said("x") })), { calls: [] }],
  [
    "MD-103",
    "an incomplete answer by a filter",
    events(created, delta("fi"), {
      type: "response.incomplete",
      response: { incomplete_details: { reason: "content_filter" } }
    }),
    { text: "fi", reason: "content-filter" }
  ],
  [
    "MD-103",
    "an incomplete answer without a reason",
    events(created, delta("fi"), { type: "response.incomplete", response: {} }),
    { text: "fi", reason: "unknown" }
  ],
  [
    "MD-103",
    "a completed answer whose status is incomplete",
    events(
      created,
      delta("fi"),
      completed([], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })
    ),
    { text: "fi", reason: "length" }
  ],
  [
    "MD-104",
    "a failure",
    events(created, {
      type: "response.failed",
      response: { status: "failed", error: { code: "server_error", message: "oops" } }
    }),
    { error: "oops", retryable: true }
  ],
  [
    "MD-104",
    "a failure by a rate",
    events(created, {
      type: "response.failed",
      response: { error: { code: "rate_limit_exceeded", message: "Please try again in 1.2s" } }
    }),
    { error: "try again", retryable: true }
  ],
  [
    "MD-104",
    "a failure without an error",
    events(created, { type: "response.failed", response: { error: null } }),
    { error: "the response failed" }
  ],
  [
    "MD-104",
    "a failure whose error is a text",
    events(created, { type: "response.failed", response: { error: "engine lost" } }),
    { error: "engine lost" }
  ],
  [
    "MD-104",
    "a failure in its status only",
    events(created, completed([], { status: "failed", error: { message: "oops" } })),
    { error: "oops" }
  ],
  [
    "MD-17",
    "an error as an event",
    events(created, { type: "error", code: "server_error", message: "oops", param: null }),
    { error: "oops", retryable: true }
  ],
  [
    "MD-17",
    "an error as an event, wrapped (Azure, Codex)",
    events(created, { type: "error", status: 429, error: { type: "rate_limit_error", message: "slow down" } }),
    { error: "slow down", retryable: true }
  ],
  [
    "MD-17",
    "an error under detail (Codex)",
    refusal(400, { detail: "Unsupported parameter: max_output_tokens" }),
    { error: "Unsupported parameter", retryable: false }
  ],
  [
    "MD-17",
    "a response whose error is null",
    events({ ...created, error: null } as Event, delta("fine"), completed()),
    fine
  ],
  [
    "MD-17",
    "a full window in the stream",
    events(created, {
      type: "response.failed",
      response: {
        error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." }
      }
    }),
    { error: "exceeds the context window", retryable: false }
  ],
  [
    "MD-96",
    "usage in the names of chat completions",
    events(
      created,
      delta("fine"),
      completed([], { usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } } })
    ),
    { input: 5, output: 3, cached: 2 }
  ],
  ["MD-96", "usage that is null", events(created, delta("fine"), completed([], { usage: null })), fine],
  [
    "MD-93",
    "an answer of chat completions",
    refusal(200, { choices: [{ message: { content: "x" } }] }),
    { error: "JSON that is no answer", retryable: false }
  ],
  [
    "MD-93",
    "events of chat completions",
    raw(data({ choices: [{ delta: { content: "x" } }] }), data("[DONE]")),
    { error: "before it was complete" }
  ]
]

reported("openai", "gpt-5.1", [...texts, ...calls, ...ends])

/** What servers of the Responses API were reported to send: OpenAI, Azure, gateways, vLLM, LM Studio, Ollama. */
import { data, fine, raw, reported, type Reports } from "./support/Reported.ts"
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
const answer = (...middle: ReadonlyArray<Event>): Reply => events(created, ...middle, completed())

const counting = (type: string, output_index: number, ...words: ReadonlyArray<string>): ReadonlyArray<Event> =>
  words.map((piece, content_index) => ({
    type,
    item_id: `i${output_index}`,
    output_index,
    content_index,
    delta: piece
  }))

const texts: Reports = {
  "MD-787": {
    "another position with each piece (vLLM)": [
      events(
        created,
        ...counting("response.reasoning_text.delta", 0, "h", "m", "m"),
        { type: "response.reasoning_text.done", item_id: "i0", output_index: 0, content_index: 3, text: "hmm" },
        done(0, { type: "reasoning", id: "i0", content: [{ type: "reasoning_text", text: "hmm" }] }),
        ...counting("response.output_text.delta", 1, "fi", "ne"),
        { type: "response.output_text.done", item_id: "i1", output_index: 1, content_index: 2, text: "fine" },
        done(1, said("fine", "i1")),
        completed([said("fine", "i1")])
      ),
      { ...fine, thought: "hmm" }
    ],
    "two parts that are announced": answer(
      { type: "response.content_part.added", item_id: "m1", output_index: 0, content_index: 0, part: {} },
      delta("fi"),
      { type: "response.content_part.added", item_id: "m1", output_index: 0, content_index: 1, part: {} },
      delta("ne", { content_index: 1 }),
      done(0, { type: "message", id: "m1", content: [{ text: "fi" }, { text: "ne" }] })
    ),
    "the beginning of a text in its announcement": answer(
      { type: "response.content_part.added", item_id: "m1", output_index: 0, content_index: 0, part: { text: "fi" } },
      delta("ne")
    ),
    "responses that are not in an event (gateways)": {
      chunks: [
        `event: response.created\n${data({ id: "r", object: "response", status: "in_progress", output: [] })}`,
        ...events(delta("fine")).chunks,
        `event: response.completed\n${data({ id: "r", object: "response", status: "completed", output: [said("fine")] })}`
      ]
    }
  },
  "MD-100": {
    "deltas without items": answer(delta("fi"), delta("ne")),
    "deltas without ids and positions": answer(
      { type: "response.output_text.delta", delta: "fi" },
      { type: "response.output_text.delta", delta: "ne" }
    ),
    "only the end of the text": answer(added(0, said("")), {
      type: "response.output_text.done",
      item_id: "m1",
      output_index: 0,
      content_index: 0,
      text: "fine"
    }),
    "only the end of the part": answer({
      type: "response.content_part.done",
      item_id: "m1",
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "fine" }
    }),
    "only the end of the item": answer(done(0, said("fine"))),
    "only the final event": [events(created, completed([said("fine")])), { ...fine, input: 5, output: 3, cached: 2 }],
    "all of them": answer(
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
    "another id in each event (Copilot)": events(
      created,
      added(0, said("", "a")),
      delta("fi", { item_id: "b" }),
      delta("ne", { item_id: "c" }),
      done(0, said("fine", "d")),
      completed([said("fine", "e")])
    ),
    "duplicated frames of the end": answer(delta("fine"), done(0, said("fine")), done(0, said("fine"))),
    "names of events only": {
      chunks: answer(delta("fine")).chunks.map((one) => one.replace(/"type":"response[\w.]+",?/, ""))
    },
    "types without names of events": raw(data(created), data(delta("fine")), data(completed())),
    "a content that is a text": answer(done(0, { type: "message", id: "m1", content: "fine" })),
    "a part of the type text (gateways)": answer(
      done(0, { type: "message", id: "m1", content: [{ type: "text", text: "fine" }] })
    ),
    "a delta that is an object (gateways)": answer(delta("x", { delta: { text: "fine" } })),
    "a delta that is null or empty": answer(delta("x", { delta: null }), delta(""), delta("fine")),
    "positions in texts": answer(delta("fi", { output_index: "0" }), delta("ne", { output_index: "0" })),
    "annotations are skipped": answer(delta("fine"), {
      type: "response.output_text.annotation.added",
      item_id: "m1",
      annotation: { type: "url_citation" }
    }),
    "events of later releases, a keepalive and pings": answer(
      { type: "keepalive" },
      { type: "ping" },
      { type: "response.queued", response: {} },
      { type: "response.new.thing", item: { type: "new" } },
      { type: "codex.rate_limits", x: 1 },
      delta("fine")
    ),
    "two messages (commentary, final answer)": events(
      created,
      added(0, said("", "a")),
      delta("fi", { item_id: "a" }),
      done(0, said("fi", "a")),
      added(1, said("", "b")),
      delta("ne", { item_id: "b", output_index: 1 }),
      done(1, said("ne", "b")),
      completed()
    ),
    "a whole answer": [
      refusal(200, { id: "resp_1", object: "response", status: "completed", output: [said("fine")], usage }),
      { ...fine, input: 5, output: 3 }
    ],
    "a whole answer as an event without a type": raw(
      data({ id: "resp_1", object: "response", status: "completed", output: [said("fine")] })
    )
  },
  "MD-103": {
    "a refusal": [
      answer({ type: "response.refusal.delta", item_id: "m1", output_index: 0, content_index: 0, delta: "no" }),
      { text: "no", reason: "content-filter" }
    ]
  },
  "MD-101": {
    "thinking in its own fields (vLLM)": [
      answer(
        { type: "response.reasoning_text.delta", item_id: "r1", output_index: 0, content_index: 0, delta: "hm" },
        delta("fine", { output_index: 1 })
      ),
      { ...fine, thought: "hm" }
    ],
    "thinking under older names": [
      answer(
        { type: "response.reasoning.delta", item_id: "r1", output_index: 0, delta: "hm" },
        delta("fine", { output_index: 1 })
      ),
      { ...fine, thought: "hm" }
    ],
    "a summary only in its item": [
      answer(
        done(0, {
          type: "reasoning",
          id: "r1",
          summary: [{ type: "summary_text", text: "hm" }],
          encrypted_content: "e"
        }),
        delta("fine", { output_index: 1 })
      ),
      { ...fine, thought: "hm" }
    ],
    "a summary that is null, or a text": [
      answer(
        done(0, { type: "reasoning", id: "r1", summary: null, content: null }),
        done(1, { type: "reasoning", id: "r2", summary: "hm" }),
        delta("fine", { output_index: 2 })
      ),
      { ...fine, thought: "hm" }
    ],
    "encrypted thinking alone": [
      answer(
        added(0, { type: "reasoning", id: "r1", summary: [] }),
        done(0, { type: "reasoning", id: "r1", summary: [], encrypted_content: "e" }),
        delta("fine", { output_index: 1 })
      ),
      { ...fine, thought: "" }
    ]
  }
}

const calls: Reports = {
  "MD-102": {
    "an input only in the item": [
      answer(added(0, call("")), done(0, call(text(one)))),
      { calls: [one], reason: "tool-calls" }
    ],
    "an input only in its announcement": [answer(added(0, call(text(one)))), { calls: [one] }],
    "an input in pieces and in the item": [
      answer(
        added(0, call("")),
        { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '{"path":' },
        { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '"one"}' },
        { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 0, arguments: text(one) },
        done(0, call(text(one)))
      ),
      { calls: [one] }
    ],
    "an input as an object": [answer(done(0, call(one))), { calls: [one] }],
    "an input that is null": [answer(done(0, call(null))), { calls: [{}] }],
    "a call only in the final event": [
      events(created, completed([call(text(one))])),
      { calls: [one], reason: "tool-calls" }
    ],
    "calls in turns": [
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
    "pieces without an id, by position": [
      answer(
        added(0, call("")),
        { type: "response.function_call_arguments.delta", output_index: 0, delta: text(one) },
        done(0, call(""))
      ),
      { calls: [one] }
    ],
    "no call_id (LM Studio)": [
      answer(done(0, call(text(one), { call_id: undefined }))),
      { calls: [one], ids: ["fc_1"] }
    ],
    "no id (Ollama)": [
      answer(
        done(0, call(text(one), { id: undefined })),
        done(1, call(text(two), { id: undefined, call_id: "call_2" }))
      ),
      { calls: [one, two], ids: ["call_1", "call_2"] }
    ],
    "ids that are empty": [answer(done(0, call(text(one), { id: "", call_id: "" }))), { calls: [one] }],
    "one call_id for two calls": [
      answer(done(0, call(text(one))), done(1, call(text(two), { id: "fc_2" }))),
      { calls: [one, two], ids: ["call_1", "call_1_2"] }
    ],
    "the same call in the final event, under another id": [
      events(created, done(0, call(text(one))), completed([call(text(one), { id: "fc_9" })])),
      { calls: [one] }
    ],
    "a name with its namespace (gpt-oss)": [
      answer(done(0, call(text(one), { name: "functions.look" }))),
      { calls: [one], names: ["look"] }
    ],
    "an item of the type tool_call (gateways)": [
      answer(done(0, { ...call(text(one)), type: "tool_call" })),
      { calls: [one] }
    ],
    "a call that the limit cut": [
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
  }
}

const ends: Reports = {
  "MD-104": {
    "response.done (gateways)": events(created, delta("fine"), {
      type: "response.done",
      response: { status: "completed", output: [] }
    }),
    "a mark of chat completions after the end": { chunks: [...answer(delta("fine")).chunks, data("[DONE]")] },
    "a mark of chat completions alone": [
      { chunks: [...events(created, delta("fine")).chunks, data("[DONE]")] },
      { text: "fine" }
    ],
    "no final event": [events(created, delta("fine")), { error: "before it was complete", retryable: true }],
    "a final event without a response": events(created, delta("fine"), { type: "response.completed" }),
    "an output that is null": events(created, delta("fine"), completed(null)),
    "an output as an object": [events(created, completed({ 0: said("x") })), { calls: [] }],
    "a failure": [
      events(created, {
        type: "response.failed",
        response: { status: "failed", error: { code: "server_error", message: "oops" } }
      }),
      { error: "oops", retryable: true }
    ],
    "a failure by a rate": [
      events(created, {
        type: "response.failed",
        response: { error: { code: "rate_limit_exceeded", message: "Please try again in 1.2s" } }
      }),
      { error: "try again", retryable: true }
    ],
    "a failure without an error": [
      events(created, { type: "response.failed", response: { error: null } }),
      { error: "the response failed" }
    ],
    "a failure whose error is a text": [
      events(created, { type: "response.failed", response: { error: "engine lost" } }),
      { error: "engine lost" }
    ],
    "a response that waits": [
      refusal(200, { object: "response", status: "queued", output: [] }),
      { error: "before it was complete", retryable: true }
    ],
    "a failure that says completed": [
      events(created, completed([], { error: { code: "server_error", message: "oops" } })),
      { error: "oops" }
    ],
    "a failure in its status only": [
      events(created, completed([], { status: "failed", error: { message: "oops" } })),
      { error: "oops" }
    ]
  },
  "MD-103": {
    "an incomplete answer by a filter": [
      events(created, delta("fi"), {
        type: "response.incomplete",
        response: { incomplete_details: { reason: "content_filter" } }
      }),
      { text: "fi", reason: "content-filter" }
    ],
    "an incomplete answer without a reason": [
      events(created, delta("fi"), { type: "response.incomplete", response: {} }),
      { text: "fi", reason: "unknown" }
    ],
    "a completed answer whose status is incomplete": [
      events(
        created,
        delta("fi"),
        completed([], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })
      ),
      { text: "fi", reason: "length" }
    ]
  },
  "MD-17": {
    "an error as an event": [
      events(created, { type: "error", code: "server_error", message: "oops", param: null }),
      { error: "oops", retryable: true }
    ],
    "an error as an event, wrapped (Azure, Codex)": [
      events(created, { type: "error", status: 429, error: { type: "rate_limit_error", message: "slow down" } }),
      { error: "slow down", retryable: true }
    ],
    "an error under detail (Codex)": [
      refusal(400, { detail: "Unsupported parameter: max_output_tokens" }),
      { error: "Unsupported parameter", retryable: false }
    ],
    "a response whose error is null": events({ ...created, error: null } as Event, delta("fine"), completed()),
    "a full window in the stream": [
      events(created, {
        type: "response.failed",
        response: {
          error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." }
        }
      }),
      { error: "exceeds the context window", retryable: false }
    ]
  },
  "MD-96": {
    "usage in the names of chat completions": [
      events(
        created,
        delta("fine"),
        completed([], {
          usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } }
        })
      ),
      { input: 5, output: 3, cached: 2 }
    ],
    "usage that is null": events(created, delta("fine"), completed([], { usage: null }))
  },
  "MD-93": {
    "an answer of chat completions": [
      refusal(200, { choices: [{ message: { content: "x" } }] }),
      { error: "JSON that is no answer", retryable: false }
    ],
    "events of chat completions": [
      raw(data({ choices: [{ delta: { content: "x" } }] }), data("[DONE]")),
      { error: "but one of openai-compatible", retryable: false }
    ]
  }
}

reported("openai", "gpt-5.1", texts, calls, ends)

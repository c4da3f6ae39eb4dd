/** What servers of the Messages API were reported to send: Anthropic, gateways and servers that speak it. */
import { data, fine, raw, reported, type Reports } from "./support/Reported.ts"
import { events, refusal, type Reply } from "./support/Server.ts"

type Json = Record<string, unknown>

const start = {
  type: "message_start",
  message: { id: "msg_1", model: "m", usage: { input_tokens: 5, output_tokens: 1 } }
}
const begin = (index: number, content_block: Json) => ({ type: "content_block_start", index, content_block })
const grow = (index: number, delta: Json) => ({ type: "content_block_delta", index, delta })
const stop = (index: number) => ({ type: "content_block_stop", index })
const words = (index: number, text: string) => grow(index, { type: "text_delta", text })
const thought = (index: number, thinking: string) => grow(index, { type: "thinking_delta", thinking })
const input = (index: number, partial_json: unknown) => grow(index, { type: "input_json_delta", partial_json })
const ends = (stop_reason: string | null = "end_turn", usage: Json = { output_tokens: 3 }) => ({
  type: "message_delta",
  delta: { stop_reason },
  usage
})
const last = { type: "message_stop" }
const block = (index: number, text: string) => [
  begin(index, { type: "text", text: "" }),
  words(index, text),
  stop(index)
]
const call = (index: number, more: Json = {}) =>
  begin(index, { type: "tool_use", id: "toolu_1", name: "look", input: {}, ...more })
const one = { path: "one" }
const two = { path: "two" }
const text = JSON.stringify
const answer = (...middle: ReadonlyArray<{ readonly type: string } & Json>): Reply =>
  events(start, ...middle, ends(), last)
const calling = (...middle: ReadonlyArray<{ readonly type: string } & Json>): Reply =>
  events(start, ...middle, ends("tool_use"), last)

const blocks: Reports = {
  "MD-90": {
    "a whole message as its start": events(
      {
        type: "message_start",
        message: { content: [{ type: "text", text: "fine" }], stop_reason: "end_turn" }
      },
      last
    ),
    "a text without its beginning (proxies)": answer(words(0, "fine"), stop(0)),
    "a text without its end": answer(begin(0, { type: "text", text: "" }), words(0, "fine")),
    "the text in its beginning": answer(begin(0, { type: "text", text: "fine" }), stop(0)),
    "a beginning with text, and pieces": answer(begin(0, { type: "text", text: "fi" }), words(0, "ne"), stop(0)),
    "two texts under one index (gateways)": answer(...block(0, "fi"), ...block(0, "ne")),
    "blocks without an index": answer(
      { type: "content_block_start", content_block: { type: "text", text: "" } },
      { type: "content_block_delta", delta: { type: "text_delta", text: "fine" } },
      { type: "content_block_stop" }
    ),
    "a delta without its type": answer(begin(0, { type: "text" }), grow(0, { text: "fine" }), stop(0)),
    "a text that is null": answer(begin(0, { type: "text", text: null }), words(0, "fine"), stop(0)),
    "thinking in a text's block (LiteLLM with Nemotron)": [
      answer(begin(0, { type: "text", text: "" }), thought(0, "hm"), words(0, "fine"), stop(0)),
      { ...fine, thought: "hm" }
    ],
    "text in a block of thinking": [
      answer(begin(0, { type: "thinking", thinking: "" }), thought(0, "hm"), words(0, "fine"), stop(0)),
      { ...fine, thought: "hm" }
    ],
    "an answer without message_start": events(...block(0, "fine"), ends(), last),
    "message_start twice": events(start, start, ...block(0, "fine"), ends(), last),
    "a whole answer": [
      refusal(200, {
        id: "msg_1",
        type: "message",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "text", text: "fine" }
        ],
        stop_reason: "end_turn",
        usage: { input_tokens: 5, output_tokens: 3 }
      }),
      { ...fine, thought: "hm", input: 5, output: 3 }
    ],
    "a whole answer whose content is a text": refusal(200, {
      type: "message",
      content: "fine",
      stop_reason: "end_turn"
    }),
    "a whole answer with a call": [
      refusal(200, {
        type: "message",
        content: [{ type: "tool_use", id: "t1", name: "look", input: one }],
        stop_reason: "tool_use"
      }),
      { calls: [one] }
    ],
    "a whole answer as an event": raw(
      data({ id: "msg_1", type: "message", content: [{ type: "text", text: "fine" }], stop_reason: "end_turn" })
    ),
    "an answer in an event's name only": {
      chunks: answer(...block(0, "fine")).chunks.map((one) =>
        one.replace(/"type":"(?:message|content_block)_\w+",?/, "")
      )
    }
  },
  "MD-21": {
    "citations, and deltas of later releases": answer(
      begin(0, { type: "text", text: "", citations: [] }),
      grow(0, { type: "citations_delta", citation: {} }),
      words(0, "fine"),
      grow(0, { type: "new_delta", x: 1 }),
      stop(0)
    ),
    "blocks of later releases": answer(
      begin(0, { type: "container_upload", file_id: "f" }),
      stop(0),
      ...block(1, "fine")
    ),
    "a ping, and a ping without data": raw(
      'event: ping\ndata: {"type": "ping"}\n\n',
      "event: ping\n\n",
      ...answer(...block(0, "fine")).chunks
    ),
    "context management beside the usage": events(
      start,
      ...block(0, "fine"),
      { ...ends(), context_management: { applied_edits: [] } },
      last
    )
  },
  "MD-14": {
    "redacted thinking": [
      answer(begin(0, { type: "redacted_thinking", data: "xx" }), stop(0), ...block(1, "fine")),
      { ...fine, thought: "" }
    ],
    "thinking without a text (display omitted)": [
      answer(
        begin(0, { type: "thinking", thinking: "", signature: "" }),
        grow(0, { type: "signature_delta", signature: "s" }),
        stop(0),
        ...block(1, "fine")
      ),
      { ...fine, thought: "" }
    ],
    "thinking between calls (interleaved)": [
      calling(
        begin(0, { type: "thinking", thinking: "" }),
        thought(0, "h"),
        stop(0),
        call(1),
        input(1, text(one)),
        stop(1),
        begin(2, { type: "thinking", thinking: "" }),
        thought(2, "m"),
        stop(2),
        call(3, { id: "toolu_2" }),
        input(3, text(two)),
        stop(3)
      ),
      { thought: "hm", calls: [one, two] }
    ]
  },
  "MD-22": {
    "a server tool with its result": [
      answer(
        begin(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
        input(0, '{"query":"x"}'),
        stop(0),
        begin(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
        stop(1),
        ...block(2, "fine")
      ),
      { text: "fine", reason: "stop" }
    ]
  }
}

const calls: Reports = {
  "MD-91": {
    "an input in its beginning (gateways)": [calling(call(0, { input: one }), stop(0)), { calls: [one] }],
    "an input in its beginning, and again in pieces": [
      calling(call(0, { input: one }), input(0, text(one)), stop(0)),
      { calls: [one] }
    ],
    "an input as a text in its beginning": [calling(call(0, { input: text(one) }), stop(0)), { calls: [one] }],
    "an input as an object in a delta": [calling(call(0), input(0, one), stop(0)), { calls: [one] }],
    "an empty object, then the input": [
      calling(call(0), input(0, "{}"), input(0, text(one)), stop(0)),
      { calls: [one] }
    ],
    "an input that is empty": [calling(call(0), input(0, ""), stop(0)), { calls: [{}] }],
    "an input that is null": [calling(call(0, { input: null }), input(0, null), stop(0)), { calls: [{}] }],
    "a call without its end": [calling(call(0), input(0, text(one))), { calls: [one] }],
    "calls in turns": [
      calling(call(0), call(1, { id: "toolu_2" }), input(0, text(one)), input(1, text(two)), stop(1), stop(0)),
      { reason: "tool-calls" }
    ],
    "two calls under one index (GLM, Kimi by gateways)": [
      calling(call(0), input(0, text(one)), stop(0), call(0, { id: "toolu_2" }), input(0, text(two)), stop(0)),
      { calls: [one, two] }
    ],
    "two calls under one index, without an end": [
      calling(call(0), input(0, text(one)), call(0, { id: "toolu_2" }), input(0, text(two)), stop(0)),
      { calls: [one, two] }
    ],
    "a call without an id": [calling(call(0, { id: undefined }), input(0, text(one)), stop(0)), { calls: [one] }],
    "an id like functions.look:0 (Kimi)": [
      calling(call(0, { id: "functions.look:0" }), input(0, text(one)), stop(0)),
      { calls: [one], ids: ["functions.look:0"] }
    ],
    "one id for two calls": [
      calling(call(0), input(0, text(one)), stop(0), call(1), input(1, text(two)), stop(1)),
      { calls: [one, two], ids: ["toolu_1", "toolu_1_2"] }
    ],
    "the reason of a text after a call": [
      answer(call(0), input(0, text(one)), stop(0)),
      { calls: [one], reason: "tool-calls" }
    ],
    "a reason of a call without a call": [
      events(start, ...block(0, "fine"), ends("tool_use"), last),
      { text: "fine", calls: [] }
    ],
    "a call that the limit cuts": [
      events(start, call(0), input(0, '{"path":"on'), ends("max_tokens"), last),
      { calls: [], reason: "length" }
    ],
    "a call that the limit cuts, with its end": [
      events(start, call(0), input(0, '{"path":"on'), stop(0), ends("max_tokens"), last),
      { calls: [], reason: "length" }
    ],
    "a text and its call under one index": [
      calling(begin(0, { type: "text", text: "" }), words(0, "fine"), call(0), input(0, text(one)), stop(0)),
      { text: "fine", calls: [one] }
    ]
  }
}

const endings: Reports = {
  "MD-94": {
    "no message_stop": raw(...events(start, ...block(0, "fine"), ends()).chunks),
    "no message_delta": [events(start, ...block(0, "fine"), last), { text: "fine" }],
    "a mark of chat completions": raw(...events(start, ...block(0, "fine"), ends()).chunks, data("[DONE]")),
    "a reason that is null, then the reason": events(start, ...block(0, "fine"), ends(null), ends(), last),
    "a silence after the reason": { ...events(start, ...block(0, "fine"), ends()), ending: "silence" },
    "an answer that is cut": [
      { ...events(start, begin(0, { type: "text", text: "" }), words(0, "fi")), ending: "end" },
      { error: "before it was complete", retryable: true }
    ],
    "an error after the end": events(start, ...block(0, "fine"), ends(), last, {
      type: "error",
      error: { type: "api_error", message: "x" }
    })
  },
  "MD-20": {
    "a full window": [
      events(start, ...block(0, "fi"), ends("model_context_window_exceeded"), last),
      { text: "fi", reason: "length" }
    ],
    "a pause": [events(start, ...block(0, "fi"), ends("pause_turn"), last), { text: "fi", reason: "pause" }],
    "a refusal with its details": [
      events(
        start,
        {
          ...ends("refusal"),
          delta: { stop_reason: "refusal", stop_details: { type: "refusal", category: "cyber", explanation: "no" } }
        },
        last
      ),
      { text: "", reason: "content-filter" }
    ],
    "the reasons of OpenAI by a gateway": [
      events(start, ...block(0, "fi"), ends("length"), last),
      { text: "fi", reason: "length" }
    ],
    "a filter's reason by a gateway": [
      events(start, ...block(0, "fi"), ends("content_filter"), last),
      { text: "fi", reason: "content-filter" }
    ],
    "the reason stop by a gateway": events(start, ...block(0, "fine"), ends("stop"), last)
  },
  "MD-96": {
    "the whole input first, then what the cache served (gateways)": [
      events(
        { type: "message_start", message: { id: "m", usage: { input_tokens: 50, output_tokens: 1 } } },
        ...block(0, "fine"),
        ends("end_turn", { input_tokens: 0, cache_read_input_tokens: 50, output_tokens: 3 }),
        last
      ),
      { input: 50, output: 3, cached: 50 }
    ],
    "all counts in message_delta (GLM, Kimi)": [
      events(
        { type: "message_start", message: { id: "m", usage: { input_tokens: 0, output_tokens: 0 } } },
        ...block(0, "fine"),
        ends("end_turn", { input_tokens: 50, output_tokens: 3, cache_read_input_tokens: 20 }),
        last
      ),
      { input: 70, output: 3, cached: 20 }
    ],
    "counts of zero after counts (gateways)": [
      events(
        { type: "message_start", message: { id: "m", usage: { input_tokens: 50, output_tokens: 1 } } },
        ...block(0, "fine"),
        ends("end_turn", { input_tokens: 0, output_tokens: 3 }),
        last
      ),
      { input: 50, output: 3 }
    ],
    "usage that is null": events(
      { type: "message_start", message: { id: "m", usage: null } },
      ...block(0, "fine"),
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      last
    ),
    "usage in the names of OpenAI": [
      events(
        { type: "message_start", message: {} },
        ...block(0, "fine"),
        ends("end_turn", { prompt_tokens: 50, completion_tokens: 3 }),
        last
      ),
      { input: 50, output: 3 }
    ]
  }
}

const errors: Reports = {
  "MD-17": {
    "an overload in the stream": [
      events(start, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
      { error: "Overloaded", retryable: true }
    ],
    "an error without a type": [raw(data({ error: { message: "no model", code: 404 } })), { error: "no model" }],
    "an error in the event's name only": [
      raw(`event: error\n${data({ message: "engine lost" })}`),
      { error: "engine lost" }
    ],
    "an error whose message is JSON (gateways)": [
      events(start, {
        type: "error",
        error: {
          type: "api_error",
          message: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
        }
      }),
      { error: "Overloaded", retryable: true }
    ],
    "an error of Bedrock by a gateway": [
      refusal(400, { message: "Input is not valid" }),
      { error: "Input is not valid" }
    ],
    "an error with a status of success": [
      refusal(200, { type: "error", error: { type: "invalid_request_error", message: "no" } }),
      { error: "no", retryable: false }
    ],
    "an error of Spring in JSON": [
      refusal(200, { code: 500, msg: "404 NOT_FOUND", success: false }),
      { error: "404 NOT_FOUND" }
    ]
  },
  "MD-93": {
    "a page of a gateway": [
      { chunks: ["<!DOCTYPE html><title>Sign in</title>"], headers: { "content-type": "text/html" } },
      { error: "HTML page (Sign in)", retryable: false }
    ],
    "events of chat completions": [
      raw(data({ choices: [{ delta: { content: "fine" } }] }), "data: [DONE]\n\n"),
      { error: "but one of openai-compatible", retryable: false }
    ],
    "an answer of chat completions": [
      refusal(200, { choices: [{ message: { content: "fine" }, finish_reason: "stop" }] }),
      { error: "JSON that is no answer", retryable: false }
    ]
  }
}

reported("anthropic", "claude-sonnet-4-5", blocks, calls, endings, errors)

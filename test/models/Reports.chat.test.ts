/** What servers of chat completions were reported to send: agents, gateways and local servers. */
import { gzipSync } from "node:zlib"
import { data, raw, reported, type Row } from "./support/Reported.ts"
import { chunks, refusal, type Reply } from "./support/Server.ts"

type Json = Record<string, unknown>

const chunk = (delta: unknown, finish_reason: unknown = null, more: Json = {}) => ({
  id: "c1",
  object: "chat.completion.chunk",
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
  ...more
})
const said = (...words: ReadonlyArray<string>) => words.map((content) => chunk({ content }))
const stop = chunk({}, "stop")
const done = data("[DONE]")
const call = (args: unknown, more: Json = {}) => ({
  index: 0,
  id: "a1",
  type: "function",
  function: { name: "look", arguments: args },
  ...more
})
const calls = (...all: ReadonlyArray<Json>) => chunk({ tool_calls: all })
const called = chunk({}, "tool_calls")
const one = { path: "one" }
const two = { path: "two" }
const text = JSON.stringify
const fine = { text: "fine", reason: "stop" }
const whole = (message: Json, finish_reason: unknown = "stop", more: Json = {}) => ({
  id: "c1",
  choices: [{ index: 0, message, finish_reason }],
  ...more
})
/** A body of which each byte is a piece of its own would be slow: pieces of three bytes. */
const bytes = (source: string): Reply => ({
  chunks:
    Buffer.from(source)
      .toString("latin1")
      .match(/[\s\S]{1,3}/g) ?? [],
  encoding: "latin1"
})

const thinking: ReadonlyArray<Row> = [
  [
    "MD-140",
    "tags of thinking in the content (Qwen, vLLM without a parser)",
    chunks(...said("<think>", "hm", "</think>", "fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-140",
    "tags cut anywhere (R1 distills, Ollama)",
    chunks(...said("<th", "ink>h", "m</thi", "nk>", "\n\nfi", "ne"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-140",
    "a tag after blank lines (MiniMax)",
    chunks(...said("\n\n", "<think>\nhm\n</think>\n\nfine"), stop),
    { ...fine, thought: "hm\n" }
  ],
  [
    "MD-140",
    "other names of the tag (Cohere, Gemma, Seed)",
    chunks(...said("<thinking>hm</thinking>fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-140",
    "empty thinking (Qwen with /no_think)",
    chunks(...said("<think>\n\n</think>\n\nfine"), stop),
    { ...fine, thought: "" }
  ],
  [
    "MD-140",
    "thinking that the output limit cuts",
    chunks(...said("<think>hm and"), chunk({}, "length")),
    { text: "", thought: "hm and", reason: "length" }
  ],
  [
    "MD-140",
    "a call after tags of thinking",
    chunks(...said("<think>hm</think>"), calls(call(text(one))), called),
    { thought: "hm", text: "", calls: [one], reason: "tool-calls" }
  ],
  [
    "MD-140",
    "a call while the tag is open",
    chunks(...said("<think>hm"), calls(call(text(one))), called),
    { thought: "hm", text: "", calls: [one] }
  ],
  [
    "MD-140",
    "tags in the middle of a text are text",
    chunks(...said("Use ", "<think>", " tags</think>"), stop),
    { text: "Use <think> tags</think>", thought: "" }
  ],
  ["MD-140", "a text that begins like a tag", chunks(...said("<thi", "s> is fine"), stop), { text: "<this> is fine" }],
  ["MD-140", "a text that is the beginning of a tag", chunks(...said("<thi"), stop), { text: "<thi" }],
  [
    "MD-140",
    "a whole answer with tags",
    refusal(200, whole({ content: "<think>hm</think>fine" })),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-140",
    "tags beside a field of thinking are not read twice",
    chunks(chunk({ reasoning_content: "hm" }), ...said("<think>", "</think>fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-140",
    "a closing tag alone (templates that open the tag)",
    chunks(chunk({ reasoning_content: "hm" }), ...said("</think>", "\n\nfine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-141",
    "channels of gpt-oss in the content",
    chunks(
      ...said("<|channel|>analysis<|message|>hm<|end|>", "<|start|>assistant<|channel|>final<|message|>fine"),
      stop
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-141",
    "channels cut anywhere",
    chunks(
      ...said(
        "<|chan",
        "nel|>anal",
        "ysis<|mess",
        "age|>h",
        "m<|e",
        "nd|><|start|>assis",
        "tant<|channel|>final<|message|>fi",
        "ne<|return|>"
      ),
      stop
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-141",
    "a channel in a tool's name (vLLM)",
    chunks(
      calls({ ...call(text(one)), function: { name: "look<|channel|>commentary", arguments: text(one) } }),
      called
    ),
    { names: ["look"], calls: [one] }
  ],
  [
    "MD-141",
    "a recipient in a tool's name (gpt-oss)",
    chunks(calls({ ...call(text(one)), function: { name: "functions.look", arguments: text(one) } }), called),
    { names: ["look"], calls: [one] }
  ],
  [
    "MD-26",
    "thinking in an object",
    chunks(chunk({ reasoning: { content: "hm" } }), ...said("fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "thinking that is null, then text",
    chunks(chunk({ reasoning_content: null, content: "fine" }), stop),
    { ...fine, thought: "" }
  ],
  [
    "MD-26",
    "thinking in two fields with the same text",
    chunks(chunk({ reasoning: "hm", reasoning_content: "hm" }), ...said("fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "thinking beside its details",
    chunks(
      chunk({ reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }] }),
      ...said("fine"),
      stop
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "details alone",
    chunks(chunk({ reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }] }), ...said("fine"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "thinking in parts of the content (Mistral)",
    chunks(
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
      chunk({ content: [{ type: "text", text: "fine" }] }),
      stop
    ),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "thinking and text in one piece",
    chunks(chunk({ reasoning_content: "hm", content: "fine" }), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "text, thinking and text",
    chunks(...said("fi"), chunk({ reasoning_content: "hm" }), ...said("ne"), stop),
    { ...fine, thought: "hm" }
  ],
  [
    "MD-26",
    "thinking in a list of texts",
    chunks(chunk({ reasoning_content: ["h", "m"] }), ...said("fine"), stop),
    { ...fine, thought: "hm" }
  ]
]

const callRows: ReadonlyArray<Row> = [
  [
    "MD-91",
    "an index that is null",
    chunks(calls(call('{"path":', { index: null })), calls({ index: null, function: { arguments: '"one"}' } }), called),
    { calls: [one] }
  ],
  [
    "MD-91",
    "an index in a text",
    chunks(
      calls(call("", { index: "0" })),
      calls({ index: "0", function: { arguments: text(one) } }),
      calls(call("", { index: "1", id: "a2" })),
      calls({ index: "1", function: { arguments: text(two) } }),
      called
    ),
    { calls: [one, two] }
  ],
  [
    "MD-91",
    "indices that begin at one (Anthropic by a gateway)",
    chunks(calls(call(text(one), { index: 1 })), calls(call(text(two), { index: 2, id: "a2" })), called),
    { calls: [one, two] }
  ],
  [
    "MD-91",
    "indices that go back",
    chunks(
      calls(call("", { index: 5 })),
      calls(call("", { index: 3, id: "a2" })),
      calls({ index: 5, function: { arguments: text(one) } }),
      calls({ index: 3, function: { arguments: text(two) } }),
      called
    ),
    { calls: [one, two] }
  ],
  [
    "MD-91",
    "an id that is empty in later pieces (DashScope)",
    chunks(calls(call("")), calls({ index: 0, id: "", function: { name: "", arguments: text(one) } }), called),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "a name in every piece",
    chunks(calls(call('{"path":')), calls(call('"one"}')), called),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "a name that is null in later pieces",
    chunks(
      calls(call('{"path":')),
      calls({ index: 0, id: null, function: { name: null, arguments: '"one"}' } }),
      called
    ),
    { calls: [one] }
  ],
  [
    "MD-91",
    "a name in pieces",
    chunks(
      calls({ index: 0, id: "a1", function: { name: "lo" } }),
      calls({ index: 0, function: { name: "ok", arguments: text(one) } }),
      called
    ),
    { calls: [one], names: ["look"] }
  ],
  ["MD-91", "an id that is a number", chunks(calls(call(text(one), { id: 7 })), called), { calls: [one], ids: ["7"] }],
  [
    "MD-91",
    "calls in one piece without an index",
    chunks(calls(call(text(one), { index: undefined }), call(text(two), { index: undefined, id: "a2" })), called),
    { calls: [one, two] }
  ],
  [
    "MD-91",
    "calls in one piece without an id",
    chunks(calls(call(text(one), { id: undefined }), call(text(two), { index: 1, id: undefined })), called),
    { calls: [one, two] }
  ],
  [
    "MD-91",
    "the same call for each piece of a text again (duplicated frames)",
    raw(data(calls(call(text(one)))), data(calls(call(text(one)))), data(called), done),
    { calls: [one] }
  ],
  ["MD-91", "an input as an object", chunks(calls(call(one)), called), { calls: [one] }],
  ["MD-91", "an input that is null", chunks(calls(call(null)), called), { calls: [{}] }],
  [
    "MD-91",
    "an empty object and then the input",
    chunks(calls(call("{}")), calls({ index: 0, function: { arguments: text(one) } }), called),
    { calls: [one] }
  ],
  ["MD-91", "an input in a text twice encoded", chunks(calls(call(text(text(one)))), called), { calls: [one] }],
  [
    "MD-91",
    "an input with line breaks in texts",
    chunks(calls(call('{"path":"on\ne"}')), called),
    { calls: [{ path: "on\ne" }] }
  ],
  ["MD-91", "an input in a code block", chunks(calls(call('```json\n{"path":"one"}\n```')), called), { calls: [one] }],
  [
    "MD-91",
    "an object as the whole tool_calls",
    chunks(chunk({ tool_calls: call(text(one)) }), called),
    { calls: [one] }
  ],
  [
    "MD-91",
    "tool_calls that are null or empty",
    chunks(chunk({ content: "fi", tool_calls: null }), chunk({ content: "ne", tool_calls: [] }), stop),
    fine
  ],
  [
    "MD-91",
    "a call without the function's object (flat)",
    chunks(calls({ index: 0, id: "a1", name: "look", arguments: text(one) }), called),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "an empty delta of a call",
    chunks(calls({ index: 0 }), calls(call(text(one))), called),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "a reason stop after a call (Ollama, Gemini)",
    chunks(calls(call(text(one))), stop),
    { calls: [one], reason: "tool-calls" }
  ],
  [
    "MD-91",
    "a call in the last piece, with the reason",
    chunks(chunk({ tool_calls: [call(text(one))] }, "tool_calls")),
    { calls: [one] }
  ],
  [
    "MD-91",
    "the older form in pieces",
    chunks(
      chunk({ function_call: { name: "look", arguments: '{"path":' } }),
      chunk({ function_call: { arguments: '"one"}' } }),
      chunk({}, "function_call")
    ),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "a call as text is text",
    chunks(...said('<tool_call>{"name":"look"}</tool_call>'), stop),
    { text: '<tool_call>{"name":"look"}</tool_call>', calls: [] }
  ],
  [
    "MD-91",
    "text between two calls",
    chunks(calls(call(text(one))), ...said("fine"), calls(call(text(two), { index: 1, id: "a2" })), called),
    { calls: [one, two], text: "fine" }
  ],
  [
    "MD-91",
    "a call after the reason of the end",
    chunks(chunk({ content: "fine" }, "tool_calls"), calls(call(text(one))), called),
    { calls: [one] }
  ],
  [
    "MD-91",
    "spaces around a name",
    chunks(calls({ ...call(text(one)), function: { name: " look\n", arguments: text(one) } }), called),
    { calls: [one], names: ["look"] }
  ],
  [
    "MD-91",
    "a call that the limit cuts",
    chunks(calls(call('{"path":"on')), chunk({}, "length")),
    { calls: [], reason: "length" }
  ]
]

const ends: ReadonlyArray<Row> = [
  ["MD-94", "no mark at the end", raw(data(said("fine")[0]), data(stop)), fine],
  ["MD-94", "no reason, but the mark", raw(data(said("fine")[0]), done), { text: "fine" }],
  ["MD-94", "a mark in quotes", raw(data(said("fine")[0]), data(stop), data('"[DONE]"')), fine],
  [
    "MD-94",
    "a mark without a space, and in lower case",
    raw(data(said("fine")[0]), "data:[done]\n\n"),
    { text: "fine" }
  ],
  ["MD-94", "a mark without its name", raw(data(said("fine")[0]), "[DONE]\n\n"), { text: "fine" }],
  [
    "MD-94",
    "a connection that breaks after the reason",
    { chunks: [data(said("fine")[0]), data(stop)], ending: "cut" },
    fine
  ],
  ["MD-94", "no reason and no mark", raw(data(said("fine")[0])), { error: "before it was complete", retryable: true }],
  [
    "MD-94",
    "a reason that is an empty text",
    chunks(chunk({ content: "fi" }, ""), chunk({ content: "ne" }, ""), stop),
    fine
  ],
  [
    "MD-94",
    "a reason in each piece (older proxies)",
    chunks(chunk({ content: "fi" }, "stop"), chunk({ content: "ne" }, "stop")),
    fine
  ],
  [
    "MD-94",
    "a reason beside the choices",
    raw(data({ choices: [{ delta: { content: "fine" } }], finish_reason: "stop" }), done),
    { text: "fine" }
  ],
  ["MD-94", "nothing but the mark", raw(done), { error: "before it was complete", retryable: true }],
  [
    "MD-94",
    "usage after the reason, then silence",
    {
      chunks: [
        data(said("fine")[0]),
        data(stop),
        data({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })
      ],
      ending: "silence"
    },
    { ...fine, input: 5, output: 2 }
  ],
  [
    "MD-90",
    "a stream as application/json",
    { ...chunks(...said("fine"), stop), headers: { "content-type": "application/json" } },
    fine
  ],
  ["MD-90", "a whole answer as an event", raw(data(whole({ content: "fine" })), done), fine],
  [
    "MD-90",
    "a whole answer on many lines",
    { chunks: [JSON.stringify(whole({ content: "fine" }), null, 2)], headers: { "content-type": "application/json" } },
    fine
  ],
  [
    "MD-90",
    "spaces before a whole answer (keep-alive of OpenRouter)",
    {
      chunks: ["\n\n   \n", JSON.stringify(whole({ content: "fine" }))],
      headers: { "content-type": "application/json" }
    },
    fine
  ],
  [
    "MD-90",
    "a whole answer with several choices",
    refusal(200, {
      choices: [
        { index: 0, message: { content: "fine" }, finish_reason: "stop" },
        { index: 1, message: { content: "x" } }
      ]
    }),
    fine
  ],
  [
    "MD-90",
    "a whole answer whose content is null, with calls",
    refusal(200, whole({ content: null, tool_calls: [call(text(one))] }, "tool_calls")),
    { calls: [one] }
  ],
  ["MD-90", "lines of JSON without data (Ollama)", raw(`${text(said("fine")[0])}\n`, `${text(stop)}\n`), fine],
  [
    "MD-90",
    "text of the older completions",
    raw(data({ choices: [{ index: 0, text: "fine", finish_reason: "stop" }] }), done),
    fine
  ],
  [
    "MD-90",
    "choices in an object",
    raw(data({ choices: { index: 0, delta: { content: "fine" }, finish_reason: "stop" } }), done),
    fine
  ],
  [
    "MD-92",
    "comments of OpenRouter",
    raw(": OPENROUTER PROCESSING\n\n", data(said("fine")[0]), ": OPENROUTER PROCESSING\n\n", data(stop), done),
    fine
  ],
  [
    "MD-92",
    "fields of the stream that are unknown",
    raw("id: 1\nretry: 100\nfoo: bar\nevent: message\n", data(said("fine")[0]), data(stop), done),
    fine
  ],
  [
    "MD-92",
    "data that is empty or null",
    raw("data:\n\n", "data: \n\n", data("null"), data(said("fine")[0]), data("{}"), data(stop), done),
    fine
  ],
  ["MD-92", "a ping in JSON", raw(data({ type: "ping" }), data(said("fine")[0]), data(stop), done), fine],
  [
    "MD-92",
    "the name of the field twice (proxies)",
    raw(`data: ${data(said("fine")[0])}`, `data: ${data(stop)}`, done),
    fine
  ],
  [
    "MD-92",
    "a name in capitals, with spaces",
    raw(`Data : ${text(said("fine")[0])}\n\n`, `DATA: ${text(stop)}\n\n`, done),
    fine
  ],
  [
    "MD-92",
    "only returns between the lines",
    raw(`data: ${text(said("fine")[0])}\r\r`, `data: ${text(stop)}\r\r`),
    fine
  ],
  [
    "MD-92",
    "JSON over several lines of data",
    raw('data: {\ndata: "choices": [{"delta":{"content":"fine"}}]\ndata: }\n\n', data(stop), done),
    fine
  ],
  [
    "MD-92",
    "JSON with line breaks and one name",
    raw(`data: ${JSON.stringify(said("fine")[0], null, 2)}\n\n`, data(stop), done),
    fine
  ],
  [
    "MD-92",
    "characters cut between pieces",
    bytes(`${data(said("日本 😀")[0])}${data(stop)}${done}`),
    { text: "日本 😀" }
  ],
  [
    "MD-92",
    "a compressed stream",
    {
      chunks: [gzipSync(`${data(said("fine")[0])}${data(stop)}${done}`).toString("latin1")],
      encoding: "latin1",
      headers: { "content-encoding": "gzip" }
    },
    fine
  ],
  [
    "MD-92",
    "frames that are glued",
    raw(`${data(said("fi")[0]).trim()}${data(said("ne")[0]).trim()}\n\n`, data(stop), done),
    fine
  ],
  ["MD-92", "separators of records", raw(`\u001e${text(said("fine")[0])}\n`, `\u001e${text(stop)}\n`), fine],
  ["MD-92", "a piece of a megabyte", chunks(...said("x".repeat(1_000_000)), stop), { text: "x".repeat(1_000_000) }],
  [
    "MD-92",
    "numbers that JSON does not have (vLLM's NaN)",
    raw(`data: {"choices":[{"index":0,"delta":{"content":"fine"},"logprobs":NaN}]}\n\n`, data(stop), done),
    fine
  ],
  [
    "MD-20",
    "a filter before the content (Azure)",
    chunks(
      { choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] },
      ...said("fine"),
      stop
    ),
    fine
  ],
  ["MD-20", "choices that are null", chunks({ choices: null }, ...said("fine"), stop), fine],
  ["MD-20", "a delta that is null", chunks(chunk(null), ...said("fine"), chunk(null, "stop")), fine],
  ["MD-20", "a content that is a number", chunks(chunk({ content: 42 }), stop), { text: "42" }],
  ["MD-20", "a content that is one part", chunks(chunk({ content: { type: "text", text: "fine" } }), stop), fine],
  ["MD-20", "a list of texts as the content", chunks(chunk({ content: ["fi", "ne"] }), stop), fine],
  [
    "MD-20",
    "an index in a text",
    chunks({ choices: [{ index: "0", delta: { content: "fine" }, finish_reason: "stop" }] }),
    fine
  ],
  [
    "MD-20",
    "a reason in capitals (Gemini by a gateway)",
    chunks(...said("fine"), chunk({}, "MAX_TOKENS")),
    { text: "fine", reason: "length" }
  ],
  [
    "MD-20",
    "a reason that is unknown",
    chunks(...said("fine"), chunk({}, "abort")),
    { text: "fine", reason: "unknown" }
  ],
  [
    "MD-20",
    "a filter as the reason",
    chunks(...said("fi"), chunk({}, "content_filter")),
    { text: "fi", reason: "content-filter" }
  ],
  [
    "MD-20",
    "the reason of Anthropic by a gateway",
    chunks(...said("no"), chunk({}, "refusal")),
    { text: "no", reason: "content-filter" }
  ],
  [
    "MD-20",
    "sound beside text is skipped",
    chunks(chunk({ content: "fine", audio: { data: "x" }, annotations: [{}] }), stop),
    fine
  ]
]

const odd: ReadonlyArray<Row> = [
  [
    "MD-140",
    "blanks without an end",
    chunks(...Array.from({ length: 3000 }, () => chunk({ content: "\n".repeat(100) })), stop),
    { thought: "", text: "\n".repeat(300_000), reason: "stop" }
  ],
  [
    "MD-140",
    "a head of a channel without an end",
    chunks(...said("<|", "x".repeat(500)), stop),
    { text: `<|${"x".repeat(500)}` }
  ],
  [
    "MD-93",
    "a whole answer that is cut",
    { chunks: ['{"choices":[{"message":{"content":"fi'], headers: { "content-type": "application/json" } },
    { error: "not JSON", retryable: true }
  ],
  ["MD-90", "a whole answer with a mark after it", raw(`${text(whole({ content: "fine" }))}\n`, "[DONE]\n"), fine],
  [
    "MD-91",
    "long inputs of two calls in turns",
    chunks(
      calls(call('{"path":"', { index: 0 })),
      calls(call('{"path":"', { index: 1, id: "a2" })),
      ...Array.from({ length: 20_000 }, (_, nth) =>
        calls({ index: nth % 2, function: { arguments: "abcdefgh".repeat(4) } })
      ),
      calls({ index: 0, function: { arguments: '"}' } }),
      calls({ index: 1, function: { arguments: '"}' } }),
      called
    ),
    { calls: [{ path: "abcdefgh".repeat(40_000) }, { path: "abcdefgh".repeat(40_000) }] }
  ]
]

const usage: ReadonlyArray<Row> = [
  [
    "MD-96",
    "usage in every piece",
    chunks(
      { ...said("fi")[0], usage: { prompt_tokens: 5, completion_tokens: 1 } },
      { ...said("ne")[0], usage: { prompt_tokens: 5, completion_tokens: 2 } },
      { ...stop, usage: { prompt_tokens: 5, completion_tokens: 3 } }
    ),
    { input: 5, output: 3 }
  ],
  [
    "MD-96",
    "usage that is null, then counted",
    chunks({ ...said("fine")[0], usage: null }, { ...stop, usage: { prompt_tokens: "5", completion_tokens: "3" } }),
    { input: 5, output: 3 }
  ],
  [
    "MD-96",
    "usage in the names of Responses (gateways)",
    chunks(...said("fine"), { ...stop, usage: { input_tokens: 5, output_tokens: 3 } }),
    { input: 5, output: 3 }
  ],
  [
    "MD-96",
    "hits of the cache (DeepSeek)",
    chunks(...said("fine"), {
      ...stop,
      usage: { prompt_tokens: 9, completion_tokens: 3, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5 }
    }),
    { input: 9, cached: 4 }
  ],
  [
    "MD-96",
    "cached tokens at the top (Kimi)",
    chunks(...said("fine"), { ...stop, usage: { prompt_tokens: 9, completion_tokens: 3, cached_tokens: 4 } }),
    { cached: 4 }
  ],
  [
    "MD-96",
    "cached tokens that are null",
    chunks(...said("fine"), {
      ...stop,
      usage: {
        prompt_tokens: 9,
        completion_tokens: 3,
        prompt_tokens_details: null,
        completion_tokens_details: { reasoning_tokens: null }
      }
    }),
    { input: 9, output: 3 }
  ],
  [
    "MD-96",
    "cached tokens in a detail that is empty, and at the top",
    chunks(...said("fine"), {
      ...stop,
      usage: {
        prompt_tokens: 9,
        completion_tokens: 3,
        prompt_tokens_details: { cached_tokens: null },
        cached_tokens: 4
      }
    }),
    { cached: 4 }
  ],
  [
    "MD-96",
    "counts below zero",
    chunks(...said("fine"), { ...stop, usage: { prompt_tokens: -1, completion_tokens: 3 } }),
    { output: 3 }
  ],
  [
    "MD-96",
    "the timings of llama.cpp",
    chunks(...said("fine"), { ...stop, timings: { prompt_n: 5, predicted_n: 3, cache_n: 4 } }),
    { input: 9, output: 3, cached: 4 }
  ],
  [
    "MD-96",
    "usage of Groq",
    chunks(...said("fine"), { ...stop, x_groq: { usage: { prompt_tokens: 5, completion_tokens: 3 } } }),
    { input: 5, output: 3 }
  ]
]

const errors: ReadonlyArray<Row> = [
  [
    "MD-17",
    "an error in the middle (OpenRouter)",
    raw(
      data(said("fi")[0]),
      data({
        id: "c1",
        error: { code: 502, message: "Provider returned error" },
        choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }]
      })
    ),
    { error: "Provider returned error", retryable: true }
  ],
  [
    "MD-17",
    "an error in a choice (OpenRouter)",
    raw(data({ choices: [{ index: 0, error: { code: 429, message: "Slow down" }, delta: { content: "" } }] }), done),
    { error: "Slow down", retryable: true }
  ],
  ["MD-17", "an error that is null beside an answer", chunks({ ...said("fine")[0], error: null }, stop), fine],
  [
    "MD-17",
    "an error that is an empty object or text beside an answer",
    chunks({ ...said("fi")[0], error: {} }, { ...said("ne")[0], error: "" }, stop),
    fine
  ],
  [
    "MD-17",
    "JSON in a text as an error",
    raw(data({ error: { message: text({ error: { message: "The real cause", code: 400 } }), code: 400 } })),
    { error: "The real cause" }
  ],
  [
    "MD-17",
    "the cause in the metadata (OpenRouter)",
    refusal(400, {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: text({ error: { message: "Unknown field x" } }), provider_name: "X" }
      }
    }),
    { error: "Unknown field x", retryable: false }
  ],
  [
    "MD-17",
    "a list of errors (FastAPI)",
    refusal(422, { detail: [{ loc: ["body", "tools"], msg: "field required", type: "missing" }] }),
    { error: "field required" }
  ],
  ["MD-17", "errors in a list", refusal(400, { errors: [{ message: "No such model" }] }), { error: "No such model" }],
  [
    "MD-17",
    "an error of Cloudflare",
    refusal(400, { success: false, errors: [{ code: 7000, message: "No route for that URI" }], result: null }),
    { error: "No route for that URI" }
  ],
  ["MD-17", "an error under msg", refusal(400, { code: 400, msg: "bad arguments" }), { error: "bad arguments" }],
  [
    "MD-17",
    "an error under error_msg (Qianfan)",
    refusal(200, { error_code: 336003, error_msg: "messages are wrong" }),
    { error: "messages are wrong" }
  ],
  [
    "MD-17",
    "an error under error.msg",
    refusal(400, { error: { msg: "bad arguments", code: "1210" } }),
    { error: "bad arguments" }
  ],
  [
    "MD-17",
    "an object as the message",
    refusal(400, { message: { detail: [{ msg: "too many stops" }] } }),
    { error: "too many stops" }
  ],
  [
    "MD-17",
    "an error of AWS",
    refusal(400, { Message: "No access", __type: "AccessDeniedException" }),
    { error: "No access" }
  ],
  [
    "MD-17",
    "an error in a text of Python",
    refusal(400, {
      error: {
        message: "litellm.BadRequestError: OpenAIException - {'error': 'x'}",
        type: null,
        param: null,
        code: "400"
      }
    }),
    { error: "litellm.BadRequestError" }
  ],
  [
    "MD-17",
    "a status beside the message (Spring)",
    refusal(500, { timestamp: 1, status: 500, error: "Internal Server Error", path: "/" }),
    { error: "Internal Server Error", retryable: true }
  ],
  ["MD-17", "an empty body", { status: 502, chunks: [] }, { error: "502", retryable: true }],
  [
    "MD-17",
    "a page as an error",
    { status: 503, headers: { "content-type": "text/html" }, chunks: ["<html><head><title>503 Unavailable</title>"] },
    { error: "503 Unavailable", retryable: true }
  ],
  [
    "MD-17",
    "an error as an event with its name",
    raw(`event: error\n${data({ message: "Overloaded", code: 503 })}`),
    { error: "Overloaded", retryable: true }
  ],
  [
    "MD-17",
    "an error of Ollama in the middle",
    raw(
      data(said("fi")[0]),
      data({ error: { message: "unexpected EOF", type: "api_error", param: null, code: null } })
    ),
    { error: "unexpected EOF", retryable: true }
  ],
  [
    "MD-17",
    "an error whose status is a text",
    raw(data({ error: { message: "Too fast", status: "RESOURCE_EXHAUSTED", code: "429" } })),
    { error: "Too fast", retryable: true }
  ],
  [
    "MD-17",
    "a line of an error without data (vLLM)",
    raw(data(said("fi")[0]), `${text({ error: { message: "engine died", code: 500 } })}\n\n`),
    { error: "engine died" }
  ],
  [
    "MD-17",
    "an error named in llama.cpp's field",
    raw(data(said("fi")[0]), `error: ${text({ code: 500, message: "slot lost", type: "server_error" })}\n\n`),
    { error: "slot lost", retryable: true }
  ],
  ["MD-17", "an error as a whole text", refusal(400, "model not loaded"), { error: "model not loaded" }],
  [
    "MD-93",
    "plain text instead of an answer",
    { chunks: ["Welcome to nginx"], headers: { "content-type": "text/plain" } },
    { error: "text that is not JSON", retryable: false }
  ],
  [
    "MD-93",
    "JSON that is no answer",
    refusal(200, { status: "ok", version: "1.0" }),
    { error: "address", retryable: false }
  ],
  ["MD-93", "an empty body with a success status", { chunks: [] }, { error: "before it was complete", retryable: true }]
]

reported("openai-compatible", "m", [...thinking, ...callRows, ...ends, ...odd, ...usage, ...errors])

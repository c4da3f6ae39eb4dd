/** Thinking, calls and odd streams that servers of chat completions were reported to send: agents, gateways and local servers. */
import { call, called, calls, chosen, chunk, done, one, said, stop, text, two, whole } from "./support/ChatChunks.ts"
import { data, fine, raw, reported, type Reports } from "./support/Reported.ts"
import { chunks, refusal } from "./support/Server.ts"

const named = (name: string, args: unknown = text(one)) =>
  chunks(calls({ ...call(args), function: { name, arguments: args } }), called)
const looked = { names: ["look"], calls: [one] }

const thinking: Reports = {
  "MD-140": {
    "tags in square brackets (Magistral)": [
      chunks(...said("[THI", "NK]hm[/TH", "INK]fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "tags in brackets of their own (Kimi-VL)": [
      chunks(...said("◁think▷hm◁/think▷fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "a link is no tag": [chunks(...said("[The", " page](a)"), stop), { text: "[The page](a)" }],
    "tags of thinking in the content (Qwen, vLLM without a parser)": [
      chunks(...said("<think>", "hm", "</think>", "fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "tags cut anywhere (R1 distills, Ollama)": [
      chunks(...said("<th", "ink>h", "m</thi", "nk>", "\n\nfi", "ne"), stop),
      { ...fine, thought: "hm" }
    ],
    "a tag after blank lines (MiniMax)": [
      chunks(...said("\n\n", "<think>\nhm\n</think>\n\nfine"), stop),
      { ...fine, thought: "hm\n" }
    ],
    "other names of the tag (Cohere, Gemma, Seed)": [
      chunks(...said("<thinking>hm</thinking>fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "empty thinking (Qwen with /no_think)": [
      chunks(...said("<think>\n\n</think>\n\nfine"), stop),
      { ...fine, thought: "" }
    ],
    "thinking that the output limit cuts": [
      chunks(...said("<think>hm and"), chunk({}, "length")),
      { text: "", thought: "hm and", reason: "length" }
    ],
    "a call after tags of thinking": [
      chunks(...said("<think>hm</think>"), calls(call(text(one))), called),
      { thought: "hm", text: "", calls: [one], reason: "tool-calls" }
    ],
    "a call while the tag is open": [
      chunks(...said("<think>hm"), calls(call(text(one))), called),
      { thought: "hm", text: "", calls: [one] }
    ],
    "tags in the middle of a text are text": [
      chunks(...said("Use ", "<think>", " tags</think>"), stop),
      { text: "Use <think> tags</think>", thought: "" }
    ],
    "a text that begins like a tag": [chunks(...said("<thi", "s> is fine"), stop), { text: "<this> is fine" }],
    "a text that is the beginning of a tag": [chunks(...said("<thi"), stop), { text: "<thi" }],
    "a whole answer with tags": [refusal(200, whole({ content: "<think>hm</think>fine" })), { ...fine, thought: "hm" }],
    "tags beside a field of thinking are not read twice": [
      chunks(chunk({ reasoning_content: "hm" }), ...said("<think>", "</think>fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "a closing tag alone (templates that open the tag)": [
      chunks(chunk({ reasoning_content: "hm" }), ...said("</think>", "\n\nfine"), stop),
      { ...fine, thought: "hm" }
    ]
  },
  "MD-141": {
    "the channel of Gemma 4": [
      chunks(...said("<|channel>thought\nhm<chan", "nel|>fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "a tag in a tool's name (GLM at Fireworks)": [named("look</arg_value>"), looked],
    "a number in a tool's name (Kimi)": [named("functions.look:0"), looked],
    "a recipient after a channel (gpt-oss)": [named("assistant<|channel|>commentary to=functions.look"), looked],
    "quotes around a tool's name": [named('"look"'), looked],
    "channels of gpt-oss in the content": [
      chunks(
        ...said("<|channel|>analysis<|message|>hm<|end|>", "<|start|>assistant<|channel|>final<|message|>fine"),
        stop
      ),
      { ...fine, thought: "hm" }
    ],
    "channels cut anywhere": [
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
    "a channel in a tool's name (vLLM)": [
      chunks(
        calls({ ...call(text(one)), function: { name: "look<|channel|>commentary", arguments: text(one) } }),
        called
      ),
      { names: ["look"], calls: [one] }
    ],
    "a recipient in a tool's name (gpt-oss)": [
      chunks(calls({ ...call(text(one)), function: { name: "functions.look", arguments: text(one) } }), called),
      { names: ["look"], calls: [one] }
    ]
  },
  "MD-26": {
    "thinking in an object": [
      chunks(chunk({ reasoning: { content: "hm" } }), ...said("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "thinking that is null, then text": [
      chunks(chunk({ reasoning_content: null, content: "fine" }), stop),
      { ...fine, thought: "" }
    ],
    "thinking in two fields with the same text": [
      chunks(chunk({ reasoning: "hm", reasoning_content: "hm" }), ...said("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "thinking beside its details": [
      chunks(
        chunk({ reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }] }),
        ...said("fine"),
        stop
      ),
      { ...fine, thought: "hm" }
    ],
    "details alone": [
      chunks(chunk({ reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }] }), ...said("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "thinking in parts of the content (Mistral)": [
      chunks(
        chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
        chunk({ content: [{ type: "text", text: "fine" }] }),
        stop
      ),
      { ...fine, thought: "hm" }
    ],
    "thinking and text in one piece": [
      chunks(chunk({ reasoning_content: "hm", content: "fine" }), stop),
      { ...fine, thought: "hm" }
    ],
    "text, thinking and text": [
      chunks(...said("fi"), chunk({ reasoning_content: "hm" }), ...said("ne"), stop),
      { ...fine, thought: "hm" }
    ],
    "thinking in a list of texts": [
      chunks(chunk({ reasoning_content: ["h", "m"] }), ...said("fine"), stop),
      { ...fine, thought: "hm" }
    ]
  }
}

const callRows: Reports = {
  "MD-784": {
    "the pieces of a call under two indices (DeepSeek by a gateway)": [
      chunks(
        calls(call(text(one))),
        calls({ index: 0, id: "a2", function: { name: "look", arguments: "" } }),
        calls({ index: 1, function: { arguments: text(two) } }),
        called
      ),
      { calls: [one, two] }
    ],
    "an id that is known, under another index": [
      chunks(calls(call('{"path":')), calls({ index: 3, id: "a1", function: { arguments: '"one"}' } }), called),
      { calls: [one] }
    ],
    "calls in turns by their ids alone": [
      chunks(
        calls(call('{"path":', { index: undefined })),
        calls(call('{"path":', { index: undefined, id: "a2" })),
        calls({ id: "a1", function: { arguments: '"one"}' } }),
        calls({ id: "a2", function: { arguments: '"two"}' } }),
        called
      ),
      { calls: [one, two] }
    ],
    "a text and its call in two choices of one index (Copilot)": [
      refusal(200, {
        choices: [
          { message: { content: "fine" }, finish_reason: "stop" },
          { message: { tool_calls: [call(text(one))] }, finish_reason: "tool_calls" }
        ]
      }),
      { text: "fine", calls: [one], reason: "tool-calls" }
    ]
  },
  "MD-785": {
    "a bracket too many": [chunks(calls(call(`${text(one)}}`)), called), { calls: [one] }],
    "the end of a template after the input": [
      chunks(calls(call(`${text(one)}\n</tool_call>`)), called),
      { calls: [one] }
    ],
    "an input in a list of its own": [chunks(calls(call(`[${text(one)}]`)), called), { calls: [one] }],
    "the last bracket is missing (SGLang with GLM)": [chunks(calls(call('{"path":"one"')), called), { calls: [one] }],
    "the last bracket is missing at the limit": [
      chunks(calls(call('{"path":"one"')), chunk({}, "length")),
      { calls: [], reason: "length" }
    ],
    "an input without brackets is a text": [chunks(calls(call("path one")), called), { calls: ["path one"] }]
  },
  "MD-91": {
    "an index that is null": [
      chunks(
        calls(call('{"path":', { index: null })),
        calls({ index: null, function: { arguments: '"one"}' } }),
        called
      ),
      { calls: [one] }
    ],
    "an index in a text": [
      chunks(
        calls(call("", { index: "0" })),
        calls({ index: "0", function: { arguments: text(one) } }),
        calls(call("", { index: "1", id: "a2" })),
        calls({ index: "1", function: { arguments: text(two) } }),
        called
      ),
      { calls: [one, two] }
    ],
    "indices that begin at one (Anthropic by a gateway)": [
      chunks(calls(call(text(one), { index: 1 })), calls(call(text(two), { index: 2, id: "a2" })), called),
      { calls: [one, two] }
    ],
    "indices that go back": [
      chunks(
        calls(call("", { index: 5 })),
        calls(call("", { index: 3, id: "a2" })),
        calls({ index: 5, function: { arguments: text(one) } }),
        calls({ index: 3, function: { arguments: text(two) } }),
        called
      ),
      { calls: [one, two] }
    ],
    "an id that is empty in later pieces (DashScope)": [
      chunks(calls(call("")), calls({ index: 0, id: "", function: { name: "", arguments: text(one) } }), called),
      { calls: [one], names: ["look"] }
    ],
    "a name in every piece": [
      chunks(calls(call('{"path":')), calls(call('"one"}')), called),
      { calls: [one], names: ["look"] }
    ],
    "a name that is null in later pieces": [
      chunks(
        calls(call('{"path":')),
        calls({ index: 0, id: null, function: { name: null, arguments: '"one"}' } }),
        called
      ),
      { calls: [one] }
    ],
    "a name in pieces": [
      chunks(
        calls({ index: 0, id: "a1", function: { name: "lo" } }),
        calls({ index: 0, function: { name: "ok", arguments: text(one) } }),
        called
      ),
      { calls: [one], names: ["look"] }
    ],
    "an id that is a number": [chunks(calls(call(text(one), { id: 7 })), called), { calls: [one], ids: ["7"] }],
    "calls in one piece without an index": [
      chunks(calls(call(text(one), { index: undefined }), call(text(two), { index: undefined, id: "a2" })), called),
      { calls: [one, two] }
    ],
    "calls in one piece without an id": [
      chunks(calls(call(text(one), { id: undefined }), call(text(two), { index: 1, id: undefined })), called),
      { calls: [one, two] }
    ],
    "the same call for each piece of a text again (duplicated frames)": [
      raw(data(calls(call(text(one)))), data(calls(call(text(one)))), data(called), done),
      { calls: [one] }
    ],
    "an input as an object": [chunks(calls(call(one)), called), { calls: [one] }],
    "an input that is null": [chunks(calls(call(null)), called), { calls: [{}] }],
    "an empty object and then the input": [
      chunks(calls(call("{}")), calls({ index: 0, function: { arguments: text(one) } }), called),
      { calls: [one] }
    ],
    "an input in a text twice encoded": [chunks(calls(call(text(text(one)))), called), { calls: [one] }],
    "an input with line breaks in texts": [
      chunks(calls(call('{"path":"on\ne"}')), called),
      { calls: [{ path: "on\ne" }] }
    ],
    "an input in a code block": [chunks(calls(call('```json\n{"path":"one"}\n```')), called), { calls: [one] }],
    "an object as the whole tool_calls": [chunks(chunk({ tool_calls: call(text(one)) }), called), { calls: [one] }],
    "tool_calls that are null or empty": chunks(
      chunk({ content: "fi", tool_calls: null }),
      chunk({ content: "ne", tool_calls: [] }),
      stop
    ),
    "a call without the function's object (flat)": [
      chunks(calls({ index: 0, id: "a1", name: "look", arguments: text(one) }), called),
      { calls: [one], names: ["look"] }
    ],
    "an empty delta of a call": [
      chunks(calls({ index: 0 }), calls(call(text(one))), called),
      { calls: [one], names: ["look"] }
    ],
    "a reason stop after a call (Ollama, Gemini)": [
      chunks(calls(call(text(one))), stop),
      { calls: [one], reason: "tool-calls" }
    ],
    "a call in the last piece, with the reason": [
      chunks(chunk({ tool_calls: [call(text(one))] }, "tool_calls")),
      { calls: [one] }
    ],
    "the older form in pieces": [
      chunks(
        chunk({ function_call: { name: "look", arguments: '{"path":' } }),
        chunk({ function_call: { arguments: '"one"}' } }),
        chunk({}, "function_call")
      ),
      { calls: [one], names: ["look"] }
    ],
    "a call as text is text": [
      chunks(...said('<tool_call>{"name":"look"}</tool_call>'), stop),
      { text: '<tool_call>{"name":"look"}</tool_call>', calls: [] }
    ],
    "text between two calls": [
      chunks(calls(call(text(one))), ...said("fine"), calls(call(text(two), { index: 1, id: "a2" })), called),
      { calls: [one, two], text: "fine" }
    ],
    "a call after the reason of the end": [
      chunks(chunk({ content: "fine" }, "tool_calls"), calls(call(text(one))), called),
      { calls: [one] }
    ],
    "spaces around a name": [
      chunks(calls({ ...call(text(one)), function: { name: " look\n", arguments: text(one) } }), called),
      { calls: [one], names: ["look"] }
    ],
    "a call that the limit cuts": [
      chunks(calls(call('{"path":"on')), chunk({}, "length")),
      { calls: [], reason: "length" }
    ]
  }
}

const streams: Reports = {
  "MD-90": {
    "reads an answer as JSON": refusal(200, whole({ role: "assistant", content: "fine" })),
    "reads an error as JSON": [
      refusal(200, { error: { message: "Model qwen3 not found" } }),
      { error: "Model qwen3 not found" }
    ],
    "reads an error of Z.ai": [
      refusal(200, { code: 1113, msg: "Insufficient balance", success: false }),
      { error: "Insufficient balance" }
    ],
    "reads an error of MiniMax": [
      refusal(200, { base_resp: { status_code: 1004, status_msg: "login fail" }, choices: null }),
      { error: "login fail" }
    ],
    "reads a page": [
      { headers: { "content-type": "text/html" }, chunks: ["<html><title>Corporate login</title></html>"] },
      { error: "an HTML page (Corporate login)", retryable: false }
    ],
    "reads an error that is a text": [
      raw("event: error\n", data({ error: "model runner has stopped" })),
      { error: "model runner has stopped" }
    ],
    "reads an error of vLLM": [
      raw(data({ object: "error", message: "Internal failure", code: 500 })),
      { error: "Internal failure" }
    ],
    "reads plain text before any output": [raw(data("upstream connect error")), { error: "not JSON", retryable: true }],
    "reads a finish with an error": [
      chunks(
        chunk({ content: "part" }),
        chosen({}, "error", { error: { code: 502, message: "Provider disconnected" } })
      ),
      { text: "part", error: "Provider disconnected" }
    ],
    "reads a finish that is an error": [
      chunks(chunk({ content: "part" }), chunk({}, "error")),
      { text: "part", error: "ended the answer with error" }
    ],
    "reads a server without resources": [
      chunks(chunk({}, "insufficient_system_resource")),
      { error: "insufficient_system_resource", retryable: true }
    ],
    "reads a cut answer": [chunks(...said("cut"), chunk({}, "length")), { text: "cut", reason: "length" }],
    "reads a filtered answer": [
      chunks(...said(""), chunk({}, "content_filter")),
      { text: "", reason: "content-filter" }
    ],
    "reads a filter with its cause": [chunks(chunk({}, "content_filter: SAFETY")), { reason: "content-filter" }],
    "reads a refusal": [chunks(chunk({ refusal: "I cannot." }), stop), { text: "I cannot.", reason: "content-filter" }],
    "reads a last event without an empty line": raw(...said("fine").map(data), data(stop).trimEnd()),
    "reads an event without choices": raw(
      data({ id: "x" }),
      ...said("fine").map(data),
      data(stop),
      data({ usage: { prompt_tokens: 3 } })
    ),
    "reads words in capitals": chunks(chunk({ role: "ASSISTANT", content: "fine" }), chunk({ role: "model" }, "STOP")),
    "reads an empty input": [chunks(calls(call("")), called), { calls: [{}] }],
    "reads a null input": [chunks(calls(call("null")), called), { calls: [{}] }],
    "reads metadata after a call": [
      chunks(calls(call(text(one))), calls({ index: 0, extra_content: { google: { thought_signature: "S" } } }), stop),
      { calls: [one], reason: "tool-calls" }
    ],
    "reads calls with neither index nor id": [
      chunks(
        calls(call(text(one), { index: undefined, id: undefined })),
        calls(call(text(two), { index: undefined, id: undefined })),
        stop
      ),
      { calls: [one, two] }
    ],
    "reads calls that all have the index 0": [
      chunks(calls(call(text(one))), calls(call(text(two), { id: "a2" })), called),
      { calls: [one, two] }
    ],
    "reads calls with one id": [
      chunks(calls(call(text(one))), calls(call(text(two), { index: 1 })), called),
      { calls: [one, two] }
    ],
    "reads another id with each piece": [
      chunks(calls(call('{"path"')), calls({ index: 0, id: "x1", function: { arguments: ':"one"}' } }), called),
      { calls: [one] }
    ],
    "reads calls in turns": [
      chunks(
        calls(call('{"path"')),
        calls(call('{"path"', { index: 1, id: "a2" })),
        calls({ index: 0, function: { arguments: ':"one"}' } }),
        calls({ index: 1, function: { arguments: ':"two"}' } }),
        called
      ),
      { calls: [one, two] }
    ],
    "reads a late piece of a call that is complete": [
      chunks(
        calls(call(text(one))),
        calls(call(text(two), { index: 1, id: "a2" })),
        calls({ index: 0, function: { arguments: "" } }),
        called
      ),
      { calls: [one, two] }
    ],
    "reads an empty id": [chunks(calls(call(text(one), { id: "" })), called), { calls: [one] }],
    "reads a call of the older form": [
      chunks(chunk({ function_call: { name: "look", arguments: "{}" } }), chunk({}, "function_call")),
      { calls: [{}] }
    ],
    "reads counts in other types": raw(
      ...said("fine").map(data),
      data({ ...stop, usage: { prompt_tokens: "12", completion_tokens: 3.5 } })
    ),
    "reads thinking and text in the parts of one content": [
      chunks(
        chunk({
          content: [
            { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
            { type: "text", text: "fine" }
          ]
        }),
        stop
      ),
      { ...fine, thought: "hm" }
    ],
    "reads the finish beside the content": chunks(chunk({ content: "fine" }, "stop")),
    "reads the first of two choices": chunks(
      { choices: [{ index: 1, delta: { content: "WRONG" }, finish_reason: "stop" }] },
      ...said("fine"),
      stop
    ),
    "reads the whole message at the end": chunks(...said("fi", "ne"), whole({ content: "fine" })),
    "reads nothing after the end": raw(...said("fine").map(data), data(stop), "data: {trunc\n\n"),
    "reads a connection that breaks before the end": [
      { ...raw(...said("fine").map(data)), ending: "cut" },
      { error: "", retryable: true }
    ]
  }
}

reported("openai-compatible", "m", streams, thinking, callRows)

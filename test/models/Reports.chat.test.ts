/** Thinking and calls that servers of chat completions were reported to send: agents, gateways and local servers. */
import { call, called, calls, chunk, done, fine, one, said, stop, text, two, whole } from "./support/ChatChunks.ts"
import { data, raw, reported, type Row } from "./support/Reported.ts"
import { chunks, refusal } from "./support/Server.ts"

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

reported("openai-compatible", "m", [...thinking, ...callRows])

/** Odd streams of chat completions, as servers were reported to send them, over real HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { answer, connect, only, textOf, tool } from "./support/Client.ts"
import { chunks, refusal, type Reply } from "./support/Server.ts"

type Json = Record<string, unknown>

const chunk = (delta: Json | null, finish_reason: string | null = null, more: Json = {}) => ({
  id: "c1",
  object: "chat.completion.chunk",
  model: "m",
  choices: [{ index: 0, delta, finish_reason, ...more }]
})
const call = (args: unknown, more: Json = {}) => ({
  index: 0,
  id: "a1",
  type: "function",
  function: { name: "look", arguments: args },
  ...more
})
const calls = (...all: ReadonlyArray<Json>) => chunk({ tool_calls: all })
const fine = [chunk({ role: "assistant", content: "fine" }), chunk({}, "stop")]
const raw = (...parts: ReadonlyArray<string>): Reply => ({ chunks: parts })
const data = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
const [said, stop] = [data(fine[0]), data(fine[1])]
const one = { path: "one" }
const two = { path: "two" }

/** What a reply is read as: its text, its calls, its reason, or a part of its error. */
interface Expected {
  readonly text?: string
  readonly calls?: ReadonlyArray<unknown>
  readonly reason?: string
  readonly error?: string
  readonly retryable?: boolean
}

const table: ReadonlyArray<readonly [string, Reply, Expected]> = [
  [
    "a whole answer as JSON",
    refusal(200, { choices: [{ index: 0, message: { role: "assistant", content: "fine" }, finish_reason: "stop" }] }),
    { text: "fine" }
  ],
  [
    "a whole answer with calls as JSON",
    refusal(200, { choices: [{ message: { tool_calls: [call(JSON.stringify(one))] }, finish_reason: "tool_calls" }] }),
    { calls: [one] }
  ],
  [
    "an error as JSON",
    refusal(200, { error: { message: "Model qwen3 not found" } }),
    { error: "Model qwen3 not found" }
  ],
  [
    "an error of Z.ai",
    refusal(200, { code: 1113, msg: "Insufficient balance", success: false }),
    { error: "Insufficient balance" }
  ],
  [
    "an error of MiniMax",
    refusal(200, { base_resp: { status_code: 1004, status_msg: "login fail" }, choices: null }),
    { error: "login fail" }
  ],
  [
    "a page",
    { headers: { "content-type": "text/html" }, chunks: ["<html><title>Corporate login</title></html>"] },
    { error: "an HTML page (Corporate login)", retryable: false }
  ],
  [
    "an error that is a text",
    raw("event: error\n", data({ error: "model runner has stopped" })),
    { error: "model runner has stopped" }
  ],
  [
    "an error of vLLM",
    raw(data({ object: "error", message: "Internal failure", code: 500 })),
    { error: "Internal failure" }
  ],
  ["plain text before any output", raw(data("upstream connect error")), { error: "not JSON", retryable: true }],
  [
    "a finish with an error",
    chunks(chunk({ content: "part" }), chunk({}, "error", { error: { code: 502, message: "Provider disconnected" } })),
    { text: "part", error: "Provider disconnected" }
  ],
  [
    "a finish that is an error",
    chunks(chunk({ content: "part" }), chunk({}, "error")),
    { text: "part", error: "ended the answer with error" }
  ],
  [
    "a server without resources",
    chunks(chunk({}, "insufficient_system_resource")),
    { error: "insufficient_system_resource", retryable: true }
  ],
  ["a cut answer", chunks(chunk({ content: "cut" }), chunk({}, "length")), { text: "cut", reason: "length" }],
  [
    "a filtered answer",
    chunks(chunk({ content: "" }), chunk({}, "content_filter")),
    { text: "", reason: "content-filter" }
  ],
  ["a filter with its cause", chunks(chunk({}, "content_filter: SAFETY")), { reason: "content-filter" }],
  [
    "a refusal",
    chunks(chunk({ refusal: "I cannot." }), chunk({}, "stop")),
    { text: "I cannot.", reason: "content-filter" }
  ],
  ["an end mark without a reason", raw(said, data("[DONE]")), { text: "fine" }],
  ["neither an end mark nor a reason", raw(said), { error: "before it was complete", retryable: true }],
  ["a last event without an empty line", raw(said, stop.trimEnd()), { text: "fine" }],
  ["comments", raw(": OPENROUTER PROCESSING\n\n", said, ":\n\n", stop), { text: "fine" }],
  ["events without data", raw("event: ping\n\n", "data:\n\n", "data: \n\n", said, stop), { text: "fine" }],
  [
    "an event without choices",
    raw(data({ id: "x" }), said, stop, data({ usage: { prompt_tokens: 3 } })),
    { text: "fine" }
  ],
  ["a ping", raw(data({ type: "ping" }), said, stop), { text: "fine" }],
  [
    "words in capitals",
    chunks(chunk({ role: "ASSISTANT", content: "fine" }), chunk({ role: "model" }, "STOP")),
    { text: "fine" }
  ],
  ["an input as an object", chunks(calls(call(one)), chunk({}, "tool_calls")), { calls: [one] }],
  [
    "an input in a text",
    chunks(calls(call(JSON.stringify(JSON.stringify(one)))), chunk({}, "tool_calls")),
    { calls: [one] }
  ],
  ["an empty input", chunks(calls(call("")), chunk({}, "tool_calls")), { calls: [{}] }],
  ["a null input", chunks(calls(call("null")), chunk({}, "tool_calls")), { calls: [{}] }],
  [
    "metadata after a call",
    chunks(
      calls(call(JSON.stringify(one))),
      calls({ index: 0, extra_content: { google: { thought_signature: "S" } } }),
      chunk({}, "stop")
    ),
    { calls: [one], reason: "tool-calls" }
  ],
  [
    "calls without an index",
    chunks(
      calls(call(JSON.stringify(one), { index: undefined }), call(JSON.stringify(two), { index: undefined, id: "a2" })),
      chunk({}, "stop")
    ),
    { calls: [one, two] }
  ],
  [
    "calls with neither index nor id",
    chunks(
      calls(call(JSON.stringify(one), { index: undefined, id: undefined })),
      calls(call(JSON.stringify(two), { index: undefined, id: undefined })),
      chunk({}, "stop")
    ),
    { calls: [one, two] }
  ],
  [
    "calls that all have the index 0",
    chunks(calls(call(JSON.stringify(one))), calls(call(JSON.stringify(two), { id: "a2" })), chunk({}, "tool_calls")),
    { calls: [one, two] }
  ],
  [
    "calls with one id",
    chunks(calls(call(JSON.stringify(one))), calls(call(JSON.stringify(two), { index: 1 })), chunk({}, "tool_calls")),
    { calls: [one, two] }
  ],
  [
    "another id with each piece",
    chunks(
      calls(call('{"path"')),
      calls({ index: 0, id: "x1", function: { arguments: ':"one"}' } }),
      chunk({}, "tool_calls")
    ),
    { calls: [one] }
  ],
  [
    "calls in turns",
    chunks(
      calls(call('{"path"')),
      calls(call('{"path"', { index: 1, id: "a2" })),
      calls({ index: 0, function: { arguments: ':"one"}' } }),
      calls({ index: 1, function: { arguments: ':"two"}' } }),
      chunk({}, "tool_calls")
    ),
    { calls: [one, two] }
  ],
  [
    "a late piece of a call that is complete",
    chunks(
      calls(call(JSON.stringify(one))),
      calls(call(JSON.stringify(two), { index: 1, id: "a2" })),
      calls({ index: 0, function: { arguments: "" } }),
      chunk({}, "tool_calls")
    ),
    { calls: [one, two] }
  ],
  ["an empty id", chunks(calls(call(JSON.stringify(one), { id: "" })), chunk({}, "tool_calls")), { calls: [one] }],
  [
    "a call of the older form",
    chunks(chunk({ function_call: { name: "look", arguments: "{}" } }), chunk({}, "function_call")),
    { calls: [{}] }
  ],
  [
    "counts in other types",
    raw(said, data({ ...fine[1], usage: { prompt_tokens: "12", completion_tokens: 3.5 } })),
    { text: "fine" }
  ],
  [
    "content in parts",
    chunks(
      chunk({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "fine" }
        ]
      }),
      chunk({}, "stop")
    ),
    { text: "fine" }
  ],
  ["the finish beside the content", chunks(chunk({ content: "fine" }, "stop")), { text: "fine" }],
  ["no delta", chunks(chunk(null), ...fine.slice(0, 1), chunk(null, "stop")), { text: "fine" }],
  [
    "another choice",
    chunks({ choices: [{ index: 1, delta: { content: "WRONG" }, finish_reason: "stop" }] }, ...fine),
    { text: "fine" }
  ],
  [
    "the whole message at the end",
    chunks(chunk({ content: "fi" }), chunk({ content: "ne" }), {
      choices: [{ index: 0, message: { content: "fine" }, finish_reason: "stop" }]
    }),
    { text: "fine" }
  ],
  ["garbage after the end", raw(said, stop, "data: {trunc\n\n"), { text: "fine" }],
  ["a connection that breaks after the reason", { ...raw(said, stop), ending: "cut" }, { text: "fine" }],
  ["a connection that breaks before", { ...raw(said), ending: "cut" }, { error: "", retryable: true }]
]

describe("a stream of chat completions", () => {
  for (const [name, reply, { calls, error, reason, retryable, text }] of table) {
    it.scopedLive(`MD-90: reads ${name}`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("openai-compatible", { id: "m" }, reply)
        const outcome = yield* Effect.either(answer(model, { prompt: "go", tools: [tool("look")] }))
        const parts = Either.getOrElse(outcome, () => [])
        const [failed] = only(parts, "error")
        const failure = Either.isLeft(outcome) ? outcome.left : failed?.error
        if (text !== undefined && Either.isRight(outcome)) assert.strictEqual(textOf(parts), text)
        if (calls !== undefined)
          assert.deepStrictEqual<unknown>(
            only(parts, "tool-call").map(({ params }) => params),
            calls
          )
        if (reason !== undefined) assert.strictEqual(only(parts, "finish")[0]?.reason, reason)
        if (error === undefined) return assert.isUndefined(failure)
        const { message, retryable: again } = classifyError(failure)
        assert.include(message, error)
        if (retryable !== undefined) assert.strictEqual(again, retryable)
      })
    )
  }
})

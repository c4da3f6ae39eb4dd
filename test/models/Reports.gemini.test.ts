/** What Gemini and gateways to it were reported to send. */
import { fine, raw, reported, type Reports } from "./support/Reported.ts"
import { refusal, type Reply } from "./support/Server.ts"

type Json = Record<string, unknown>

const part = (...parts: ReadonlyArray<Json>) => ({ candidates: [{ content: { role: "model", parts }, index: 0 }] })
const words = (text: string, more: Json = {}) => part({ text, ...more })
const ends = (finishReason: string, more: Json = {}) => ({
  candidates: [{ finishReason, index: 0, ...more }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3 }
})
const stop = ends("STOP")
const call = (args: unknown, more: Json = {}, beside: Json = {}) =>
  part({ functionCall: { name: "look", args, ...more }, ...beside })
const one = { path: "one" }
const two = { path: "two" }
const text = JSON.stringify
const stream = (...all: ReadonlyArray<unknown>): Reply => raw(...all.map((chunk) => `data: ${text(chunk)}\r\n\r\n`))

const rows: Reports = {
  "MD-113": {
    "a signature on an empty text (Gemini 3)": stream(words("fine"), words("", { thoughtSignature: "s" }), stop),
    "a signature on the text": stream(words("fine", { thoughtSignature: "s" }), stop),
    "a part with a signature alone": stream(words("fine"), part({ thoughtSignature: "s" }), stop),
    "a summary of thinking before the text": [
      stream(words("hm", { thought: true }), words("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "a thought whose mark is a text (gateways)": [
      stream(words("hm", { thought: "true" }), words("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "a thought as a text of its own": [
      stream(part({ thought: "hm" }), words("fine"), stop),
      { ...fine, thought: "hm" }
    ],
    "parts of several kinds in one event": [
      stream(
        part({ text: "hm", thought: true }, { text: "fine" }, { functionCall: { name: "look", args: one } }),
        stop
      ),
      { text: "fine", thought: "hm", calls: [one] }
    ],
    "calls without an id": [stream(call(one), call(two), stop), { calls: [one, two], reason: "tool-calls" }],
    "two calls of the same input without an id": [stream(call(one), call(one), stop), { calls: [one, one] }],
    "a call that is sent again under its id, without its signature": [
      stream(call(one, { id: "a" }, { thoughtSignature: "s" }), call(one, { id: "a" }), stop),
      { calls: [one], ids: ["a"] }
    ],
    "one id for two calls": [
      stream(call(one, { id: "a" }), call(two, { id: "a" }), stop),
      { calls: [one, two], ids: ["a", "a_2"] }
    ],
    "an input that is null or absent": [
      stream(call(null), part({ functionCall: { name: "look" } }), stop),
      { calls: [{}, {}] }
    ],
    "an input in a text (gateways)": [stream(call(text(one)), stop), { calls: [one] }],
    "a name with its space (default_api)": [
      stream(part({ functionCall: { name: "default_api:look", args: one } }), stop),
      { calls: [one], names: ["look"] }
    ],
    "code that the server ran is skipped": stream(
      part({ executableCode: { language: "PYTHON", code: "1" } }),
      part({ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }),
      words("fine"),
      stop
    ),
    "one part in the place of the list": stream({
      candidates: [{ content: { parts: { text: "fine" } }, finishReason: "STOP" }]
    }),
    "a text that is null": stream(part({ text: null }), words("fine"), stop),
    "names with underscores (gateways)": [
      stream({
        candidates: [{ content: { parts: [{ function_call: { name: "look", args: one } }] }, finish_reason: "STOP" }],
        usage_metadata: { prompt_token_count: 5, candidates_token_count: 3 }
      }),
      { calls: [one], input: 5, output: 3 }
    ],
    "one candidate in the place of the list": stream({
      candidates: { content: { parts: [{ text: "fine" }] }, finishReason: "STOP" }
    }),
    "an event inside response (Code Assist, Antigravity)": [
      stream({ response: words("fi"), traceId: "t" }, { response: words("ne") }, { response: stop }),
      { ...fine, input: 5 }
    ]
  },
  "MD-114": {
    "a call without a name and arguments is skipped": [
      stream(call(one), part({ functionCall: {} }), stop),
      { calls: [one] }
    ],
    "the reason with the last text": stream({
      candidates: [{ content: { parts: [{ text: "fine" }] }, finishReason: "STOP" }]
    }),
    "the reason in each event": stream(
      { candidates: [{ content: { parts: [{ text: "fi" }] }, finishReason: "STOP" }] },
      { candidates: [{ content: { parts: [{ text: "ne" }] }, finishReason: "STOP" }] }
    ),
    "a call after the reason": [
      stream({ candidates: [{ content: { parts: [{ text: "fine" }] }, finishReason: "STOP" }] }, call(one), stop),
      { text: "fine", calls: [one], reason: "tool-calls" }
    ],
    "a reason that is not one": stream(
      { candidates: [{ content: { parts: [{ text: "fine" }] }, finishReason: "FINISH_REASON_UNSPECIFIED" }] },
      stop
    ),
    "a reason in lower case": stream(words("fine"), { candidates: [{ finishReason: "stop" }] }),
    "the limit": [stream(words("fi"), ends("MAX_TOKENS")), { text: "fi", reason: "length" }],
    "a filter in the middle": [stream(words("fi"), ends("SAFETY")), { text: "fi", reason: "content-filter" }],
    "a recitation": [stream(words("fi"), ends("RECITATION")), { text: "fi", reason: "content-filter" }],
    "a language that is not served": [stream(ends("LANGUAGE")), { reason: "other" }],
    "a call that the model wrote badly": [
      stream(ends("MALFORMED_FUNCTION_CALL", { finishMessage: "Malformed function call: print(" })),
      { error: "could not read (MALFORMED_FUNCTION_CALL)", retryable: true }
    ],
    "a call of a tool that is not there": [
      stream(ends("UNEXPECTED_TOOL_CALL")),
      { error: "not offered", retryable: true }
    ],
    "a signature that is missing": [stream(ends("MISSING_THOUGHT_SIGNATURE")), { error: "MISSING_THOUGHT_SIGNATURE" }],
    "a prompt that is blocked": [
      stream({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 5 } }),
      { text: "", reason: "content-filter", input: 5 }
    ],
    "an empty answer that stops": [
      stream({ candidates: [{ content: { role: "model" }, finishReason: "STOP", index: 0 }] }),
      { text: "", reason: "stop" }
    ],
    "empty candidates, then an answer": stream(
      { candidates: [] },
      { candidates: null },
      { usageMetadata: { promptTokenCount: 5 } },
      words("fine"),
      stop
    )
  },
  "MD-94": {
    "no reason at all": [stream(words("fine")), { error: "before it was complete", retryable: true }],
    "a silence after the reason": { ...stream(words("fine"), stop), ending: "silence" }
  },
  "MD-115": {
    "thinking only in the total": [
      stream(words("fine"), {
        candidates: [{ finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 15 }
      }),
      { input: 5, output: 10 }
    ],
    "thinking beside the output": [
      stream(words("fine"), {
        candidates: [{ finishReason: "STOP" }],
        usageMetadata: {
          promptTokenCount: 5,
          candidatesTokenCount: 3,
          thoughtsTokenCount: 4,
          cachedContentTokenCount: 2
        }
      }),
      { input: 5, output: 7, cached: 2 }
    ],
    "usage in every event": [
      stream(
        { ...words("fi"), usageMetadata: { promptTokenCount: 5 } },
        { ...words("ne"), usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1 } },
        stop
      ),
      { input: 5, output: 3 }
    ]
  },
  "MD-116": {
    "a list that streams": raw(`[${text(words("fi"))}\n`, `,\r\n${text(words("ne"))}`, `,\n${text(stop)}]`),
    "an error in a list": [
      refusal(400, [{ error: { code: 400, message: "bad schema", status: "INVALID_ARGUMENT" } }]),
      { error: "bad schema", retryable: false }
    ]
  },
  "MD-17": {
    "an error in the middle": [
      stream(words("fi"), { error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }),
      { error: "overloaded", retryable: true }
    ],
    "a limit with a wait in its details": [
      refusal(429, {
        error: {
          code: 429,
          message: "Quota exceeded",
          status: "RESOURCE_EXHAUSTED",
          details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34s" }]
        }
      }),
      { error: "Quota exceeded", retryable: true }
    ],
    "an error whose message is JSON": [
      refusal(400, {
        error: {
          code: 400,
          message: text({ error: { code: 400, message: "Function call is missing a thought_signature" } })
        }
      }),
      { error: "400: Function call is missing" }
    ]
  },
  "MD-90": {
    "a whole answer": refusal(200, {
      ...words("fine"),
      candidates: [{ content: { parts: [{ text: "fine" }] }, finishReason: "STOP" }]
    })
  },
  "MD-93": {
    "a page": [
      { chunks: ["<html><title>Not found</title>"], headers: { "content-type": "text/html" } },
      { error: "HTML page (Not found)", retryable: false }
    ]
  }
}

reported("gemini", "gemini-3-pro-preview", rows)

/** Ends, counts and errors that servers of chat completions were reported to send. */
import { gzipSync } from "node:zlib"
import { bytes, call, called, calls, chunk, done, one, said, stop, text, whole } from "./support/ChatChunks.ts"
import { data, fine, raw, reported, type Reports } from "./support/Reported.ts"
import { chunks, refusal } from "./support/Server.ts"

const failed = (word: string, error: string) =>
  [chunks(...said("fi"), chunk({}, word)), { text: "fi", error, retryable: true }] as const

const ends: Reports = {
  "MD-786": {
    "the limit, then an end of the gateway": [
      chunks(...said("fi"), chunk({}, "length"), stop),
      { text: "fi", reason: "length" }
    ],
    "a filter, then an end of the gateway": [
      chunks(...said("fi"), chunk({}, "content_filter"), stop),
      { text: "fi", reason: "content-filter" }
    ],
    "a request that the engine gave up (vLLM)": failed("abort", "with abort"),
    "a server that ran out of time": failed("timeout", "with timeout"),
    "an engine that is overloaded (Moonshot)": failed("engine_overloaded", "with engine_overloaded"),
    "a failure behind a gateway that ends well (OpenRouter)": [
      chunks(...said("fi"), { choices: [{ finish_reason: "stop", native_finish_reason: "network_error" }] }),
      { text: "fi", error: "with network_error", retryable: true }
    ],
    "a full window": [chunks(...said("fi"), chunk({}, "context_length_exceeded")), { text: "fi", reason: "length" }],
    "a guard rail (Bedrock by a gateway)": [
      chunks(...said("fi"), chunk({}, "guardrail_intervened")),
      { text: "fi", reason: "content-filter" }
    ],
    "a refusal among the parts": [
      chunks(chunk({ content: [{ type: "refusal", refusal: "no" }] }), stop),
      { text: "no", reason: "content-filter" }
    ]
  },
  "MD-94": {
    "no mark at the end": raw(data(said("fine")[0]), data(stop)),
    "no reason, but the mark": [raw(data(said("fine")[0]), done), { text: "fine" }],
    "a mark in quotes": raw(data(said("fine")[0]), data(stop), data('"[DONE]"')),
    "a mark without a space, and in lower case": [raw(data(said("fine")[0]), "data:[done]\n\n"), { text: "fine" }],
    "a mark without its name": [raw(data(said("fine")[0]), "[DONE]\n\n"), { text: "fine" }],
    "a connection that breaks after the reason": { chunks: [data(said("fine")[0]), data(stop)], ending: "cut" },
    "no reason and no mark": [raw(data(said("fine")[0])), { error: "before it was complete", retryable: true }],
    "a reason that is an empty text": chunks(chunk({ content: "fi" }, ""), chunk({ content: "ne" }, ""), stop),
    "a reason in each piece (older proxies)": chunks(
      chunk({ content: "fi" }, "stop"),
      chunk({ content: "ne" }, "stop")
    ),
    "a reason beside the choices": [
      raw(data({ choices: [{ delta: { content: "fine" } }], finish_reason: "stop" }), done),
      { text: "fine" }
    ],
    "nothing but the mark": [raw(done), { error: "before it was complete", retryable: true }],
    "usage after the reason, then silence": [
      {
        chunks: [
          data(said("fine")[0]),
          data(stop),
          data({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })
        ],
        ending: "silence"
      },
      { ...fine, input: 5, output: 2 }
    ]
  },
  "MD-90": {
    "a stream as application/json": {
      ...chunks(...said("fine"), stop),
      headers: { "content-type": "application/json" }
    },
    "a whole answer as an event": raw(data(whole({ content: "fine" })), done),
    "a whole answer on many lines": {
      chunks: [JSON.stringify(whole({ content: "fine" }), null, 2)],
      headers: { "content-type": "application/json" }
    },
    "spaces before a whole answer (keep-alive of OpenRouter)": {
      chunks: ["\n\n   \n", JSON.stringify(whole({ content: "fine" }))],
      headers: { "content-type": "application/json" }
    },
    "a whole answer with several choices": refusal(200, {
      choices: [
        { index: 0, message: { content: "fine" }, finish_reason: "stop" },
        { index: 1, message: { content: "x" } }
      ]
    }),
    "a whole answer whose content is null, with calls": [
      refusal(200, whole({ content: null, tool_calls: [call(text(one))] }, "tool_calls")),
      { calls: [one] }
    ],
    "lines of JSON without data (Ollama)": raw(`${text(said("fine")[0])}\n`, `${text(stop)}\n`),
    "text of the older completions": raw(data({ choices: [{ index: 0, text: "fine", finish_reason: "stop" }] }), done),
    "choices in an object": raw(
      data({ choices: { index: 0, delta: { content: "fine" }, finish_reason: "stop" } }),
      done
    )
  },
  "MD-92": {
    "comments of OpenRouter": raw(
      ": OPENROUTER PROCESSING\n\n",
      data(said("fine")[0]),
      ": OPENROUTER PROCESSING\n\n",
      data(stop),
      done
    ),
    "fields of the stream that are unknown": raw(
      "id: 1\nretry: 100\nfoo: bar\nevent: message\n",
      data(said("fine")[0]),
      data(stop),
      done
    ),
    "data that is empty or null": raw(
      "data:\n\n",
      "data: \n\n",
      data("null"),
      data(said("fine")[0]),
      data("{}"),
      data(stop),
      done
    ),
    "comments as data (Vertex)": raw(
      "data: : keepalive\n\n",
      data(said("fine")[0]),
      "data: : keepalive\n\n",
      data(stop)
    ),
    "a ping in JSON": raw(data({ type: "ping" }), data(said("fine")[0]), data(stop), done),
    "the name of the field twice (proxies)": raw(`data: ${data(said("fine")[0])}`, `data: ${data(stop)}`, done),
    "a name in capitals, with spaces": raw(`Data : ${text(said("fine")[0])}\n\n`, `DATA: ${text(stop)}\n\n`, done),
    "only returns between the lines": raw(`data: ${text(said("fine")[0])}\r\r`, `data: ${text(stop)}\r\r`),
    "JSON over several lines of data": raw(
      'data: {\ndata: "choices": [{"delta":{"content":"fine"}}]\ndata: }\n\n',
      data(stop),
      done
    ),
    "JSON with line breaks and one name": raw(
      `data: ${JSON.stringify(said("fine")[0], null, 2)}\n\n`,
      data(stop),
      done
    ),
    "characters cut between pieces": [bytes(`${data(said("日本 😀")[0])}${data(stop)}${done}`), { text: "日本 😀" }],
    "a compressed stream": {
      chunks: [gzipSync(`${data(said("fine")[0])}${data(stop)}${done}`).toString("latin1")],
      encoding: "latin1",
      headers: { "content-encoding": "gzip" }
    },
    "frames that are glued": raw(`${data(said("fi")[0]).trim()}${data(said("ne")[0]).trim()}\n\n`, data(stop), done),
    "separators of records": raw(`\u001e${text(said("fine")[0])}\n`, `\u001e${text(stop)}\n`),
    "a piece of a megabyte": [chunks(...said("x".repeat(1_000_000)), stop), { text: "x".repeat(1_000_000) }],
    "numbers that JSON does not have (vLLM's NaN)": raw(
      `data: {"choices":[{"index":0,"delta":{"content":"fine"},"logprobs":NaN}]}\n\n`,
      data(stop),
      done
    )
  },
  "MD-20": {
    "a filter before the content (Azure)": chunks(
      { choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] },
      ...said("fine"),
      stop
    ),
    "choices that are null": chunks({ choices: null }, ...said("fine"), stop),
    "a delta that is null": chunks(chunk(null), ...said("fine"), chunk(null, "stop")),
    "a content that is a number": [chunks(chunk({ content: 42 }), stop), { text: "42" }],
    "a content that is one part": chunks(chunk({ content: { type: "text", text: "fine" } }), stop),
    "a list of texts as the content": chunks(chunk({ content: ["fi", "ne"] }), stop),
    "an index in a text": chunks({ choices: [{ index: "0", delta: { content: "fine" }, finish_reason: "stop" }] }),
    "a reason in capitals (Gemini by a gateway)": [
      chunks(...said("fine"), chunk({}, "MAX_TOKENS")),
      { text: "fine", reason: "length" }
    ],
    "a reason that is unknown": [chunks(...said("fine"), chunk({}, "novel")), { text: "fine", reason: "unknown" }],
    "a filter as the reason": [
      chunks(...said("fi"), chunk({}, "content_filter")),
      { text: "fi", reason: "content-filter" }
    ],
    "the reason of Anthropic by a gateway": [
      chunks(...said("no"), chunk({}, "refusal")),
      { text: "no", reason: "content-filter" }
    ],
    "sound beside text is skipped": chunks(chunk({ content: "fine", audio: { data: "x" }, annotations: [{}] }), stop)
  }
}

const odd: Reports = {
  "MD-140": {
    "blanks without an end": [
      chunks(...Array.from({ length: 3000 }, () => chunk({ content: "\n".repeat(100) })), stop),
      { thought: "", text: "\n".repeat(300_000), reason: "stop" }
    ],
    "a head of a channel without an end": [
      chunks(...said("<|", "x".repeat(500)), stop),
      { text: `<|${"x".repeat(500)}` }
    ]
  },
  "MD-93": {
    "a whole answer that is cut": [
      { chunks: ['{"choices":[{"message":{"content":"fi'], headers: { "content-type": "application/json" } },
      { error: "not JSON", retryable: true }
    ]
  },
  "MD-90": {
    "a whole answer with a mark after it": raw(`${text(whole({ content: "fine" }))}\n`, "[DONE]\n")
  },
  "MD-91": {
    "long inputs of two calls in turns": [
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
  }
}

const usage: Reports = {
  "MD-96": {
    "thinking beside the output (xAI)": [
      chunks(...said("fine"), {
        ...stop,
        usage: {
          prompt_tokens: 9,
          completion_tokens: 3,
          completion_tokens_details: { reasoning_tokens: 100 },
          total_tokens: 112
        }
      }),
      { input: 9, output: 103 }
    ],
    "hits of the cache in the names of Anthropic (gateways)": [
      chunks(...said("fine"), {
        ...stop,
        usage: { prompt_tokens: 9, completion_tokens: 3, cache_read_input_tokens: 4 }
      }),
      { input: 9, cached: 4 }
    ],
    "usage in every piece": [
      chunks(
        { ...said("fi")[0], usage: { prompt_tokens: 5, completion_tokens: 1 } },
        { ...said("ne")[0], usage: { prompt_tokens: 5, completion_tokens: 2 } },
        { ...stop, usage: { prompt_tokens: 5, completion_tokens: 3 } }
      ),
      { input: 5, output: 3 }
    ],
    "usage that is null, then counted": [
      chunks({ ...said("fine")[0], usage: null }, { ...stop, usage: { prompt_tokens: "5", completion_tokens: "3" } }),
      { input: 5, output: 3 }
    ],
    "usage in the names of Responses (gateways)": [
      chunks(...said("fine"), { ...stop, usage: { input_tokens: 5, output_tokens: 3 } }),
      { input: 5, output: 3 }
    ],
    "hits of the cache (DeepSeek)": [
      chunks(...said("fine"), {
        ...stop,
        usage: { prompt_tokens: 9, completion_tokens: 3, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5 }
      }),
      { input: 9, cached: 4 }
    ],
    "cached tokens at the top (Kimi)": [
      chunks(...said("fine"), { ...stop, usage: { prompt_tokens: 9, completion_tokens: 3, cached_tokens: 4 } }),
      { cached: 4 }
    ],
    "cached tokens that are null": [
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
    "cached tokens in a detail that is empty, and at the top": [
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
    "counts below zero": [
      chunks(...said("fine"), { ...stop, usage: { prompt_tokens: -1, completion_tokens: 3 } }),
      { output: 3 }
    ],
    "the timings of llama.cpp": [
      chunks(...said("fine"), { ...stop, timings: { prompt_n: 5, predicted_n: 3, cache_n: 4 } }),
      { input: 9, output: 3, cached: 4 }
    ],
    "usage of Groq": [
      chunks(...said("fine"), { ...stop, x_groq: { usage: { prompt_tokens: 5, completion_tokens: 3 } } }),
      { input: 5, output: 3 }
    ]
  }
}

const errors: Reports = {
  "MD-17": {
    "an error as a text with its code": [
      raw(data({ error: "Too fast", code: 429 })),
      { error: "Too fast", retryable: true }
    ],
    "an error that is true": [raw(data({ error: true, message: "it broke" })), { error: "it broke", retryable: false }],
    "errors in a list, within an answer": [raw(data({ errors: [{ message: "no route" }] })), { error: "no route" }],
    "an error over several lines, without data (Gemini by a gateway)": [
      raw(data(said("fi")[0]), JSON.stringify({ error: { code: 503, message: "high demand" } }, null, 2)),
      { error: "high demand", retryable: true }
    ],
    "an error in the middle (OpenRouter)": [
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
    "an error in a choice (OpenRouter)": [
      raw(data({ choices: [{ index: 0, error: { code: 429, message: "Slow down" }, delta: { content: "" } }] }), done),
      { error: "Slow down", retryable: true }
    ],
    "an error that is null beside an answer": chunks({ ...said("fine")[0], error: null }, stop),
    "an error that is an empty object or text beside an answer": chunks(
      { ...said("fi")[0], error: {} },
      { ...said("ne")[0], error: "" },
      stop
    ),
    "JSON in a text as an error": [
      raw(data({ error: { message: text({ error: { message: "The real cause", code: 400 } }), code: 400 } })),
      { error: "The real cause" }
    ],
    "the cause in the metadata (OpenRouter)": [
      refusal(400, {
        error: {
          message: "Provider returned error",
          code: 400,
          metadata: { raw: text({ error: { message: "Unknown field x" } }), provider_name: "X" }
        }
      }),
      { error: "Unknown field x", retryable: false }
    ],
    "a list of errors (FastAPI)": [
      refusal(422, { detail: [{ loc: ["body", "tools"], msg: "field required", type: "missing" }] }),
      { error: "field required" }
    ],
    "errors in a list": [refusal(400, { errors: [{ message: "No such model" }] }), { error: "No such model" }],
    "an error of Cloudflare": [
      refusal(400, { success: false, errors: [{ code: 7000, message: "No route for that URI" }], result: null }),
      { error: "No route for that URI" }
    ],
    "an error under msg": [refusal(400, { code: 400, msg: "bad arguments" }), { error: "bad arguments" }],
    "an error under error_msg (Qianfan)": [
      refusal(200, { error_code: 336003, error_msg: "messages are wrong" }),
      { error: "messages are wrong" }
    ],
    "an error under error.msg": [
      refusal(400, { error: { msg: "bad arguments", code: "1210" } }),
      { error: "bad arguments" }
    ],
    "an object as the message": [
      refusal(400, { message: { detail: [{ msg: "too many stops" }] } }),
      { error: "too many stops" }
    ],
    "an error of AWS": [
      refusal(400, { Message: "No access", __type: "AccessDeniedException" }),
      { error: "No access" }
    ],
    "an error in a text of Python": [
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
    "a status beside the message (Spring)": [
      refusal(500, { timestamp: 1, status: 500, error: "Internal Server Error", path: "/" }),
      { error: "Internal Server Error", retryable: true }
    ],
    "an empty body": [
      { status: 502, chunks: [] },
      { error: "502", retryable: true }
    ],
    "a page as an error": [
      { status: 503, headers: { "content-type": "text/html" }, chunks: ["<html><head><title>503 Unavailable</title>"] },
      { error: "503 Unavailable", retryable: true }
    ],
    "an error as an event with its name": [
      raw(`event: error\n${data({ message: "Overloaded", code: 503 })}`),
      { error: "Overloaded", retryable: true }
    ],
    "an error of Ollama in the middle": [
      raw(
        data(said("fi")[0]),
        data({ error: { message: "unexpected EOF", type: "api_error", param: null, code: null } })
      ),
      { error: "unexpected EOF", retryable: true }
    ],
    "an error whose status is a text": [
      raw(data({ error: { message: "Too fast", status: "RESOURCE_EXHAUSTED", code: "429" } })),
      { error: "Too fast", retryable: true }
    ],
    "a line of an error without data (vLLM)": [
      raw(data(said("fi")[0]), `${text({ error: { message: "engine died", code: 500 } })}\n\n`),
      { error: "engine died" }
    ],
    "an error named in llama.cpp's field": [
      raw(data(said("fi")[0]), `error: ${text({ code: 500, message: "slot lost", type: "server_error" })}\n\n`),
      { error: "slot lost", retryable: true }
    ],
    "an error as a whole text": [refusal(400, "model not loaded"), { error: "model not loaded" }]
  },
  "MD-93": {
    "JSON that is no answer, with words": [
      refusal(200, { message: "Unauthorized" }),
      { error: "JSON that is no answer (Unauthorized)", retryable: false }
    ],
    "events of Anthropic's Messages": [
      raw(data({ type: "message_start", message: { id: "m" } }), data({ type: "content_block_delta", delta: {} })),
      { error: "but one of anthropic", retryable: false }
    ],
    "events of the Responses API": [
      raw(data({ type: "response.created", response: {} }), data({ type: "response.output_text.delta", delta: "x" })),
      { error: "but one of openai", retryable: false }
    ],
    "plain text instead of an answer": [
      { chunks: ["Welcome to nginx"], headers: { "content-type": "text/plain" } },
      { error: "text that is not JSON", retryable: false }
    ],
    "JSON that is no answer, with its host": [
      refusal(200, { status: "ok", version: "1.0" }),
      { error: "127.0.0.1:", retryable: false }
    ],
    "an empty body with a success status": [{ chunks: [] }, { error: "before it was complete", retryable: true }]
  }
}

reported("openai-compatible", "m", ends, odd, usage, errors)

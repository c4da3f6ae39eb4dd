import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { failing, lasting, passing, tooLong } from "./contract/Failures.ts"
import { answer, at, connect, only, secret, textOf, tool } from "./support/Client.ts"
import { chunks, refusal, type Reply } from "./support/Server.ts"

const qwen = { id: "qwen/qwen3:8b" }

const chunk = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_790_000_000,
  model: "qwen3:8b",
  choices: [{ index: 0, delta, finish_reason }]
})
const usage = (value: Record<string, unknown>) => ({ ...chunk({}), choices: [], usage: value })
const counted = usage({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 })
const call = (index: number, id: string, name: string, ...args: ReadonlyArray<string>) => [
  chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
  ...args.map((text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] }))
]
const hello = chunks(
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Hel" }),
  chunk({ content: "lo" }),
  chunk({}, "stop"),
  counted
)

describe("chat completions", () => {
  it.scopedLive("MD-25: text streams, and the request carries model, messages, tools and key", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("openai-compatible", qwen, hello)
      const parts = yield* answer(model, {
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello" },
          { role: "system", content: "The date is new." },
          { role: "user", content: "And now?" }
        ],
        tools: [tool("read")]
      })
      assert.strictEqual(textOf(parts), "Hello")
      assert.deepStrictEqual(only(parts, "finish").map(Struct.get("reason")), ["stop"])
      const [request] = server.received
      assert.strictEqual(request?.path, "/v1/chat/completions")
      assert.strictEqual(request?.headers.authorization, `Bearer ${secret}`)
      assert.deepStrictEqual(at(request?.body, "messages"), [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
        { role: "assistant", content: "Hello" },
        { role: "user", content: "<system-update>\nThe date is new.\n</system-update>\n\nAnd now?" }
      ])
      assert.strictEqual(at(request?.body, "model"), "qwen/qwen3:8b")
      assert.deepStrictEqual(at(request?.body, "stream_options"), { include_usage: true })
      assert.deepStrictEqual(at(request?.body, "tools", 0, "function"), {
        name: "read",
        description: "The read tool",
        parameters: {
          type: "object",
          properties: { path: { type: "string" } },
          required: ["path"],
          additionalProperties: false
        }
      })
    })
  )

  it.scopedLive("MD-26: an answer of thinking alone goes back with an empty text", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("openai-compatible", qwen, hello)
      yield* answer(model, {
        prompt: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: [{ type: "reasoning", text: "Hm." }] },
          { role: "user", content: "And?" }
        ]
      })
      assert.strictEqual(at(server.received[0]?.body, "messages", 1, "content"), "")
    })
  )

  it.scopedLive("MD-26: reasoning, calls in parallel and their results travel both ways", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect(
        "openai-compatible",
        qwen,
        chunks(
          chunk({ role: "assistant", reasoning_content: "Let me " }),
          chunk({ reasoning_content: "see." }),
          ...call(0, "call_1", "read", '{"path":', '"a"}'),
          ...call(1, "call_2", "read", '{"path":"b"}'),
          chunk({}, "tool_calls"),
          counted
        ),
        hello
      )
      const tools = [tool("read")]
      const parts = yield* answer(model, { prompt: "go", tools })
      assert.strictEqual(
        only(parts, "reasoning-delta")
          .map((part) => part.delta)
          .join(""),
        "Let me see."
      )
      assert.strictEqual(only(parts, "reasoning-end").length, 1)
      assert.deepStrictEqual(
        only(parts, "tool-call").map(({ id, name, params }) => ({ id, name, params })),
        [
          { id: "call_1", name: "read", params: { path: "a" } },
          { id: "call_2", name: "read", params: { path: "b" } }
        ] as never
      )
      assert.strictEqual(only(parts, "finish")[0]?.reason, "tool-calls")
      yield* answer(model, {
        tools,
        prompt: [
          { role: "user", content: "go" },
          {
            role: "assistant",
            content: [
              { type: "reasoning", text: "Let me see." },
              { type: "tool-call", id: "call_1", name: "read", params: { path: "a" } },
              { type: "tool-call", id: "call_2", name: "read", params: { path: "b" } }
            ]
          },
          {
            role: "tool",
            content: [
              {
                type: "tool-result",
                id: "call_1",
                name: "read",
                isFailure: false,
                result: "one\n",
                providerExecuted: false
              },
              {
                type: "tool-result",
                id: "call_2",
                name: "read",
                isFailure: true,
                result: { message: "no" },
                providerExecuted: false
              }
            ]
          }
        ]
      })
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 1), {
        role: "assistant",
        content: null,
        reasoning_content: "Let me see.",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
          { id: "call_2", type: "function", function: { name: "read", arguments: '{"path":"b"}' } }
        ]
      })
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 2), {
        role: "tool",
        tool_call_id: "call_1",
        content: "one\n"
      })
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 3), {
        role: "tool",
        tool_call_id: "call_2",
        content: '{"message":"no"}'
      })
    })
  )

  it.scopedLive(
    "MD-13: broken input and an unknown tool reach the runtime as calls, and the rest of the answer too",
    () =>
      Effect.gen(function* () {
        const { model } = yield* connect(
          "openai-compatible",
          qwen,
          chunks(
            ...call(0, "call_1", "read", '{"path": "a'),
            ...call(1, "call_2", "vanished", '{"x":1}'),
            ...call(2, "call_3", "read", '{"path":"b"}'),
            chunk({}, "tool_calls"),
            counted
          )
        )
        const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        assert.sameDeepMembers<unknown>(
          only(parts, "tool-call").map(({ name, params }) => ({ name, params })),
          [
            { name: "read", params: '{"path": "a' },
            { name: "vanished", params: { x: 1 } },
            { name: "read", params: { path: "b" } }
          ]
        )
        assert.strictEqual(only(parts, "finish")[0]?.usage.outputTokens, 5)
      })
  )

  it.scopedLive("MD-15: usage names cached and reasoning tokens", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "openai-compatible",
        qwen,
        chunks(
          chunk({ content: "x" }),
          chunk({}, "stop"),
          usage({
            prompt_tokens: 100,
            completion_tokens: 30,
            total_tokens: 130,
            prompt_tokens_details: { cached_tokens: 60 },
            completion_tokens_details: { reasoning_tokens: 20 }
          })
        )
      )
      const [finish] = only(yield* answer(model, { prompt: "go" }), "finish")
      assert.deepInclude(finish?.usage, {
        inputTokens: 100,
        outputTokens: 30,
        totalTokens: 130,
        reasoningTokens: 20,
        cachedInputTokens: 60
      })
    })
  )

  for (const [api, id] of [
    ["anthropic", "claude-opus-5-5"],
    ["openai", "gpt-6.1-terra"],
    ["openai-compatible", "qwen3"]
  ] as const) {
    it.scopedLive(`MD-16: an endless error answer is cut off: ${api}`, () =>
      Effect.gen(function* () {
        const page = `<html><title>502 Bad Gateway</title>${"x".repeat(64 * 1024)}`
        const { model, server } = yield* connect(
          api,
          { id },
          {
            status: 502,
            headers: { "content-type": "text/html" },
            chunks: [page, ...Array.from({ length: 8 }, () => "x".repeat(64 * 1024))],
            ending: "silence"
          }
        )
        const failure = classifyError(yield* Effect.flip(answer(model, { prompt: "go" })))
        assert.match(failure.message, /^127\.0\.0\.1:\d+ answered HTTP 502: 502 Bad Gateway$/)
        assert.isTrue(failure.retryable)
        yield* server.abandoned
      })
    )

    it.scopedLive(`MD-10: one call makes one request, also when it fails: ${api}`, () =>
      Effect.gen(function* () {
        const busy = refusal(503, { error: { message: "busy" } }, { "retry-after": "0" })
        const { model, server } = yield* connect(api, { id }, busy, busy, busy)
        yield* Effect.flip(answer(model, { prompt: "go" }))
        assert.strictEqual(server.received.length, 1)
      })
    )
  }

  const said: Reply = { chunks: chunks(chunk({ content: "Hel" })).chunks.slice(0, 1) }
  failing({
    api: "openai-compatible",
    ...qwen,
    failures: {
      "429 with retry-after": [
        refusal(429, { error: { message: "slow down" } }, { "retry-after": "3" }),
        { ...passing, retryAfterMs: 3000 }
      ],
      "500": [refusal(500, { error: "model runner has crashed" }), passing],
      "401": [refusal(401, { error: { message: `bad key ${secret}` } }), lasting],
      "an overflow of llama.cpp": [
        refusal(400, {
          error: {
            code: 400,
            type: "exceed_context_size_error",
            message: "the request exceeds the available context size"
          }
        }),
        tooLong
      ],
      "an overflow of vLLM": [
        refusal(400, { object: "error", message: "This model's maximum context length is 4096 tokens.", code: 400 }),
        tooLong
      ],
      "an overflow of Ollama": [refusal(400, { error: "input length exceeds the context length" }), tooLong],
      "a chunk that is not JSON": [{ chunks: ["data: {oops\n\n"] }, passing],
      "a cut connection": [{ ...said, ending: "cut" }, passing]
    },
    errorParts: {
      "an error event": [
        chunks(chunk({ content: "x" }), { error: { code: 500, message: "slot failed", type: "server_error" } }),
        passing
      ]
    },
    begun: said
  })
})

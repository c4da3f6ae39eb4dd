import { AnthropicTool } from "@effect/ai-anthropic"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { failing, lasting, passing, tooLong } from "./contract/Failures.ts"
import { answer, at, connect, only, secret, textOf, tool } from "./support/Client.ts"
import { events, refusal } from "./support/Server.ts"

const opus = { id: "claude-opus-5-5" }

const start = (usage: Record<string, unknown> = {}) => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-opus-5-5",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1, service_tier: "later_tier", ...usage }
  }
})
const block = (index: number, content_block: Record<string, unknown>) => ({
  type: "content_block_start",
  index,
  content_block
})
const delta = (index: number, change: Record<string, unknown>) => ({
  type: "content_block_delta",
  index,
  delta: change
})
const stop = (index: number) => ({ type: "content_block_stop", index })
const end = (stop_reason: string, output_tokens = 20) => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens } },
  { type: "message_stop" }
]
const call = (index: number, id: string, name: string, ...json: ReadonlyArray<string>) => [
  block(index, { type: "tool_use", id, name, input: {} }),
  ...json.map((partial_json) => delta(index, { type: "input_json_delta", partial_json })),
  stop(index)
]
const hello = events(
  start(),
  { type: "ping" },
  block(0, { type: "text", text: "" }),
  delta(0, { type: "text_delta", text: "Hel" }),
  delta(0, { type: "text_delta", text: "lo" }),
  stop(0),
  ...end("end_turn")
)

describe("Anthropic", () => {
  it.scopedLive("MD-20: text streams, and the request carries model, limit, effort, system, tools and key", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("anthropic", { ...opus, variant: "high" }, hello)
      const parts = yield* answer(model, {
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "Hi" }] }
        ],
        tools: [tool("read")]
      })
      assert.strictEqual(textOf(parts), "Hello")
      assert.deepStrictEqual(only(parts, "finish").map(Struct.get("reason")), ["stop"])
      const [request] = server.received
      assert.strictEqual(request?.path, "/v1/messages")
      assert.strictEqual(request?.headers["x-api-key"], secret)
      assert.strictEqual(at(request?.body, "model"), "claude-opus-5-5")
      assert.strictEqual(at(request?.body, "max_tokens"), 64_000)
      assert.deepStrictEqual(at(request?.body, "output_config"), { effort: "high" })
      assert.strictEqual(at(request?.body, "stream"), true)
      assert.strictEqual(at(request?.body, "system", 0, "text"), "Be brief.")
      assert.deepStrictEqual(at(request?.body, "system", 0, "cache_control"), { type: "ephemeral" })
      assert.deepStrictEqual(at(request?.body, "tools", 0), {
        name: "read",
        description: "The read tool",
        input_schema: {
          type: "object",
          properties: { path: { type: "string" } },
          required: ["path"],
          additionalProperties: false
        }
      })
    })
  )

  it.scopedLive("MD-14: reasoning ends with its signature, and the signature goes back with the history", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect(
        "anthropic",
        opus,
        events(
          start(),
          block(0, { type: "thinking", thinking: "", signature: "" }),
          delta(0, { type: "thinking_delta", thinking: "Let me see." }),
          delta(0, { type: "signature_delta", signature: "SIG==" }),
          stop(0),
          block(1, { type: "redacted_thinking", data: "HIDDEN" }),
          stop(1),
          ...call(2, "toolu_1", "read", '{"path":', '"a.txt"}'),
          ...end("tool_use")
        ),
        hello
      )
      const tools = [tool("read")]
      const parts = yield* answer(model, { prompt: "Read a.txt", tools })
      const ends = only(parts, "reasoning-end").map((part) => part.metadata)
      assert.deepStrictEqual(ends, [
        { anthropic: { type: "thinking", signature: "SIG==" } },
        { anthropic: { type: "redacted_thinking", redactedData: "HIDDEN" } }
      ])
      yield* answer(model, {
        tools,
        prompt: [
          { role: "user", content: "Read a.txt" },
          {
            role: "assistant",
            content: [
              { type: "reasoning", text: "Let me see.", options: ends[0] ?? {} },
              { type: "reasoning", text: "", options: ends[1] ?? {} },
              { type: "tool-call", id: "toolu_1", name: "read", params: { path: "a.txt" } }
            ]
          },
          {
            role: "tool",
            content: [
              {
                type: "tool-result",
                id: "toolu_1",
                name: "read",
                isFailure: false,
                result: 'one "two"\n',
                providerExecuted: false
              }
            ]
          }
        ]
      })
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 1, "content"), [
        { type: "thinking", thinking: "Let me see.", signature: "SIG==" },
        { type: "redacted_thinking", data: "HIDDEN" },
        { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a.txt" } }
      ])
      assert.deepStrictEqual(at(server.received[1]?.body, "messages", 2, "content", 0, "content"), 'one "two"\n')
    })
  )

  it.scopedLive("MD-20: calls in parallel keep their ids, names and inputs, a local tool called bash too", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "anthropic",
        opus,
        events(
          start(),
          ...call(0, "toolu_1", "read", '{"path":"a"}'),
          ...call(1, "toolu_2", "bash", '{"command"', ':"ls"}'),
          ...call(2, "toolu_3", "list"),
          ...end("tool_use")
        )
      )
      const parts = yield* answer(model, { prompt: "go", tools: [tool("read"), tool("bash"), tool("list", {})] })
      const calls = only(parts, "tool-call").map(({ id, name, params, providerExecuted }) => ({
        id,
        name,
        params,
        providerExecuted
      }))
      assert.sameDeepMembers(calls, [
        { id: "toolu_1", name: "read", params: { path: "a" }, providerExecuted: false },
        { id: "toolu_2", name: "bash", params: { command: "ls" }, providerExecuted: false },
        { id: "toolu_3", name: "list", params: {}, providerExecuted: false }
      ])
      assert.deepStrictEqual(only(parts, "finish").map(Struct.get("reason")), ["tool-calls"])
    })
  )

  it.scopedLive(
    "MD-13: broken input and an unknown tool reach the runtime as calls, and the rest of the answer too",
    () =>
      Effect.gen(function* () {
        const { model } = yield* connect(
          "anthropic",
          opus,
          events(
            start(),
            ...call(0, "toolu_1", "read", '{"path": "a'),
            ...call(1, "toolu_2", "vanished", '{"x":1}'),
            ...call(2, "toolu_3", "read", '{"path":"b"}'),
            ...end("tool_use", 33)
          )
        )
        const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        const calls = only(parts, "tool-call").map(({ name, params }) => ({ name, params }))
        assert.sameDeepMembers<unknown>(calls, [
          { name: "read", params: '{"path": "a' },
          { name: "vanished", params: { x: 1 } },
          { name: "read", params: { path: "b" } }
        ])
        assert.strictEqual(only(parts, "finish")[0]?.usage.outputTokens, 33)
      })
  )

  it.scopedLive("MD-15: input tokens count what the cache gave and took", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "anthropic",
        opus,
        events(start({ cache_read_input_tokens: 100, cache_creation_input_tokens: 1000 }), ...end("end_turn", 7))
      )
      const [finish] = only(yield* answer(model, { prompt: "go" }), "finish")
      assert.strictEqual(finish?.usage.inputTokens, 1110)
      assert.strictEqual(finish?.usage.outputTokens, 7)
      assert.strictEqual(finish?.usage.totalTokens, 1117)
      assert.strictEqual(finish?.usage.cachedInputTokens, 100)
      assert.strictEqual(at(finish?.metadata, "daybook", "cacheWriteTokens"), 1000)
    })
  )

  it.scopedLive("MD-22: a search that Anthropic runs arrives as its call and its result", () =>
    Effect.gen(function* () {
      const result = {
        type: "web_search_result",
        url: "https://a.example",
        title: "A",
        encrypted_content: "E",
        page_age: null
      }
      const { model, server } = yield* connect(
        "anthropic",
        opus,
        events(
          start(),
          block(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
          delta(0, { type: "input_json_delta", partial_json: '{"query":"daybook"}' }),
          stop(0),
          block(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [result] }),
          stop(1),
          ...end("end_turn")
        )
      )
      const parts = yield* answer(model, { prompt: "search", tools: [AnthropicTool.WebSearch_20250305({})] })
      const [made] = only(parts, "tool-call")
      const [settled] = only(parts, "tool-result")
      assert.deepStrictEqual([made?.name, made?.providerExecuted], ["AnthropicWebSearch", true])
      assert.deepStrictEqual(at(made, "params"), { query: "daybook" })
      assert.deepStrictEqual([settled?.id, settled?.providerExecuted, settled?.isFailure], ["srvtoolu_1", true, false])
      assert.strictEqual(at(settled?.encodedResult, 0, "url"), "https://a.example")
      assert.strictEqual(at(server.received[0]?.body, "tools", 0, "type"), "web_search_20250305")
    })
  )

  const found = [
    { type: "web_search_result", url: "https://a.example", title: "A", encrypted_content: "E", page_age: null }
  ]

  it.scopedLive.each([
    ["what it found", "srvtoolu_1", found, ["server_tool_use", "web_search_tool_result", "text"]],
    [
      "its error",
      "srvtoolu_1",
      { type: "web_search_tool_result_error", error_code: "unavailable" },
      ["server_tool_use", "web_search_tool_result", "text"]
    ],
    ["a result of another form", "srvtoolu_1", { type: "other" }, ["text", "text"]],
    ["a search of another provider", "ws_1", found, ["text", "text"]]
  ] as const)(
    "MD-22: of a search that Anthropic ran, %s goes back as Anthropic accepts it",
    ([, id, result, expected]) =>
      Effect.gen(function* () {
        const { model, server } = yield* connect("anthropic", opus, hello)
        const search = { id, name: "AnthropicWebSearch", providerExecuted: true }
        yield* answer(model, {
          prompt: [
            { role: "user", content: [{ type: "text", text: "search" }] },
            {
              role: "assistant",
              content: [
                { type: "tool-call", params: { query: "x" }, ...search },
                { type: "tool-result", isFailure: false, result, ...search },
                { type: "text", text: "found" }
              ]
            },
            { role: "user", content: [{ type: "text", text: "more" }] }
          ],
          tools: [AnthropicTool.WebSearch_20250305({})]
        })
        const content = at(server.received[0]?.body, "messages", 1, "content")
        assert(Array.isArray(content))
        assert.deepStrictEqual(
          content.map((part) => at(part, "type")),
          [...expected]
        )
      })
  )

  it.scopedLive("MD-21: a delta after its block's end is dropped, whatever block it was", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "anthropic",
        opus,
        events(
          start(),
          block(0, { type: "thinking", thinking: "", signature: "" }),
          delta(0, { type: "thinking_delta", thinking: "I see." }),
          delta(0, { type: "signature_delta", signature: "SIG==" }),
          stop(0),
          delta(0, { type: "thinking_delta", thinking: " Late." }),
          delta(0, { type: "signature_delta", signature: "LATE==" }),
          block(1, { type: "text", text: "" }),
          delta(1, { type: "text_delta", text: "ok" }),
          stop(1),
          delta(1, { type: "text_delta", text: " late" }),
          stop(1),
          ...call(2, "toolu_1", "read", '{"path":"a"}'),
          delta(2, { type: "input_json_delta", partial_json: '{"path":"late"}' }),
          stop(2),
          ...end("tool_use")
        )
      )
      const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
      assert.deepStrictEqual(
        parts.flatMap((part) => ("delta" in part ? [part.delta] : [])),
        ["I see.", "ok", '{"path":"a"}']
      )
      assert.deepStrictEqual(
        only(parts, "reasoning-end").map(({ metadata }) => metadata),
        [{ anthropic: { type: "thinking", signature: "SIG==" } }]
      )
      assert.deepStrictEqual([only(parts, "text-end").length, only(parts, "tool-call").length], [1, 1])
    })
  )

  it.scopedLive("MD-21: events, blocks and reasons that are newer than this release do no harm", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "anthropic",
        opus,
        events(
          start(),
          { type: "brand_new_event", x: 1 },
          block(0, { type: "brand_new_block", x: 1 }),
          delta(0, { type: "input_json_delta", partial_json: "{" }),
          stop(0),
          block(1, { type: "text", text: "" }),
          delta(1, { type: "brand_new_delta" }),
          delta(1, { type: "text_delta", text: "ok" }),
          stop(1),
          ...end("brand_new_reason")
        )
      )
      assert.strictEqual(textOf(yield* answer(model, { prompt: "go" })), "ok")
    })
  )

  it.scopedLive("MD-24: a result that is text goes as this text, any other as JSON, a failed one marked", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("anthropic", opus, hello)
      const ids = ["toolu_1", "functions.read:0"]
      const results = ['say "hi"\n', { lines: 2 }]
      yield* answer(model, {
        tools: [tool("read")],
        prompt: [
          { role: "user", content: "go" },
          { role: "assistant", content: ids.map((id) => ({ type: "tool-call", id, name: "read", params: {} })) },
          {
            role: "tool",
            content: ids.map((id, index) => ({
              type: "tool-result",
              id,
              name: "read",
              isFailure: index === 1,
              result: results[index],
              providerExecuted: false
            }))
          }
        ]
      })
      const content = at(server.received[0]?.body, "messages", 2, "content")
      // An id of another provider, in the alphabet of this one, alike in call and result.
      assert.strictEqual(at(server.received[0]?.body, "messages", 1, "content", 1, "id"), "functions_read_0")
      assert.strictEqual(at(content, 1, "tool_use_id"), "functions_read_0")
      assert.deepStrictEqual([at(content, 0, "content"), at(content, 0, "is_error")], ['say "hi"\n', false])
      assert.deepStrictEqual([at(content, 1, "content"), at(content, 1, "is_error")], ['{"lines":2}', true])
    })
  )

  it.scopedLive("MD-12: later system messages stay in the conversation, in their place", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("anthropic", opus, hello)
      yield* answer(model, {
        prompt: [
          { role: "system", content: "First." },
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello" },
          { role: "system", content: "The date is new." },
          { role: "user", content: "And now?" }
        ]
      })
      const body = server.received[0]?.body
      assert.strictEqual(at(body, "system", 0, "text"), "First.")
      assert.strictEqual(
        at(body, "messages", 2, "content", 0, "text"),
        "<system-update>\nThe date is new.\n</system-update>"
      )
    })
  )

  it.scopedLive(
    "MD-11: images go as bytes, of the kind that they are, text files as text, and what cannot be shown as a sentence",
    () =>
      Effect.gen(function* () {
        const { model, server } = yield* connect("anthropic", opus, hello)
        yield* answer(model, {
          prompt: [
            {
              role: "user",
              content: [
                { type: "file", mediaType: "image/png", data: "data:image/png;base64,R0lGODlh" },
                { type: "file", mediaType: "text/markdown", fileName: "a.md", data: new TextEncoder().encode("# A") },
                { type: "file", mediaType: "application/zip", fileName: "a.zip", data: new Uint8Array([1]) },
                { type: "file", mediaType: "image/png", fileName: "empty.png", data: new Uint8Array() },
                { type: "file", mediaType: "image/bmp", fileName: "a.bmp", data: new TextEncoder().encode("BM") }
              ]
            }
          ]
        })
        const content = at(server.received[0]?.body, "messages", 0, "content")
        assert.deepStrictEqual(at(content, 0, "source"), { type: "base64", media_type: "image/gif", data: "R0lGODlh" })
        assert.strictEqual(at(content, 1, "text"), '<file name="a.md">\n# A\n</file>')
        for (const [index, name] of ["a.zip", "empty.png", "a.bmp"].entries()) {
          const text = String(at(content, 2 + index, "text"))
          assert.include(text, name)
          assert.include(text, "cannot be shown")
        }
      })
  )

  const said = events(start(), block(0, { type: "text", text: "" }), delta(0, { type: "text_delta", text: "Hel" }))
  const error = (type: string, message: string) => ({ type: "error", error: { type, message } })
  failing({
    api: "anthropic",
    ...opus,
    failures: {
      "429 with retry-after": [
        refusal(429, error("rate_limit_error", "slow down"), { "retry-after": "7" }),
        { ...passing, retryAfterMs: 7000 }
      ],
      "500": [refusal(500, error("api_error", "oops")), passing],
      "529": [refusal(529, error("overloaded_error", "Overloaded")), passing],
      "401": [refusal(401, error("authentication_error", `invalid x-api-key ${secret}`)), lasting],
      "an overflow": [
        refusal(400, error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")),
        tooLong
      ],
      "a cut connection": [{ ...said, ending: "cut" }, passing],
      "a polite but early end": [events(start(), block(0, { type: "text", text: "" })), passing],
      "a chunk that is not JSON": [{ chunks: ["data: {oops\n\n"] }, passing]
    },
    errorParts: { "an error event": [events(start(), error("overloaded_error", `Overloaded ${secret}`)), passing] },
    begun: said
  })
})

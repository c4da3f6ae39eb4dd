import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { failing, lasting, passing, tooLong } from "./contract/Failures.ts"
import { answer, at, connect, only, secret, textOf, tool } from "./support/Client.ts"
import { events, refusal } from "./support/Server.ts"

const terra = { id: "gpt-6.1-terra" }

/** OpenAI's search, as a library of its tools describes it. */
const webSearch = Tool.providerDefined({
  id: "openai.web_search",
  toolkitName: "OpenAiWebSearch",
  providerName: "web_search",
  args: {},
  parameters: { action: Schema.Unknown },
  success: Schema.Unknown
})({})

/** Response objects carry fields and values that no reader knows, as the real ones do. */
const response = (extra: Record<string, unknown> = {}) => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  model: "gpt-6.1-terra",
  reasoning: { effort: "max", mode: "later" },
  service_tier: "later",
  output: [{ type: "later_item" }],
  ...extra
})
const created = { type: "response.created", sequence_number: 0, response: response() }
const completed = (usage: Record<string, unknown> = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }) => ({
  type: "response.completed",
  sequence_number: 99,
  response: response({ status: "completed", usage })
})
const item = (state: "added" | "done", output_index: number, value: Record<string, unknown>) => ({
  type: `response.output_item.${state}`,
  output_index,
  sequence_number: 1,
  item: value
})
const message = (state: "added" | "done") =>
  item(state, 0, { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [] })
const textDelta = (delta: string) => ({
  type: "response.output_text.delta",
  sequence_number: 2,
  item_id: "msg_1",
  output_index: 0,
  content_index: 0,
  delta,
  logprobs: []
})
const call = (index: number, call_id: string, name: string, args: string) => {
  const value = { id: `fc_${index}`, type: "function_call", call_id, name, status: "completed" }
  return [
    item("added", index, { ...value, arguments: "" }),
    {
      type: "response.function_call_arguments.delta",
      sequence_number: 3,
      output_index: index,
      item_id: `fc_${index}`,
      delta: args
    },
    item("done", index, { ...value, arguments: args })
  ]
}
const hello = events(created, message("added"), textDelta("Hel"), textDelta("lo"), message("done"), completed())

describe("OpenAI", () => {
  it.scopedLive("MD-20: text streams, and the request keeps nothing at the provider", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("openai", { ...terra, variant: "low" }, hello)
      const parts = yield* answer(model, {
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" }
        ],
        tools: [tool("read")]
      })
      assert.strictEqual(textOf(parts), "Hello")
      const [request] = server.received
      assert.strictEqual(request?.path, "/v1/responses")
      assert.strictEqual(request?.headers.authorization, `Bearer ${secret}`)
      assert.isUndefined(request?.headers["traceparent"] ?? request?.headers["b3"])
      assert.strictEqual(at(request?.body, "store"), false)
      assert.deepStrictEqual(at(request?.body, "include"), ["reasoning.encrypted_content"])
      assert.deepStrictEqual(at(request?.body, "reasoning"), { summary: "auto", effort: "low" })
      assert.deepStrictEqual(at(request?.body, "tools", 0), {
        type: "function",
        name: "read",
        description: "The read tool",
        strict: false,
        parameters: {
          type: "object",
          properties: { path: { type: "string" } },
          required: ["path"],
          additionalProperties: false
        }
      })
    })
  )

  it.scopedLive("MD-20: a refusal is text that a person can read", () =>
    Effect.gen(function* () {
      const refused = { ...textDelta("I cannot."), type: "response.refusal.delta" }
      const { model } = yield* connect(
        "openai",
        terra,
        events(created, message("added"), refused, message("done"), completed())
      )
      assert.strictEqual(textOf(yield* answer(model, { prompt: "go" })), "I cannot.")
    })
  )

  it.scopedLive("MD-14: an answer that cannot go back as it came goes without reasoning and ids", () =>
    Effect.gen(function* () {
      const thought = (itemId: unknown, encryptedContent: unknown = "ENC") => ({
        type: "reasoning" as const,
        text: "Hm.",
        options: { openai: { itemId, encryptedContent } } as never
      })
      const made = (id: string, itemId: string) => ({
        type: "tool-call" as const,
        id,
        name: "read",
        params: {},
        options: { openai: { itemId } }
      })
      const answers = [
        [thought("rs_1"), made("a", "fc_1")],
        // Used before, used twice, incomplete, of another form, and followed by nothing.
        [thought("rs_1"), made("b", "fc_2")],
        [thought("rs_2"), made("c", "fc_1")],
        [thought("rs_3"), made("d", "fc_4"), made("e", "fc_4")],
        [thought("rs_5", null), made("f", "fc_5")],
        [thought(7), made("g", "fc_6")],
        [made("h", "fc_7"), thought("rs_7")]
      ]
      const { model, server } = yield* connect("openai", terra, hello)
      yield* answer(model, {
        tools: [tool("read")],
        prompt: answers.flatMap((content) => [
          { role: "user" as const, content: "go" },
          { role: "assistant" as const, content },
          {
            role: "tool" as const,
            content: content.flatMap((part) =>
              part.type === "tool-call"
                ? [
                    {
                      type: "tool-result" as const,
                      id: part.id,
                      name: "read",
                      isFailure: false,
                      result: "x",
                      providerExecuted: false
                    }
                  ]
                : []
            )
          }
        ])
      })
      const input = at(server.received[0]?.body, "input")
      const items = Array.isArray(input) ? input : []
      const isThought = (item: unknown) => at(item, "type") === "reasoning"
      assert.deepStrictEqual(items.filter(isThought), [
        { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "ENC" }
      ])
      assert.deepStrictEqual(
        items.flatMap((item) => (at(item, "type") === "function_call" ? [[at(item, "call_id"), at(item, "id")]] : [])),
        [["a", "fc_1"], ...["b", "c", "d", "e", "f", "g", "h"].map((id) => [id, undefined])]
      )
    })
  )

  it.scopedLive("MD-14: reasoning ends with its encrypted content, which goes back with the history", () =>
    Effect.gen(function* () {
      const reasoning = { id: "rs_1", type: "reasoning", summary: [] }
      const { model, server } = yield* connect(
        "openai",
        terra,
        events(
          created,
          item("added", 0, reasoning),
          {
            type: "response.reasoning_summary_text.delta",
            sequence_number: 2,
            item_id: "rs_1",
            output_index: 0,
            summary_index: 0,
            delta: "Hm."
          },
          item("done", 0, { ...reasoning, encrypted_content: "ENC" }),
          ...call(1, "call_1", "read", '{"path":"a.txt"}'),
          completed()
        ),
        hello,
        hello
      )
      const tools = [tool("read")]
      const parts = yield* answer(model, { prompt: "Read a.txt", tools })
      const options = only(parts, "reasoning-end")[0]?.metadata ?? {}
      assert.deepStrictEqual(options, { openai: { itemId: "rs_1", encryptedContent: "ENC" } })
      const [made] = only(parts, "tool-call")
      const history = (reasoningOptions: typeof options) => [
        { role: "user" as const, content: "Read a.txt" },
        {
          role: "assistant" as const,
          content: [
            { type: "reasoning" as const, text: "Hm.", options: reasoningOptions },
            {
              type: "tool-call" as const,
              id: "call_1",
              name: "read",
              params: { path: "a.txt" },
              options: made?.metadata ?? {}
            }
          ]
        },
        {
          role: "tool" as const,
          content: [
            {
              type: "tool-result" as const,
              id: "call_1",
              name: "read",
              isFailure: false,
              result: "one\n",
              providerExecuted: false
            }
          ]
        }
      ]
      yield* answer(model, { tools, prompt: history(options) })
      assert.deepStrictEqual(at(server.received[1]?.body, "input", 1), {
        id: "rs_1",
        type: "reasoning",
        summary: [{ type: "summary_text", text: "Hm." }],
        encrypted_content: "ENC"
      })
      assert.strictEqual(at(server.received[1]?.body, "input", 2, "id"), "fc_1")
      assert.deepStrictEqual(at(server.received[1]?.body, "input", 3), {
        type: "function_call_output",
        call_id: "call_1",
        output: "one\n"
      })
      // Reasoning that was interrupted has an id only, which the provider would refuse.
      yield* answer(model, { tools, prompt: history({ openai: { itemId: "rs_1" } }) })
      assert.deepStrictEqual(at(server.received[2]?.body, "input", 1), {
        type: "function_call",
        call_id: "call_1",
        name: "read",
        arguments: '{"path":"a.txt"}'
      })
    })
  )

  it.scopedLive("MD-20: calls in parallel keep their ids, names and inputs", () =>
    Effect.gen(function* () {
      const { model } = yield* connect(
        "openai",
        terra,
        events(
          created,
          ...call(0, "call_1", "read", '{"path":"a"}'),
          ...call(1, "call_2", "bash", '{"command":"ls"}'),
          completed()
        )
      )
      const parts = yield* answer(model, { prompt: "go", tools: [tool("read"), tool("bash")] })
      assert.deepStrictEqual(
        only(parts, "tool-call").map(({ id, name, params }) => ({ id, name, params })),
        [
          { id: "call_1", name: "read", params: { path: "a" } },
          { id: "call_2", name: "bash", params: { command: "ls" } }
        ] as never
      )
      assert.strictEqual(only(parts, "finish")[0]?.reason, "tool-calls")
    })
  )

  it.scopedLive(
    "MD-13: broken input and an unknown tool reach the runtime as calls, and the rest of the answer too",
    () =>
      Effect.gen(function* () {
        const { model } = yield* connect(
          "openai",
          terra,
          events(
            created,
            ...call(0, "call_1", "read", '{"path": "a'),
            ...call(1, "call_2", "vanished", '{"x":1}'),
            completed()
          )
        )
        const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        assert.deepStrictEqual(
          only(parts, "tool-call").map(({ name, params }) => ({ name, params })),
          [
            { name: "read", params: '{"path": "a' },
            { name: "vanished", params: { x: 1 } }
          ] as never
        )
        assert.deepStrictEqual(
          only(parts, "finish").map((part) => [part.reason, part.usage.outputTokens]),
          [["tool-calls", 5]]
        )
      })
  )

  it.scopedLive("MD-15: usage names cached and reasoning tokens", () =>
    Effect.gen(function* () {
      const usage = {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 60, later: 1 },
        output_tokens: 30,
        output_tokens_details: { reasoning_tokens: 20 },
        total_tokens: 130
      }
      const { model } = yield* connect("openai", terra, events(created, completed(usage)))
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

  it.scopedLive("MD-22: a search that OpenAI runs arrives as its call and its result", () =>
    Effect.gen(function* () {
      const search = { id: "ws_1", type: "web_search_call", status: "completed" }
      const { model, server } = yield* connect(
        "openai",
        terra,
        events(
          created,
          item("added", 0, { ...search, status: "in_progress" }),
          item("done", 0, { ...search, action: { type: "search", queries: ["daybook", "log"] } }),
          completed()
        )
      )
      const parts = yield* answer(model, { prompt: "search", tools: [webSearch] })
      const [made] = only(parts, "tool-call")
      const [settled] = only(parts, "tool-result")
      assert.deepStrictEqual([made?.id, made?.name, made?.providerExecuted], ["ws_1", "OpenAiWebSearch", true])
      assert.strictEqual(at(made, "params", "action", "query"), "daybook; log")
      assert.deepStrictEqual([settled?.id, settled?.providerExecuted], ["ws_1", true])
      const [request] = server.received
      assert.deepStrictEqual(at(request?.body, "tools", 0), { type: "web_search" })
      assert.deepStrictEqual(at(request?.body, "include"), [
        "reasoning.encrypted_content",
        "web_search_call.action.sources"
      ])
    })
  )

  const said = events(created, message("added"), textDelta("Hel"))
  failing({
    api: "openai",
    ...terra,
    failures: {
      "429 with retry-after": [
        refusal(429, { error: { code: "rate_limit_exceeded", message: "slow down" } }, { "retry-after-ms": "1500" }),
        { ...passing, retryAfterMs: 1500 }
      ],
      "500": [refusal(500, { error: { message: "oops", type: "server_error" } }), passing],
      "401": [refusal(401, { error: { message: `Incorrect API key provided: ${secret}` } }), lasting],
      "an overflow": [
        refusal(400, {
          error: { code: "context_length_exceeded", message: "Your input exceeds the context window of this model." }
        }),
        tooLong
      ],
      "a cut connection": [{ ...said, ending: "cut" }, passing],
      "a polite but early end": [said, passing]
    },
    errorParts: {
      "an error event": [
        events(created, { type: "error", sequence_number: 1, code: "server_error", message: "oops", param: null }),
        passing
      ],
      "a failed response": [
        events(created, {
          type: "response.failed",
          sequence_number: 1,
          response: response({ status: "failed", error: { code: "context_length_exceeded", message: "too long" } })
        }),
        tooLong
      ]
    },
    begun: said
  })
})

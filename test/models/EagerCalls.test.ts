/**
 * Method: a server sends a complete call and then nothing more; the call has to be there all the same. What a name or an
 * id is on the wire is read from the requests that follow.
 */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Stream, Struct } from "effect"
import { answer, at, connect, only, secret, stream, tool, type Api, type Part } from "./support/Client.ts"
import { hello } from "./support/Answers.ts"
import { begin, calling, chunk, held, input } from "./support/HeldAnswers.ts"
import { chunks, type Reply } from "./support/Server.ts"

const models: Readonly<Record<Api, string>> = {
  anthropic: "claude-sonnet-4-6",
  openai: "gpt-6.1-terra",
  "openai-compatible": "qwen3:8b"
}

type Call = Extract<Part, { readonly type: "tool-call" }>

/** The first calls of an answer that does not end. */
const firstCalls = Effect.fnUntraced(function* (api: Api, reply: Reply, tools: ReadonlyArray<string>, count = 1) {
  const { model, server } = yield* connect(api, { id: models[api] }, held(reply))
  const parts = yield* stream(model, { prompt: "go", tools: tools.map((name) => tool(name)) }).pipe(
    Stream.filter((part): part is Call => part.type === "tool-call"),
    Stream.take(count),
    Stream.runCollect
  )
  const calls = Chunk.toReadonlyArray(parts).map(({ id, name, params }) => ({ id, name, params }))
  return { calls, body: server.received[0]?.body }
})

describe("a call that is complete", () => {
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(`MD-60: is there before the answer ends: ${api}`, () =>
      Effect.gen(function* () {
        const { calls } = yield* firstCalls(api, calling[api]("bash"), ["read", "bash"])
        assert.deepStrictEqual<unknown>(calls, [{ id: "call_1", name: "bash", params: { path: "a" } }])
      })
    )
  }

  for (const [title, last] of [
    ["a finish reason of its own", [input(1, '{"path":"b"}'), chunk({}, "tool_calls")]],
    [
      "a finish reason beside its input",
      [
        chunk({ tool_calls: [{ index: 1, function: { arguments: '{"path":"b"}' } }] }, "tool_calls"),
        chunk({}),
        chunk({})
      ]
    ],
    ["text after it", [input(1, '{"path":"b"}'), chunk({ content: "..." }), chunk({}, "stop")]]
  ] as const) {
    it.scopedLive(`MD-60: the last call of a chat completion is there with ${title}`, () =>
      Effect.gen(function* () {
        const reply = chunks(begin(0, "call_1", "read", '{"path":"a"}'), begin(1, "call_2", "read"), ...last)
        const { calls } = yield* firstCalls("openai-compatible", reply, ["read"], 2)
        assert.deepStrictEqual<unknown>(calls, [
          { id: "call_1", name: "read", params: { path: "a" } },
          { id: "call_2", name: "read", params: { path: "b" } }
        ])
      })
    )
  }

  for (const reason of ["", "null", "length"]) {
    it.scopedLive(`MD-60: the finish reason "${reason}" completes no call of a chat completion before its input`, () =>
      Effect.gen(function* () {
        const unfinished = (delta: Record<string, unknown>) => chunk(delta, reason)
        const { model } = yield* connect(
          "openai-compatible",
          { id: "qwen3:8b" },
          chunks(
            unfinished({ tool_calls: [{ index: 0, id: "call_1", function: { name: "read", arguments: "" } }] }),
            unfinished({}),
            unfinished({ tool_calls: [{ index: 0, function: { arguments: '{"path":"a"}' } }] }),
            chunk({}, "tool_calls")
          )
        )
        const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        assert.deepStrictEqual(
          only(parts, "tool-call").map(({ params }): unknown => params),
          [{ path: "a" }]
        )
      })
    )
  }

  it.scopedLive("MD-60: a chat completion's call without input is there with the finish reason", () =>
    Effect.gen(function* () {
      const reply = chunks(begin(0, "call_1", "read"), begin(1, "call_2", "read"), chunk({}, "tool_calls"))
      const { calls } = yield* firstCalls("openai-compatible", reply, ["read"], 2)
      assert.deepStrictEqual(calls.map(Struct.get("params")), [{}, {}] as never)
    })
  )

  it.scopedLive(
    "MD-60: inputs of several calls that a chat completion sends in turn are whole, and each call is made once",
    () =>
      Effect.gen(function* () {
        const { model } = yield* connect(
          "openai-compatible",
          { id: "qwen3:8b" },
          chunks(
            begin(0, "call_1", "read"),
            begin(1, "call_2", "read"),
            input(0, '{"path":'),
            input(1, '{"path":"b"'),
            input(0, '"a"}'),
            begin(2, "call_3", "read", '{"path":"c"}'),
            input(1, "}"),
            input(0, '{"path":"late"}'),
            chunk({}, "tool_calls")
          )
        )
        const parts = yield* answer(model, { prompt: "go", tools: [tool("read")] })
        assert.sameDeepMembers(
          only(parts, "tool-call").map(({ id, params }): unknown => ({ id, params })),
          ["a", "b", "c"].map((path, nth) => ({ id: `call_${nth + 1}`, params: { path } }))
        )
        const order = parts.flatMap((part) =>
          part.type === "tool-call" || part.type === "tool-params-end" ? [`${part.type} ${part.id}`] : []
        )
        assert.strictEqual(new Set(order).size, order.length)
      })
  )
})

describe("names of tools on the wire", () => {
  for (const name of ["bash", "computer", "web_search"]) {
    it.scopedLive(
      `MD-58: a local tool named ${name}, as one of Anthropic's own, is offered and called by its name`,
      () =>
        Effect.gen(function* () {
          const { body, calls } = yield* firstCalls("anthropic", calling.anthropic(name), [name, "read"])
          assert.deepStrictEqual<unknown>(calls, [{ id: "call_1", name, params: { path: "a" } }])
          assert.deepStrictEqual(at(body, "tools", 0, "name"), name)
        })
    )
  }

  it.scopedLive("MD-58: an alias is never the name of another tool that is offered", () =>
    Effect.gen(function* () {
      const tools = ["a.b", "a_b", "a:b"]
      for (const [said, meant] of [
        ["a_b", "a_b"],
        ["a_b_2", "a.b"],
        ["a_b_3", "a:b"]
      ] as const) {
        const { body, calls } = yield* firstCalls("anthropic", calling.anthropic(said), tools)
        assert.deepStrictEqual(calls.map(Struct.get("name")), [meant])
        const names = tools.map((_, nth) => at(body, "tools", nth, "name"))
        assert.deepStrictEqual(names, ["a_b_2", "a_b", "a_b_3"])
      }
    })
  )

  it.scopedLive("MD-792: a name that does not begin with a letter is offered after one, and called by its own", () =>
    Effect.gen(function* () {
      const { body, calls } = yield* firstCalls("anthropic", calling.anthropic("tool_21st_magic"), ["21st_magic"])
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["21st_magic"]
      )
      assert.strictEqual(at(body, "tools", 0, "name"), "tool_21st_magic")
    })
  )

  const bad = ["server.tool", "no such tool!", "x".repeat(200)]
  const wireNames = ["server_tool", "no_such_tool_", "x".repeat(64)]
  const namesIn: Readonly<Record<Api, (body: unknown) => unknown>> = {
    anthropic: (body) => [0, 1, 2].map((nth) => at(body, "messages", 1, "content", nth, "name")),
    openai: (body) => [1, 2, 3].map((nth) => at(body, "input", nth, "name")),
    "openai-compatible": (body) =>
      [0, 1, 2].map((nth) => at(body, "messages", 1, "tool_calls", nth, "function", "name"))
  }
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(
      `MD-58: names that the provider refuses are written in its alphabet, in the history too: ${api}`,
      () =>
        Effect.gen(function* () {
          const { model, server } = yield* connect(api, { id: models[api] }, hello[api])
          yield* answer(model, {
            tools: [tool("read"), tool("server.tool")],
            prompt: [
              { role: "user", content: "go" },
              {
                role: "assistant",
                content: bad.map((name, nth) => ({ type: "tool-call", id: `call_${nth}`, name, params: {} }))
              },
              {
                role: "tool",
                content: bad.map((name, nth) => ({
                  type: "tool-result",
                  id: `call_${nth}`,
                  name,
                  isFailure: false,
                  result: "x",
                  providerExecuted: false
                }))
              }
            ]
          })
          assert.deepStrictEqual(namesIn[api](server.received[0]?.body), wireNames)
        })
    )
  }
})

describe("ids of calls on the wire", () => {
  const long = "x".repeat(300)
  const expected: Readonly<Record<Api, ReadonlyArray<string>>> = {
    anthropic: ["a_b", "a_b_2", "call_0", "call_0_2", "x".repeat(64), `${"x".repeat(62)}_2`, "call_0_3"],
    openai: ["a:b", "a.b", "call_0", "call_0_2", "x".repeat(64), `${"x".repeat(62)}_2`, "call_0_3"],
    "openai-compatible": ["a:b", "a.b", "call_0", "call_0_2", "x".repeat(40), `${"x".repeat(38)}_2`, "call_0_3"]
  }
  const given = ["a:b", "a.b", "call_0", "call_0", long, `${long}y`, "call_0"]
  const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
  const pairsIn: Readonly<Record<Api, (body: unknown) => readonly [ReadonlyArray<unknown>, ReadonlyArray<unknown>]>> = {
    anthropic: (body) => {
      const blocks = list(at(body, "messages")).flatMap((message) => list(at(message, "content")))
      return [
        blocks.flatMap((one) => (at(one, "type") === "tool_use" ? [at(one, "id")] : [])),
        blocks.flatMap((one) => (at(one, "type") === "tool_result" ? [at(one, "tool_use_id")] : []))
      ]
    },
    openai: (body) => {
      const of = (type: string) =>
        list(at(body, "input")).flatMap((one) => (at(one, "type") === type ? [at(one, "call_id")] : []))
      return [of("function_call"), of("function_call_output")]
    },
    "openai-compatible": (body) => {
      const messages = list(at(body, "messages"))
      return [
        messages.flatMap((one) => list(at(one, "tool_calls")).map((call) => at(call, "id"))),
        messages.flatMap((one) => (at(one, "role") === "tool" ? [at(one, "tool_call_id")] : []))
      ]
    }
  }
  for (const api of ["anthropic", "openai", "openai-compatible"] as const) {
    it.scopedLive(
      `MD-24: each is used once, in the provider's alphabet and length, and keeps its bytes as the session goes on: ${api}`,
      () =>
        Effect.gen(function* () {
          const { model, server } = yield* connect(api, { id: models[api] }, ...given.map(() => hello[api]))
          for (let turns = 1; turns <= given.length; turns++) {
            yield* answer(model, {
              tools: [tool("read")],
              prompt: [
                { role: "user", content: "go" },
                ...given.slice(0, turns).flatMap((id) => [
                  {
                    role: "assistant" as const,
                    content: [{ type: "tool-call" as const, id, name: "read", params: {} }]
                  },
                  {
                    role: "tool" as const,
                    content: [
                      {
                        type: "tool-result" as const,
                        id,
                        name: "read",
                        isFailure: false,
                        result: "x",
                        providerExecuted: false
                      }
                    ]
                  }
                ])
              ]
            })
            const ids = expected[api].slice(0, turns)
            assert.deepStrictEqual(pairsIn[api](server.received.at(-1)?.body), [ids, ids])
          }
          assert.notInclude(JSON.stringify(server.received.at(-1)?.body), secret)
        })
    )
  }
})

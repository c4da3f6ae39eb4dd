/**
 * Streams of the Responses API as servers send them: with events, ids and positions missing, or with the answer in one place only.
 */
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema, Stream } from "effect"
import { Answer, type Part as WirePart } from "../../packages/models/src/wire/Answer.ts"
import { responses } from "../../packages/models/src/wire/Responses.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { answer, at, connect, only, type Part, stream, textOf, tool } from "./support/Client.ts"
import { events, type Reply } from "./support/Server.ts"

type Event = { readonly type: string } & Record<string, unknown>

const terra = { id: "gpt-6.1-terra" }
const tools = [tool("read"), tool("bash")]

const completed = (...output: ReadonlyArray<unknown>): Event => ({
  type: "response.completed",
  response: { id: "resp_1", model: "m", status: "completed", output, usage: { input_tokens: 3, output_tokens: 2 } }
})
const added = (item: object, rest: object = {}): Event => ({ type: "response.output_item.added", item, ...rest })
const done = (item: object, rest: object = {}): Event => ({ type: "response.output_item.done", item, ...rest })
const said = (text: string, rest: object = {}) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
  ...rest
})
const call = (call_id: string | undefined, args: unknown, rest: object = {}) => ({
  type: "function_call",
  ...(call_id === undefined ? {} : { call_id }),
  name: "read",
  arguments: args,
  ...rest
})
const words = (delta: string, rest: object = {}): Event => ({ type: "response.output_text.delta", delta, ...rest })
const input = (delta: unknown, rest: object = {}): Event => ({
  type: "response.function_call_arguments.delta",
  delta,
  ...rest
})
const inputDone = (args: unknown, rest: object = {}): Event => ({
  type: "response.function_call_arguments.done",
  arguments: args,
  ...rest
})

const thoughtsOf = (parts: ReadonlyArray<Part>): string =>
  parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join("")

/** What the runtime gets of an answer. */
interface Facts {
  readonly text: string
  readonly thoughts: string
  readonly calls: ReadonlyArray<unknown>
  readonly reason: ReadonlyArray<string>
}

const facts = (parts: ReadonlyArray<Part>): Facts => ({
  text: textOf(parts),
  thoughts: thoughtsOf(parts),
  calls: only(parts, "tool-call").map(({ id, name, params }): unknown => [id, name, params]),
  reason: only(parts, "finish").map(({ reason }) => reason)
})

const readA = ["c1", "read", { path: "a" }]
const readB = ["c2", "read", { path: "b" }]
const args = '{"path":"a"}'
const argsB = '{"path":"b"}'
const text = { text: "Hello", thoughts: "", calls: [], reason: ["stop"] }
const one = { text: "", thoughts: "", calls: [readA], reason: ["tool-calls"] }
const two = { ...one, calls: [readA, readB] }

const named = (event: Event): Reply["chunks"][number] => {
  const { type, ...rest } = event
  return `event: ${type}\ndata: ${JSON.stringify(rest)}\n\n`
}

const streams: ReadonlyArray<readonly [string, Reply, Facts]> = [
  ["a text only in its item's end", events(done(said("Hello", { id: "m1" })), completed()), text],
  ["a text only in the final event", events(completed(said("Hello", { id: "m1" }))), text],
  ["a text only in its own end", events({ type: "response.output_text.done", text: "Hello" }, completed()), text],
  [
    "a text only in its part's end",
    events({ type: "response.content_part.done", part: { type: "output_text", text: "Hello" } }, completed()),
    text
  ],
  ["a text whose pieces name no item", events(words("Hel"), words("lo"), completed()), text],
  [
    "a text in every event that may hold it",
    events(
      added({ type: "message", id: "m1", content: [] }, { output_index: 0 }),
      words("Hel", { item_id: "m1", output_index: 0, content_index: 0 }),
      words("lo", { item_id: "m1", output_index: 0, content_index: 0 }),
      { type: "response.output_text.done", item_id: "m1", output_index: 0, content_index: 0, text: "Hello" },
      { type: "response.content_part.done", item_id: "m1", content_index: 0, part: { type: "text", text: "Hello" } },
      done(said("Hello", { id: "m1" }), { output_index: 0 }),
      completed(said("Hello", { id: "m1" }))
    ),
    text
  ],
  ["a text whose last pieces are missing", events(words("Hel", { item_id: "m1" }), completed(said("Hello"))), text],
  [
    "a text in an announcement",
    events(added(said("Hello", { id: "m1" })), done({ type: "message", id: "m1" }), completed()),
    text
  ],
  [
    "two texts at one position",
    events(done(said("Hel"), { output_index: 0 }), done(said("lo"), { output_index: 0 }), completed()),
    text
  ],
  [
    "a text under another id in the final event",
    events(words("Hello", { item_id: "m1", output_index: 0 }), completed(said("Hello", { id: "m2" }))),
    text
  ],
  ["a call only in its item's end", events(done(call("c1", args)), completed()), one],
  ["a call only in the final event", events(completed(call("c1", args))), one],
  [
    "calls after a text, only in the final event",
    events(completed(said("Hello"), call("c1", args), call("c2", argsB))),
    { ...two, text: "Hello" }
  ],
  ["an input only in its own end", events(added(call("c1", "")), inputDone(args), completed()), one],
  ["an input only in the announcement", events(added(call("c1", args)), completed()), one],
  [
    "an input in the announcement of an item that ends",
    events(added(call("c1", args)), done(call("c1", "")), completed()),
    one
  ],
  ["an input that is an object", events(done(call("c1", { path: "a" })), completed()), one],
  ["an input without pieces' ends", events(added(call("c1", "")), input('{"path"'), input(':"a"}'), completed()), one],
  [
    "an input that its end completes",
    events(added(call("c1", "")), input('{"path"'), inputDone(args), completed()),
    one
  ],
  [
    "an input without an announcement",
    events(
      input('{"path"', { item_id: "f1" }),
      input(':"a"}', { item_id: "f1" }),
      done(call("c1", args, { id: "f1" })),
      completed()
    ),
    one
  ],
  [
    "inputs of two calls by turns, without positions",
    events(
      added(call("c1", "", { id: "f1" })),
      added(call("c2", "", { id: "f2" })),
      input('{"path"', { item_id: "f1" }),
      input('{"path"', { item_id: "f2" }),
      input(':"a"}', { item_id: "f1" }),
      input(':"b"}', { item_id: "f2" }),
      done(call("c1", args, { id: "f1" })),
      done(call("c2", argsB, { id: "f2" })),
      completed()
    ),
    two
  ],
  [
    "calls by position, under another id in each event",
    events(
      added(call("c1", "", { id: "x1" }), { output_index: 0 }),
      input('{"path"', { item_id: "x2", output_index: 0 }),
      added(call("c2", "", { id: "x3" }), { output_index: 1 }),
      input(':"a"}', { item_id: "x4", output_index: 0 }),
      input(argsB, { item_id: "x5", output_index: 1 }),
      done(call("c1", args, { id: "x6" }), { output_index: 0 }),
      done(call("c2", argsB, { id: "x7" }), { output_index: 1 }),
      completed(call("c1", args, { id: "x8" }), call("c2", argsB, { id: "x9" }))
    ),
    two
  ],
  [
    "a call in every event that may hold it",
    events(
      added(call("c1", "", { id: "f1" }), { output_index: 0 }),
      input(args, { item_id: "f1", output_index: 0 }),
      inputDone(args, { item_id: "f1", output_index: 0 }),
      done(call("c1", args, { id: "f1" }), { output_index: 0 }),
      completed(call("c1", args, { id: "f1" }))
    ),
    one
  ],
  [
    "two calls with one call id",
    events(done(call("c", args, { id: "f1" })), done(call("c", argsB, { id: "f2" })), completed()),
    {
      ...two,
      calls: [
        ["c", "read", { path: "a" }],
        ["c_2", "read", { path: "b" }]
      ]
    }
  ],
  ["a call with an item's id only", events(done(call(undefined, args, { id: "c1" })), completed()), one],
  [
    "items and events of other kinds",
    events({ type: "response.later" }, done({ type: "mcp_list_tools", id: "x" }), done(said("Hello")), completed()),
    text
  ],
  ["types only as the names of the events", { chunks: [named(words("Hello")), named(completed())] }, text],
  ["another name of the end", events(words("Hello"), { ...completed(), type: "response.done" }), text],
  [
    "the end mark of chat completions",
    { chunks: [...events(words("Hello")).chunks, "data: [DONE]\n\n"] },
    { ...text, reason: ["unknown"] }
  ],
  ["a connection that stays open", { ...events(words("Hello"), completed()), ending: "silence" }, text],
  ["an answer in one body", { chunks: [JSON.stringify(completed(said("Hello"))["response"])] }, text],
  [
    "raw thinking",
    events({ type: "response.reasoning_text.delta", item_id: "r1", delta: "Hm." }, words("Hello"), completed()),
    { ...text, thoughts: "Hm." }
  ],
  [
    "thinking only in its item's end",
    events(done({ type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] }), words("Hello"), completed()),
    { ...text, thoughts: "Hm." }
  ],
  [
    "thinking in a summary and in full, of which the summary is read",
    events(
      completed(
        { type: "reasoning", summary: [{ text: "Hm." }], content: [{ type: "reasoning_text", text: "Hmmm." }] },
        said("Hello")
      )
    ),
    { ...text, thoughts: "Hm." }
  ]
]

type Block = { readonly text: string } | { readonly path: string }
const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ text: fc.string({ minLength: 1, maxLength: 12 }) }),
  fc.record({ path: fc.string({ maxLength: 12 }) })
)

/** The item of a block, as the final event holds it. */
const itemOf = (one: Block, nth: number) =>
  "text" in one
    ? said(one.text, { id: `i${nth}` })
    : call(`c${nth}`, JSON.stringify({ path: one.path }), { id: `i${nth}` })

const halves = (text: string) =>
  [text.slice(0, text.length / 2), text.slice(text.length / 2)].filter((one) => one !== "")

/** All events of a block; of those that repeat others, the ones that `kept` says. */
const spread = (one: Block, nth: number, kept: () => boolean): ReadonlyArray<Event> => {
  const at = { item_id: `i${nth}`, output_index: nth }
  const item = itemOf(one, nth)
  const whole = "text" in one ? one.text : JSON.stringify({ path: one.path })
  const pieces = halves(whole).map((half) => ("text" in one ? words(half, at) : input(half, at)))
  const end = "text" in one ? { type: "response.output_text.done", text: whole, ...at } : inputDone(whole, at)
  const empty = "text" in one ? { ...item, content: [] } : { ...item, arguments: "" }
  return [[added(empty, at)], pieces, [end], [done(item, at)]].flatMap((some) => (kept() ? some : []))
}

/** An event without its item's id, or its position. */
const without = (event: Event, what: string): Event => {
  const { item_id, output_index, ...rest } = event
  if (what === "id") return { ...rest, output_index }
  return what === "at" ? { ...rest, item_id } : event
}

const readAll = (list: ReadonlyArray<Event>): ReadonlyArray<WirePart> => {
  const made = new Answer((name) => name, false)
  const reader = responses.read(made, { tools: [] } as never)
  for (const event of list) reader(event, "")
  return made.take()
}

describe("the Responses API", () => {
  for (const [name, reply, expected] of streams) {
    it.scopedLive(`MD-100: reads ${name}`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("openai", terra, reply)
        assert.deepStrictEqual(facts(yield* answer(model, { prompt: "go", tools })), expected)
      })
    )
  }

  it.scopedLive("MD-91: a call without any id gets one", () =>
    Effect.gen(function* () {
      const { model } = yield* connect("openai", terra, events(done(call(undefined, args)), completed()))
      const [made] = only(yield* answer(model, { prompt: "go", tools }), "tool-call")
      assert.match(String(made?.id), /^\w{8,64}$/)
    })
  )

  it.scopedLive(
    "MD-101: every part of thinking ends with its item's id and encrypted content, also one without text",
    () =>
      Effect.gen(function* () {
        const summary = (summary_index: number, delta: string): Event => ({
          type: "response.reasoning_summary_text.delta",
          item_id: "r1",
          summary_index,
          delta
        })
        const thought = { type: "reasoning", id: "r1", summary: [], encrypted_content: "ENC" }
        const { model } = yield* connect(
          "openai",
          terra,
          events(
            summary(0, "One."),
            summary(1, "Two."),
            done(thought),
            done({ ...thought, id: "r2" }),
            words("Hello"),
            completed()
          )
        )
        const parts = yield* answer(model, { prompt: "go" })
        const metadata = (itemId: string) => ({ openai: { itemId, encryptedContent: "ENC" } })
        assert.deepStrictEqual(
          only(parts, "reasoning-end").map((part): unknown => part.metadata),
          [metadata("r1"), metadata("r1"), metadata("r2")]
        )
      })
  )

  it.scopedLive("MD-102: a call runs at the end of its input, before its item and the answer end", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("openai", terra, {
        ...events(added(call("c1", "", { id: "f1" })), inputDone(args, { item_id: "f1" })),
        ending: "silence"
      })
      const [made] = yield* stream(model, { prompt: "go", tools }).pipe(
        Stream.filter((part) => part.type === "tool-call"),
        Stream.take(1),
        Stream.runCollect
      )
      assert.deepStrictEqual<unknown>([at(made, "id"), at(made, "name"), at(made, "params")], readA)
      yield* server.abandoned
    })
  )

  it.scopedLive("MD-102: a call that the output limit cut is not made", () =>
    Effect.gen(function* () {
      const cut = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, usage: {} }
      const { model } = yield* connect(
        "openai",
        terra,
        events(added(call("c1", "")), input('{"path":'), done(call("c1", '{"path":', { status: "incomplete" })), {
          type: "response.incomplete",
          response: cut
        })
      )
      const parts = yield* answer(model, { prompt: "go", tools })
      assert.deepStrictEqual(facts(parts), { text: "", thoughts: "", calls: [], reason: ["length"] })
    })
  )

  const refusals: ReadonlyArray<readonly [string, ReadonlyArray<Event>]> = [
    ["in pieces", ["I can", "not."].map((delta) => ({ type: "response.refusal.delta", delta }))],
    ["whole", [{ type: "response.refusal.done", refusal: "I cannot." }]],
    ["in its item", [done({ type: "message", content: [{ type: "refusal", refusal: "I cannot." }] })]]
  ]
  for (const [name, pieces] of refusals) {
    it.scopedLive(`MD-103: a refusal ${name} is text, and the answer ends as filtered`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("openai", terra, events(...pieces, completed()))
        const parts = yield* answer(model, { prompt: "go" })
        const [finish] = only(parts, "finish")
        assert.strictEqual(textOf(parts), "I cannot.")
        assert.deepStrictEqual<unknown>(
          [finish?.reason, at(finish, "metadata", "daybook", "refusal")],
          ["content-filter", true]
        )
      })
    )
  }

  it.scopedLive("MD-103: a filter that ends the answer is the reason of the end", () =>
    Effect.gen(function* () {
      const response = { status: "incomplete", incomplete_details: { reason: "content_filter" } }
      const { model } = yield* connect("openai", terra, events(words("Hel"), { type: "response.incomplete", response }))
      assert.deepStrictEqual(facts(yield* answer(model, { prompt: "go" })).reason, ["content-filter"])
    })
  )

  for (const [name, event, expected] of [
    [
      "failed",
      { type: "response.failed", response: { error: { code: "rate_limit_exceeded", message: "slow down" } } },
      { retryable: true, overflow: false }
    ],
    ["cancelled", { type: "response.completed", response: { status: "cancelled" } }, { retryable: true }],
    [
      "failed with a number as the code",
      { type: "response.failed", response: { error: { code: 502, message: "upstream" } } },
      { retryable: true, statusCode: 502 }
    ]
  ] as const) {
    it.scopedLive(`MD-104: a response that ${name} is an error, whatever its last event is called`, () =>
      Effect.gen(function* () {
        const { model } = yield* connect("openai", terra, events(words("Hel"), event))
        const parts = yield* answer(model, { prompt: "go" })
        const [error] = only(parts, "error")
        assert.deepInclude(classifyError(error?.error), expected)
        assert.deepStrictEqual(only(parts, "finish"), [])
      })
    )
  }

  it.scopedLive("MD-93: JSON that is not an answer is an error that says so, and is not retried", () =>
    Effect.gen(function* () {
      const { model } = yield* connect("openai", terra, { chunks: ['{"status":"ok"}'] })
      const failure = classifyError(yield* Effect.flip(answer(model, { prompt: "go" })))
      assert.include(failure.message, "JSON that is no answer")
      assert.isFalse(failure.retryable)
    })
  )

  it.scopedLive("MD-105: a forced choice of a hosted tool names its type", () =>
    Effect.gen(function* () {
      const search = Tool.providerDefined({
        id: "openai.web_search_preview",
        toolkitName: "Search",
        providerName: "web_search_preview",
        args: { search_context_size: Schema.String },
        success: Schema.Unknown
      })({ search_context_size: "low" })
      const { model, server } = yield* connect(
        "openai",
        terra,
        events(done({ type: "web_search_call", id: "ws_1", status: "completed" }), completed())
      )
      const parts = yield* answer(model, {
        prompt: "go",
        tools: [tool("read"), search],
        toolChoice: { tool: "Search" }
      })
      const [request] = server.received
      assert.deepStrictEqual(at(request?.body, "tool_choice"), { type: "web_search_preview" })
      assert.deepStrictEqual(at(request?.body, "tools", 1), { type: "web_search_preview", search_context_size: "low" })
      assert.deepStrictEqual(
        only(parts, "tool-result").map(({ id, name }) => [id, name]),
        [["ws_1", "Search"]]
      )
    })
  )

  it.scopedLive("MD-14: an answer with a hosted result goes back as text, without its reasoning", () =>
    Effect.gen(function* () {
      const { model, server } = yield* connect("openai", terra, events(words("Hello"), completed()))
      const noted = (itemId: string, rest: object = {}) => ({ openai: { itemId, ...rest } })
      const search = { id: "ws_1", name: "OpenAiWebSearch", providerExecuted: true, options: {} }
      yield* answer(model, {
        prompt: [
          { role: "user", content: "go" },
          {
            role: "assistant",
            content: [
              { type: "reasoning", text: "Hm.", options: noted("r1", { encryptedContent: "ENC" }) },
              { type: "tool-call", params: {}, ...search },
              { type: "tool-result", isFailure: false, result: { status: "completed" }, ...search },
              { type: "text", text: "Found.", options: noted("m1") }
            ]
          },
          { role: "user", content: "And?" }
        ]
      })
      const output = (text: string) => ({ role: "assistant", content: [{ type: "output_text", text }] })
      assert.deepStrictEqual(at(server.received[0]?.body, "input"), [
        { role: "user", content: [{ type: "input_text", text: "go" }] },
        output('[OpenAiWebSearch: {"status":"completed"}]'),
        output("Found."),
        { role: "user", content: [{ type: "input_text", text: "And?" }] }
      ])
    })
  )

  it.prop(
    "MD-100: events that repeat each other may be missing, with their ids or positions, and the answer is the same",
    [
      fc.array(block, { minLength: 1, maxLength: 5 }),
      fc.infiniteStream(fc.boolean()),
      fc.constantFrom("id", "at", "none")
    ],
    ([blocks, coins, stripped]) => {
      const kept = () => coins.next().value === true
      const sent = blocks.flatMap((one, nth) => spread(one, nth, kept)).map((event) => without(event, stripped))
      const parts = readAll([...sent, completed(...blocks.map(itemOf))])
      const texts = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []))
      const calls = parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.params]] : []))
      // What only the final event holds comes last.
      const sorted = (all: ReadonlyArray<string>) => [...all.join("")].toSorted().join("")
      assert.strictEqual(sorted(texts), sorted(blocks.flatMap((one) => ("text" in one ? [one.text] : []))))
      assert.sameDeepMembers(
        calls,
        blocks.flatMap((one, nth) => ("text" in one ? [] : [[`c${nth}`, { path: one.path }]]))
      )
    }
  )
})

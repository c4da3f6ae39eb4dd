/** Shows how to give models a tool whose handler needs a service of the application. */
import { Daybook, HostTools, ModelResolver, Sessions, Tool } from "@daybook/embedded"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import * as AiTool from "@effect/ai/Tool"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"

/** A service of the application. */
class Stock extends Context.Tag("acme/Stock")<Stock, { readonly count: (item: string) => Effect.Effect<number> }>() {}

const stock = Tool.define(
  AiTool.make("stock", {
    description: "How many of an item are in stock",
    parameters: { item: Schema.String },
    success: Schema.Struct({ count: Schema.Int })
  }),
  { handler: ({ item }) => Effect.flatMap(Stock, ({ count }) => Effect.map(count(item), (n) => ({ count: n }))) }
)

const tools = HostTools.layerTools([stock]).pipe(
  Layer.provide(Layer.succeed(Stock, { count: (item) => Effect.succeed(item.length) }))
)

/** A model that calls the tool once and then answers; it stands in for a provider. */
const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
const turns: Array<ReadonlyArray<Response.StreamPartEncoded>> = [
  [
    { type: "tool-call", id: "call-1", name: "stock", params: { item: "apples" }, providerExecuted: false },
    { type: "finish", reason: "tool-calls", usage }
  ],
  [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "There are six." },
    { type: "text-end", id: "1" },
    { type: "finish", reason: "stop", usage }
  ]
]
const model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () => Effect.succeed([{ type: "finish", reason: "stop", usage }]),
    streamText: () => Stream.suspend(() => Stream.fromIterable(turns.shift() ?? []))
  })
)

const program = Effect.gen(function* () {
  const sessions = yield* Sessions.Sessions
  const session = yield* sessions.create({ location: { directory: process.cwd() } })
  yield* sessions.prompt({ sessionID: session.id, prompt: { text: "How many apples are there?" } })
  yield* sessions.events({ sessionID: session.id }).pipe(
    Stream.takeUntil((event) => event.type === "session.next.activity.settled"),
    Stream.runForEach((event) =>
      event.type === "session.next.tool.success" ? Console.log(JSON.stringify(event.data.structured)) : Effect.void
    )
  )
})

const runtime = tools.pipe(
  Layer.provideMerge(Daybook.layer({ filename: "own-tool.sqlite" })),
  Layer.provide(ModelResolver.layerLanguageModel({ ref: { providerID: "acme", id: "clerk" } })),
  Layer.provide(model)
)

NodeRuntime.runMain(Effect.provide(program, runtime))

/** Shows how to use a language model of your own: any LanguageModel of `@effect/ai`. This one repeats a sentence. */
import { Daybook, ModelResolver, Sessions } from "@daybook/embedded"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Layer, Stream } from "effect"

const usage = { inputTokens: 1, outputTokens: 3, totalTokens: 4 }
const sentence = "I am a model of your own."

const parts: ReadonlyArray<Response.StreamPartEncoded> = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: sentence },
  { type: "text-end", id: "1" },
  { type: "finish", reason: "stop", usage }
]

const model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () =>
      Effect.succeed([
        { type: "text", text: sentence },
        { type: "finish", reason: "stop", usage }
      ]),
    streamText: () => Stream.fromIterable(parts)
  })
)

const program = Effect.gen(function* () {
  const sessions = yield* Sessions.Sessions
  const session = yield* sessions.create({ location: { directory: process.cwd() } })
  yield* sessions.prompt({ sessionID: session.id, prompt: { text: "Who are you?" } })
  yield* sessions.events({ sessionID: session.id }).pipe(
    Stream.takeUntil((event) => event.type === "session.next.activity.settled"),
    Stream.runForEach((event) =>
      event.type === "session.next.text.ended" ? Console.log(event.data.text) : Effect.void
    )
  )
})

const runtime = Daybook.layer({ filename: "own-model.sqlite" }).pipe(
  Layer.provide(ModelResolver.layerLanguageModel({ ref: { providerID: "acme", id: "parrot" } })),
  Layer.provide(model)
)

NodeRuntime.runMain(Effect.provide(program, runtime))

/** A model whose every request waits for its own answer, so that a test decides which one continues, and when. */
import { LanguageModel } from "@effect/ai"
import { Context, Deferred, Effect, Layer, Queue, Stream } from "effect"
import { layerLanguageModel } from "../../../packages/core/src/model/ModelResolver.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { ref, type Script, type SeenRequest } from "../../support/ScriptedModel.ts"
import { waitingFor } from "../../support/Waiting.ts"

export interface Held extends Pick<SeenRequest, "prompt" | "tools"> {
  readonly answer: (script: Script) => Effect.Effect<void>
}

export class GatedModel extends Context.Tag("test/GatedModel")<
  GatedModel,
  {
    /** The next request that arrives. */
    readonly request: Effect.Effect<Held>
    /** The number of requests that arrived and were not taken. */
    readonly pending: Effect.Effect<number>
  }
>() {}

/** The runtime with such a model. */
export const runtime = (options: Daybook.Options) =>
  Daybook.layer(options).pipe(
    Layer.provideMerge(
      Layer.unwrapEffect(
        Effect.gen(function* () {
          const requests = yield* Queue.unbounded<Held>()
          const model = LanguageModel.make({
            generateText: () => Effect.dieMessage("the runner streams"),
            streamText: ({ prompt, tools }) =>
              Stream.unwrap(
                Effect.gen(function* () {
                  const script = yield* Deferred.make<Script>()
                  yield* Queue.offer(requests, {
                    prompt,
                    tools,
                    answer: (given) => Effect.asVoid(Deferred.succeed(script, given))
                  })
                  return yield* waitingFor("the test to answer a request")(Deferred.await(script))
                })
              )
          })
          return Layer.merge(
            Layer.succeed(GatedModel, {
              request: waitingFor("a request of the runner to the model")(Queue.take(requests)),
              pending: Queue.size(requests)
            }),
            layerLanguageModel({ ref }).pipe(Layer.provide(Layer.effect(LanguageModel.LanguageModel, model)))
          )
        })
      )
    )
  )

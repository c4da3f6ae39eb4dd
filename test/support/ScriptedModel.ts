/**
 * A LanguageModel whose answers a test writes: each request takes the next script, waits for one when there is none,
 * and is kept with its prompt and tools for the test to look at. It is a real `@effect/ai` model, made with
 * `LanguageModel.make`: the runner cannot tell it from a provider's.
 */
import { AiError, LanguageModel, type Prompt, type Response, type Tool } from "@effect/ai"
import { layerLanguageModel, type ModelInfo, type ModelPolicy } from "@daybook/core"
import { Context, Effect, Layer, Queue, Stream } from "effect"

export type Script = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

export interface SeenRequest {
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<Tool.Any>
}

export class ScriptedModel extends Context.Tag("test/ScriptedModel")<
  ScriptedModel,
  {
    /** Adds the answer to the next unanswered request. */
    readonly answer: (script: Script) => Effect.Effect<void>
    /** Waits for the next request to arrive. */
    readonly request: Effect.Effect<SeenRequest>
    /** Requests that arrived and were not taken. */
    readonly pending: Effect.Effect<number>
  }
>() {}

export const ref = { providerID: "scripted", id: "one" }

/** The resolver with the scripted model, and the script's handle. */
export const layer = (info: Partial<ModelInfo> & { readonly policy?: ModelPolicy } = {}) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const scripts = yield* Queue.unbounded<Script>()
      const requests = yield* Queue.unbounded<SeenRequest>()
      const model = LanguageModel.make({
        generateText: () => Effect.dieMessage("the runner streams"),
        streamText: (options) =>
          Stream.unwrap(
            Effect.zipRight(
              Queue.offer(requests, { prompt: options.prompt, tools: options.tools }),
              Queue.take(scripts)
            )
          )
      })
      const handle = Layer.succeed(ScriptedModel, {
        answer: (script) => Effect.asVoid(Queue.offer(scripts, script)),
        request: Queue.take(requests),
        pending: Queue.size(requests)
      })
      return Layer.merge(
        handle,
        layerLanguageModel({ ref, ...info }).pipe(Layer.provide(Layer.effect(LanguageModel.LanguageModel, model)))
      )
    })
  )

/** The parts of a text, in pieces. */
export const textParts = (id: string, ...pieces: ReadonlyArray<string>): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id },
  ...pieces.map((delta) => ({ type: "text-delta" as const, id, delta })),
  { type: "text-end", id }
]

/** A tool call, with its input streamed before it. */
export const callParts = (id: string, name: string, params: unknown): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "tool-params-start", id, name, providerExecuted: false },
  { type: "tool-params-delta", id, delta: JSON.stringify(params) },
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params, providerExecuted: false }
]

export const finish = (reason: Response.FinishReason = "stop"): Response.StreamPartEncoded => ({
  type: "finish",
  reason,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
})

/** A whole answer of one text. */
export const says = (text: string): Script => Stream.fromIterable([...textParts("t", text), finish()])

/** A whole answer that calls tools. */
export const calls = (...parts: ReadonlyArray<ReadonlyArray<Response.StreamPartEncoded>>): Script =>
  Stream.fromIterable([...parts.flat(), finish("tool-calls")])

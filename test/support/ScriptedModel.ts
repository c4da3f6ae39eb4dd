/**
 * A LanguageModel whose answers a test scripts: each request takes the next script, or waits until there is one, and is
 * recorded with its prompt and tools. It is a real `@effect/ai` model, created with `LanguageModel.make`, so the runner cannot
 * distinguish it from a provider's. Two models, `one` and `two`, share one script.
 */
import { AiError, LanguageModel, type Prompt, type Response, type Tool } from "@effect/ai"
import { Context, Deferred, Effect, Layer, Queue, Stream } from "effect"
import type { RequestSettings } from "../../packages/core/src/domain/Agent.ts"
import {
  type ModelInfo,
  ModelNotFound,
  type ModelPolicy,
  ModelResolver,
  ProviderNotFound
} from "../../packages/core/src/model/ModelResolver.ts"
import { waitingFor } from "./Waiting.ts"

export type Script = Stream.Stream<Response.StreamPartEncoded, AiError.AiError>

export interface SeenRequest {
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<Tool.Any>
  /** Which of the two models was asked. */
  readonly model: string
  readonly toolChoice: LanguageModel.ToolChoice<string>
  /** The settings that the model was resolved with. */
  readonly settings: RequestSettings
}

export class ScriptedModel extends Context.Tag("test/ScriptedModel")<
  ScriptedModel,
  {
    /** Adds the answer to the next unanswered request. */
    readonly answer: (script: Script) => Effect.Effect<void>
    /** Waits for the next request to arrive. */
    readonly request: Effect.Effect<SeenRequest>
    /** The number of requests that arrived and were not taken. */
    readonly pending: Effect.Effect<number>
  }
>() {}

export const ref = { providerID: "scripted", id: "one" }
/** A second model of the same provider. */
export const otherRef = { providerID: "scripted", id: "two" }

const known: ReadonlyArray<string> = [ref.id, otherRef.id]

/** The resolver of the scripted models, and the handle of the script. */
export const layer = ({ policy, ...info }: Partial<ModelInfo> & { readonly policy?: ModelPolicy } = {}) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const scripts = yield* Queue.unbounded<Script>()
      const requests = yield* Queue.unbounded<SeenRequest>()
      const make = (model: string, settings: RequestSettings) =>
        LanguageModel.make({
          generateText: () => Effect.dieMessage("the runner streams"),
          streamText: ({ prompt, toolChoice, tools }) =>
            Stream.unwrap(
              Effect.zipRight(
                Queue.offer(requests, { prompt, tools, model, toolChoice, settings }),
                waitingFor("the test to script an answer to a request of the runner")(Queue.take(scripts))
              )
            )
        })
      const resolver = ModelResolver.of({
        resolve: ({ id, providerID } = ref, settings = {}) => {
          if (providerID !== ref.providerID) return new ProviderNotFound({ providerID, hint: "there is one: scripted" })
          if (!known.includes(id)) return new ModelNotFound({ providerID, modelID: id, known: [...known] })
          return Effect.map(make(id, settings), (model) => ({
            info: { ref: { providerID, id }, name: id, contextTokens: 0, outputTokens: 0, ...info },
            policy: policy ?? {},
            model
          }))
        }
      })
      return Context.make(ModelResolver, resolver).pipe(
        Context.add(ScriptedModel, {
          answer: (script) => Effect.asVoid(Queue.offer(scripts, script)),
          request: waitingFor("a request of the runner to the model")(Queue.take(requests)),
          pending: Queue.size(requests)
        })
      )
    })
  )

/** The stream parts of a text that arrives in pieces. */
export const textParts = (id: string, ...pieces: ReadonlyArray<string>): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id },
  ...pieces.map((delta) => ({ type: "text-delta" as const, id, delta })),
  { type: "text-end", id }
]

/** The stream parts of a tool call, with its input streamed first. */
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

/** An answer of any parts, each chunk on its own. */
export const streams = (...parts: ReadonlyArray<Response.StreamPartEncoded>): Script => Stream.fromIterable(parts)

/** A failure of the stream, as a provider's adapter reports it. */
export const failure = (description: string): AiError.UnknownError =>
  new AiError.UnknownError({ module: "Scripted", method: "streamText", description })

/** Parts, then silence until the gate opens, then more parts. */
export const held = (
  before: ReadonlyArray<Response.StreamPartEncoded>,
  gate: Deferred.Deferred<void>,
  after: ReadonlyArray<Response.StreamPartEncoded> = []
): Script =>
  Stream.concat(
    Stream.fromIterable(before),
    Stream.concat(Stream.execute(Deferred.await(gate)), Stream.fromIterable(after))
  )

/** A minimal client of a model, like the runtime: resolves it against a loopback server, and streams one answer. */
import { type AiError, type LanguageModel, type Prompt, type Response, Tool, type Toolkit } from "@effect/ai"
import { assert } from "@effect/vitest"
import { Chunk, Effect, Predicate, Redacted, Schema, type Scope, Stream } from "effect"
import { Models } from "@daybook/models"
import type { RequestSettings } from "../../../packages/core/src/domain/Agent.ts"
import type { ModelInfo, ResolvedModel } from "../../../packages/core/src/model/ModelResolver.ts"
import { hello } from "./Answers.ts"
import { type Reply, serve, type Server } from "./Server.ts"

export const secret = "sk-test-0123456789abcdef"

export type Part = Response.StreamPart<Record<string, Tool.Any>>

/** A tool whose input is not checked while the answer streams, with the JSON schema for the model. */
export const tool = (name: string, properties: Record<string, unknown> = { path: { type: "string" } }): Tool.Any =>
  Tool.make(name, { description: `The ${name} tool`, success: Schema.Unknown, failure: Schema.Unknown }).setParameters(
    Schema.Unknown.annotations({
      jsonSchema: { type: "object", properties, required: Object.keys(properties), additionalProperties: false }
      // The library types parameters as a struct; at run time it only needs a schema.
    }) as unknown as Tool.AnyStructSchema
  )

export const toolkit = (...tools: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools: Object.fromEntries(tools.map((item) => [item.name, item])),
  handle: () => Effect.dieMessage("the model must not settle tools")
})

export interface Asked {
  readonly prompt: Prompt.RawInput
  /** If absent, there is no toolkit, not even an empty one. */
  readonly tools?: ReadonlyArray<Tool.Any>
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string }
}

/** The whole answer; a failure of the stream is the failure of the effect. */
export const stream = (model: LanguageModel.Service, asked: Asked): Stream.Stream<Part, AiError.AiError> =>
  model.streamText({
    prompt: asked.prompt,
    ...(asked.tools === undefined ? {} : { toolkit: toolkit(...asked.tools) }),
    ...(asked.toolChoice === undefined ? {} : { toolChoice: asked.toolChoice as never }),
    disableToolCallResolution: true
    // The signature computes errors from the exact options; with these it is AiError.
  }) as unknown as Stream.Stream<Part, AiError.AiError>

export const answer = (
  model: LanguageModel.Service,
  asked: Asked
): Effect.Effect<ReadonlyArray<Part>, AiError.AiError> =>
  Effect.map(Stream.runCollect(stream(model, asked)), Chunk.toReadonlyArray)

export type Api = "anthropic" | "openai" | "openai-compatible"

/** A model of the given protocol that talks to a new server with these replies. */
export const connect = (
  api: Api | "gemini",
  ref: Omit<ModelInfo["ref"], "providerID">,
  ...replies: ReadonlyArray<Reply>
): Effect.Effect<
  { readonly server: Server; readonly resolved: ResolvedModel; readonly model: LanguageModel.Service },
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const server = yield* serve(...replies)
    const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
    const resolver = yield* Models.make({ providers: { [api]: { api, apiKey: Redacted.make(secret), baseUrl } } })
    const resolved = yield* Effect.orDie(resolver.resolve({ providerID: api, ...ref }))
    return { server, resolved, model: resolved.model }
  })

/** The bodies and headers of requests with these settings, one after the other. */
export const requestsWith = (
  api: Api,
  ref: Omit<ModelInfo["ref"], "providerID">,
  settings: ReadonlyArray<RequestSettings | undefined>,
  asked: Asked = { prompt: "Hi" }
) =>
  Effect.gen(function* () {
    const server = yield* serve(...settings.map(() => hello[api]))
    const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`
    const resolver = yield* Models.make({ providers: { [api]: { api, apiKey: Redacted.make(secret), baseUrl } } })
    for (const one of settings) {
      const { model } = yield* Effect.orDie(resolver.resolve({ providerID: api, ...ref }, one))
      assert.strictEqual(textOf(yield* answer(model, asked)), "Hello")
    }
    return server.received
  })

/** The text of an answer. */
export const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

/** The parts of one type. */
export const only = <T extends Part["type"]>(parts: ReadonlyArray<Part>, type: T): Array<Extract<Part, { type: T }>> =>
  parts.filter((part): part is Extract<Part, { type: T }> => part.type === type)

/** A value inside JSON, by keys and indices. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (inner, key) => (Predicate.isObject(inner) ? (inner as Record<string, unknown>)[key] : undefined),
    value
  )

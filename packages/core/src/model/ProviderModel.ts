/**
 * Creates the `LanguageModel` service of a provider, like `@effect/ai`'s constructor. The library's constructor builds
 * the schema of the stream's parts, and its decoder, for every request; this module builds both once per set of tools.
 * Spec: RQ-57, RQ-58.
 */
import * as AiError from "@effect/ai/AiError"
import * as IdGenerator from "@effect/ai/IdGenerator"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import { CurrentSpanTransformer } from "@effect/ai/Telemetry"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import { Chunk, Effect, Option, type ParseResult, Schema, type Scope, Stream } from "effect"

type Tools = Record<string, Tool.Any>
type Parts = Chunk.Chunk<Response.StreamPart<Tools>>
type Decode = (chunk: Chunk.Chunk<Response.StreamPartEncoded>) => Effect.Effect<Parts, ParseResult.ParseError>

/** Tool sets that are kept per first tool: agents of one process differ in few tools. */
const keptSets = 8

/** The decoders of recent tool sets, by their first tool. Tools are compared by identity. */
const decoders = new WeakMap<Tool.Any, Array<{ readonly tools: ReadonlyArray<Tool.Any>; readonly decode: Decode }>>()

const isSame = (a: ReadonlyArray<Tool.Any>, b: ReadonlyArray<Tool.Any>): boolean =>
  a.length === b.length && a.every((tool, index) => tool === b[index])

const makeDecode = (toolkit: Toolkit.WithHandler<Tools>): Decode =>
  Schema.decode(Schema.ChunkFromSelf(Response.StreamPart(toolkit)))

/** The decoder of a stream that may call these tools. */
const decoderOf = (toolkit: Toolkit.WithHandler<Tools>, tools: ReadonlyArray<Tool.Any>): Decode => {
  const [first] = tools
  if (first === undefined) return decodeNoTools
  const known = decoders.get(first) ?? []
  const found = known.find((one) => isSame(one.tools, tools))
  if (found !== undefined) return found.decode
  const decode = makeDecode(toolkit)
  decoders.set(first, [{ tools, decode }, ...known.slice(0, keptSets - 1)])
  return decode
}

const noTools: Toolkit.WithHandler<Tools> = { tools: {}, handle: () => Effect.dieMessage("there are no tools") }
const decodeNoTools = makeDecode(noTools)

/** A request whose calls the caller settles, for tools that are at hand. */
export interface PlainRequest extends LanguageModel.GenerateTextOptions<Tools> {
  readonly toolkit?: Toolkit.WithHandler<Tools>
  readonly disableToolCallResolution: true
}

const isPlain = (request: LanguageModel.GenerateTextOptions<Tools>): request is PlainRequest =>
  request.disableToolCallResolution === true && !Effect.isEffect(request.toolkit)

/** The next parts of an answer; fails with nothing at its end. */
export type Pull = Effect.Effect<Parts, Option.Option<AiError.AiError>>

/**
 * Takes parts in the step that brings them, without a wake of the fiber that waits for them. False if it does not take them: then
 * they come with the pull.
 */
export type TakeNow = (parts: ReadonlyArray<Response.StreamPart<Tools>>) => boolean

type Open = (request: PlainRequest, takeNow?: TakeNow) => Effect.Effect<Pull, never, Scope.Scope>

/** How the services below are asked without a stream around the provider's own, which costs more than the answer. */
const pulls = new WeakMap<object, Open>()

/** Sends a request whose calls the caller settles. The answer ends with the scope. Not every model offers parts to `takeNow`. */
export const pull = (
  service: LanguageModel.Service,
  request: PlainRequest,
  takeNow?: TakeNow
): Effect.Effect<Pull, never, Scope.Scope> =>
  pulls.get(service)?.(request, takeNow) ?? Stream.toPull(service.streamText(request))

const malformed = (error: ParseResult.ParseError): AiError.AiError =>
  AiError.MalformedOutput.fromParseError({ module: "LanguageModel", method: "streamText", error })

/** The functions of a provider. Without `generateText` an answer is collected from its stream. */
export interface Provider extends Omit<LanguageModel.ConstructorParams, "generateText"> {
  readonly generateText?: LanguageModel.ConstructorParams["generateText"]
  /** Opens an answer whose parts are decoded, for requests whose calls the caller settles: no schema reads them again. */
  readonly openText?: (
    request: LanguageModel.ProviderOptions,
    takeNow?: TakeNow
  ) => Effect.Effect<Pull, AiError.AiError, Scope.Scope>
}

/** The parts of a whole answer, from those of its stream. */
const whole = (parts: Chunk.Chunk<Response.StreamPartEncoded>): Array<Response.PartEncoded> => {
  const all: Array<Response.PartEncoded> = []
  const texts = new Map<string, string>()
  for (const part of parts) {
    switch (part.type) {
      case "text-delta":
      case "reasoning-delta":
        texts.set(part.id, (texts.get(part.id) ?? "") + part.delta)
        break
      case "text-end":
      case "reasoning-end": {
        const type = part.type === "text-end" ? "text" : "reasoning"
        all.push({ ...part, type, text: texts.get(part.id) ?? "" })
        break
      }
      case "tool-call":
      case "tool-result":
      case "response-metadata":
      case "finish":
        all.push(part)
    }
  }
  return all
}

const collected = (
  { streamText }: Provider,
  request: LanguageModel.ProviderOptions
): ReturnType<LanguageModel.ConstructorParams["generateText"]> =>
  Effect.flatMap(Stream.runCollect(streamText(request)), (parts) => {
    const fault = Chunk.findFirst(parts, (part): part is Response.ErrorPartEncoded => part.type === "error")
    if (Option.isNone(fault)) return Effect.succeed(whole(parts))
    const description = "the provider reported an error"
    const cause = fault.value.error
    return new AiError.UnknownError({ module: "LanguageModel", method: "generateText", description, cause })
  })

export const make = Effect.fnUntraced(function* (provider: Provider): Effect.fn.Return<LanguageModel.Service> {
  const service = yield* LanguageModel.make({
    streamText: provider.streamText,
    generateText: provider.generateText ?? ((request) => collected(provider, request))
  })
  const outerTransformer = yield* Effect.serviceOption(CurrentSpanTransformer)
  const identifiers = Option.getOrElse(
    yield* Effect.serviceOption(IdGenerator.IdGenerator),
    () => IdGenerator.defaultIdGenerator
  )
  const identified = Effect.provideService(IdGenerator.IdGenerator, identifiers)

  /** Opens an answer of the library's encoded parts. */
  const decoding = (request: LanguageModel.ProviderOptions, decode: Decode): Effect.Effect<Pull, never, Scope.Scope> =>
    Effect.map(identified(Stream.toPull(provider.streamText(request))), (encoded) =>
      Effect.flatMap(identified(encoded), (parts): Pull =>
        Effect.mapError(decode(parts), (error) => Option.some(malformed(error)))
      )
    )

  const open = Effect.fnUntraced(function* (
    { concurrency, prompt, toolChoice = "auto", toolkit = noTools }: PlainRequest,
    takeNow?: TakeNow
  ) {
    const span = yield* Effect.makeSpanScoped("LanguageModel.streamText", {
      captureStackTrace: false,
      attributes: { concurrency, toolChoice }
    })
    const all = Object.values(toolkit.tools)
    const tools =
      typeof toolChoice === "object" && "oneOf" in toolChoice
        ? all.filter(({ name }) => toolChoice.oneOf.includes(name))
        : all
    const request: LanguageModel.ProviderOptions = {
      prompt: Prompt.make(prompt),
      tools,
      toolChoice: all.length === 0 ? "none" : toolChoice,
      responseFormat: { type: "text" },
      span
    }
    const transformer = Option.orElse(yield* Effect.serviceOption(CurrentSpanTransformer), () => outerTransformer)
    // A transformer is given all parts.
    const now = Option.isNone(transformer) ? takeNow : undefined
    const next = yield* provider.openText === undefined
      ? decoding(request, decoderOf(toolkit, all))
      : Effect.catchAll(provider.openText(request, now), (error) => Effect.succeed(Effect.fail(Option.some(error))))
    if (Option.isNone(transformer)) return next
    const response: Array<Response.StreamPart<Tools>> = []
    yield* Effect.addFinalizer(() => Effect.sync(() => transformer.value({ ...request, response })))
    return Effect.tap(next, (parts) => Effect.sync(() => void response.push(...parts)))
  })

  // The service's types compute error and context from the exact options.
  const usual = service.streamText as unknown as (
    request: LanguageModel.GenerateTextOptions<Tools>
  ) => Stream.Stream<Response.StreamPart<Tools>, AiError.AiError>
  const streamText = (request: LanguageModel.GenerateTextOptions<Tools>) =>
    isPlain(request) ? Stream.fromPull(open(request)) : usual(request)
  const made = { ...service, streamText } as unknown as LanguageModel.Service
  pulls.set(made, open)
  return made
})

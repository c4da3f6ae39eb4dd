/**
 * Creates the `LanguageModel` service of a provider, like `@effect/ai`'s constructor. That one builds the schema of the
 * stream's parts, and its decoder, for every request; this one builds it once per set of tools. Everything else is the
 * library's. Spec: RQ-57, RQ-58.
 */
import * as AiError from "@effect/ai/AiError"
import * as IdGenerator from "@effect/ai/IdGenerator"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import { CurrentSpanTransformer } from "@effect/ai/Telemetry"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import { Chunk, Effect, Option, ParseResult, Schema, Stream } from "effect"

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

const decodeNoTools = makeDecode({ tools: {}, handle: () => Effect.dieMessage("there are no tools") })

/** A request whose calls the caller settles, for tools that are at hand. */
interface PlainRequest extends LanguageModel.GenerateTextOptions<Tools> {
  readonly toolkit: Toolkit.WithHandler<Tools>
  readonly disableToolCallResolution: true
}

const isPlain = (request: LanguageModel.GenerateTextOptions<Tools>): request is PlainRequest =>
  request.disableToolCallResolution === true && request.toolkit !== undefined && !Effect.isEffect(request.toolkit)

/** Creates the service from the provider's functions. */
export const make = Effect.fnUntraced(function* (
  provider: LanguageModel.ConstructorParams
): Effect.fn.Return<LanguageModel.Service> {
  const service = yield* LanguageModel.make(provider)
  const outerTransformer = yield* Effect.serviceOption(CurrentSpanTransformer)
  const identifiers = Option.getOrElse(
    yield* Effect.serviceOption(IdGenerator.IdGenerator),
    () => IdGenerator.defaultIdGenerator
  )

  const plain = Effect.fnUntraced(function* ({ concurrency, prompt, toolChoice = "auto", toolkit }: PlainRequest) {
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
    const parts = Stream.mapChunksEffect(provider.streamText(request), decoderOf(toolkit, all))
    const transformer = Option.orElse(yield* Effect.serviceOption(CurrentSpanTransformer), () => outerTransformer)
    return Option.isNone(transformer)
      ? parts
      : Stream.suspend(() => {
          const response: Array<Response.StreamPart<Tools>> = []
          return parts.pipe(
            Stream.mapChunks((chunk) => {
              response.push(...chunk)
              return chunk
            }),
            Stream.ensuring(Effect.sync(() => transformer.value({ ...request, response })))
          )
        })
  })

  const streamPlain = (request: PlainRequest) =>
    Stream.unwrapScoped(plain(request)).pipe(
      Stream.mapError((error) =>
        ParseResult.isParseError(error)
          ? AiError.MalformedOutput.fromParseError({ module: "LanguageModel", method: "streamText", error })
          : error
      ),
      Stream.provideService(IdGenerator.IdGenerator, identifiers)
    )

  // The service's types compute error and context from the exact options.
  const usual = service.streamText as unknown as (
    request: LanguageModel.GenerateTextOptions<Tools>
  ) => Stream.Stream<Response.StreamPart<Tools>, AiError.AiError>
  const streamText = (request: LanguageModel.GenerateTextOptions<Tools>) =>
    isPlain(request) ? streamPlain(request) : usual(request)
  return { ...service, streamText } as unknown as LanguageModel.Service
})

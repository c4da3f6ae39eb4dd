/**
 * Gives all provider libraries the same behaviour towards the runtime. Prompts are converted to a form that the
 * provider accepts. A call that does not decode is passed on for the runtime to settle. Reasoning metadata arrives with
 * the end of its block. Usage has one definition. A stream ends with `finish` or an error. No failure is a defect or
 * contains a key. Spec: MD-10..MD-19, MD-58, MD-59.
 */
import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Chunk, Effect, Predicate, Schema, Stream } from "effect"
import { HttpRefused } from "@daybook/core/http/HttpRefused"
import { parseOrText } from "./CallInput.ts"
import { clean, cleanUnknown, type Owner } from "./CleanError.ts"
import { noting } from "./WireFetch.ts"
import { withPlainFiles } from "./WireFiles.ts"
import { type CallIds, withWireCalls } from "./WireHistory.ts"
import { type WireNames, wireNames } from "./WireNames.ts"

type Tools = Record<string, Tool.Any>
type Part = Response.StreamPart<Tools>
/** A request from the runtime. */
export type Request = LanguageModel.GenerateTextOptions<Tools>

/** The differences of one provider. */
export interface Guard extends Owner {
  /** Names that the library confuses with its provider's tools. */
  readonly shadowed?: ReadonlySet<string>
  readonly callIds: CallIds
  /** The last change to a prompt before the provider's library reads it. */
  readonly lower: (prompt: Prompt.Prompt) => Prompt.Prompt
  /** Returns the request for the library, and the `fetch` to use. */
  readonly prepare?: (request: Request, names: WireNames) => readonly [Request, typeof globalThis.fetch]
  /** Set if `inputTokens` excludes cache reads and writes; returns both. */
  readonly cacheOnTop?: (finish: Response.FinishPart) => { readonly read: number; readonly write: number }
}

/** A request for the library, its `fetch`, and the names of its tools. */
interface Prepared {
  readonly sent: Request
  readonly fetch: typeof globalThis.fetch | undefined
  readonly names: WireNames
  /** Daybook's refusal of the answer, if any. */
  readonly refused: () => HttpRefused | undefined
}

/** Wraps a service with the guarantees above. It needs no context beyond the caller's tools. */
export const guard = (service: LanguageModel.Service, options: Guard): LanguageModel.Service => {
  const prepared = (request: Request, toolkit: OpenToolkit | undefined): Prepared => {
    const names = wireNames(Object.values(toolkit?.tools ?? {}), options.shadowed ?? new Set())
    const prompt = withWireCalls(withPlainFiles(Prompt.make(request.prompt)), options.callIds, names)
    const lowered: Request = {
      ...request,
      prompt: options.lower(prompt),
      ...(request.toolChoice === undefined ? {} : { toolChoice: wireChoice(request.toolChoice, names) }),
      ...(toolkit === undefined ? {} : { toolkit: wireTools(toolkit, names) })
    }
    const [sent, fetch] = options.prepare?.(lowered, names) ?? [lowered, undefined]
    let refused: HttpRefused | undefined
    const note = (error: unknown) => {
      if (error instanceof HttpRefused) refused = error
    }
    return { sent, fetch: fetch === undefined ? undefined : noting(fetch, note), names, refused: () => refused }
  }
  /** A toolkit may be an effect; its handlers belong to the caller. */
  const prepare = (request: Request): Effect.Effect<Prepared, AiError.AiError> => {
    const { toolkit } = request
    return Effect.isEffect(toolkit)
      ? Effect.map(toolkit as Effect.Effect<OpenToolkit>, (tools) => prepared(request, tools))
      : Effect.sync(() => prepared(request, toolkit))
  }
  // The service's types compute error and context from the exact options; here both are the library's.
  const stream = service.streamText as unknown as (request: Request) => Stream.Stream<Part, AiError.AiError>
  const generate = service.generateText as unknown as (request: Request) => Effect.Effect<unknown, AiError.AiError>
  const generateObject = service.generateObject as unknown as typeof generate
  const once = (ask: typeof generate, request: Request) =>
    Effect.flatMap(prepare(request), ({ fetch, names, refused, sent }) =>
      Effect.map(
        fetch === undefined ? ask(sent) : Effect.provideService(ask(sent), FetchHttpClient.Fetch, fetch),
        (answer) => ownNames(answer, names)
      ).pipe(Effect.catchAllCause((cause) => Effect.failCause(clean(options, cause, refused()))))
    ).pipe(Effect.catchAllCause((cause) => Effect.failCause(clean(options, cause))))
  const streamed = ({ fetch, names, refused, sent }: Prepared): Stream.Stream<Part, AiError.AiError> => {
    const state = new Transcript(options)
    const parts = fetch === undefined ? stream(sent) : Stream.provideService(stream(sent), FetchHttpClient.Fetch, fetch)
    return parts.pipe(
      Stream.catchAllCause((cause) => Stream.failCause(clean(options, cause, refused()))),
      Stream.mapConcatChunk((part) => Chunk.unsafeFromArray(state.next(ownName(part, names)))),
      Stream.concat(Stream.suspend(() => state.end()))
    )
  }
  return {
    generateText: (request: Request) => once(generate, request),
    generateObject: (request: Request) => once(generateObject, request),
    streamText: (request: Request) =>
      Stream.unwrap(
        Effect.map(
          Effect.catchAllCause(prepare(request), (cause) => Effect.failCause(clean(options, cause))),
          streamed
        )
      )
  } as unknown as LanguageModel.Service
}

type OpenToolkit = Toolkit.WithHandler<Tools>

const wireChoice = (choice: NonNullable<Request["toolChoice"]>, { toWire }: WireNames): typeof choice => {
  if (Predicate.isString(choice)) return choice
  return "tool" in choice ? { tool: toWire(choice.tool) } : { ...choice, oneOf: choice.oneOf.map(toWire) }
}

/** Restores the name under which the part's tool was offered. */
const ownName = <P extends { readonly type: string }>(part: P, { fromWire }: WireNames): P =>
  Predicate.hasProperty(part, "name") && Predicate.isString(part.name) ? { ...part, name: fromWire(part.name) } : part

const ownNames = (answer: unknown, names: WireNames): unknown =>
  answer instanceof LanguageModel.GenerateTextResponse && !(answer instanceof LanguageModel.GenerateObjectResponse)
    ? new LanguageModel.GenerateTextResponse(answer.content.map((part) => ownName(part, names)))
    : answer

/**
 * The tools under their wire names. Hosted tools get schemas that accept anything: the libraries describe no input
 * fields for tools that have some, and a newer form of result would end the stream (MD-22).
 */
const wireTools = ({ handle, tools }: OpenToolkit, { toWire }: WireNames): OpenToolkit => ({
  handle,
  tools: Object.fromEntries(
    Object.values(tools).map((tool) => {
      const name = toWire(tool.name)
      if (Tool.isProviderDefined(tool)) return [tool.name, changed(tool, "", anything)]
      return [name, name === tool.name ? tool : changed(tool, name, { name })]
    })
  )
})

const anything = {
  parametersSchema: Schema.Unknown,
  successSchema: Schema.Unknown,
  failureSchema: Schema.Unknown
}

const copies = new WeakMap<Tool.Any, { readonly key: string; readonly copy: Tool.Any }>()

/**
 * Copies a tool with its prototype, which marks provider-defined tools. The same key returns the same copy, so that
 * schemas are built once per tool set (RQ-57).
 */
const changed = (tool: Tool.Any, key: string, fields: object): Tool.Any => {
  const before = copies.get(tool)
  if (before?.key === key) return before.copy
  const copy: Tool.Any = Object.create(Object.getPrototypeOf(tool), Object.getOwnPropertyDescriptors(tool))
  copies.set(tool, { key, copy: Object.assign(copy, fields) })
  return copy
}

/** The state of one streamed answer. */
class Transcript {
  readonly #options: Guard
  readonly #reasoning = new Map<string, Response.ProviderMetadata>()
  readonly #calls = new Map<string, { readonly part: Response.ToolParamsStartPart; input: string }>()
  #ended = false

  constructor(options: Guard) {
    this.#options = options
  }

  next(part: Part): Array<Part> {
    switch (part.type) {
      case "reasoning-start":
        this.#reasoning.set(part.id, part.metadata)
        return [part]
      case "reasoning-delta": {
        const known = this.#reasoning.get(part.id) ?? {}
        this.#reasoning.set(part.id, mergeMetadata(known, part.metadata))
        return part.delta === "" ? [] : [part]
      }
      case "reasoning-end": {
        const metadata = mergeMetadata(this.#reasoning.get(part.id) ?? {}, part.metadata)
        this.#reasoning.delete(part.id)
        return [Response.reasoningEndPart({ id: part.id, metadata })]
      }
      case "tool-params-start":
        this.#calls.set(part.id, { part, input: "" })
        return [part]
      case "tool-params-delta": {
        const call = this.#calls.get(part.id)
        if (call !== undefined) call.input += part.delta
        return [part]
      }
      case "tool-call":
        this.#calls.delete(part.id)
        return [part]
      case "error":
        this.#ended = true
        return [Response.errorPart({ error: cleanUnknown(this.#options, part.error), metadata: part.metadata })]
      case "finish": {
        this.#ended = true
        const open = [...this.#calls.values()]
        this.#calls.clear()
        const local = open.some((call) => !call.part.providerExecuted)
        const reason = local && (part.reason === "stop" || part.reason === "unknown") ? "tool-calls" : part.reason
        return [...open.map(undecoded), finish(part, reason, this.#options)]
      }
      default:
        return [part]
    }
  }

  /** A stream that ends without `finish` was cut, even if the connection closed normally. */
  end(): Stream.Stream<Part, AiError.AiError> {
    return this.#ended
      ? Stream.empty
      : Stream.fail(
          new AiError.UnknownError({
            module: this.#options.provider,
            method: "streamText",
            description: "the answer ended before it was complete",
            cause: { code: "incomplete_response", message: "the answer ended before it was complete" }
          })
        )
  }
}

/** A call whose input is not JSON, or whose tool was not offered: the runtime settles it as failed (MD-13). */
const undecoded = ({ input, part }: { part: Response.ToolParamsStartPart; input: string }): Part =>
  Response.toolCallPart({
    id: part.id,
    name: part.name,
    params: parseOrText(input),
    providerExecuted: part.providerExecuted,
    ...(part.providerName === undefined ? {} : { providerName: part.providerName })
    // The toolkit's types know only its own tools; this call may name another.
  }) as unknown as Part

const finish = (part: Response.FinishPart, reason: Response.FinishReason, options: Guard): Part => {
  const metadata = plain(part.metadata)
  const cache = options.cacheOnTop?.(part)
  const usage = part.usage
  if (cache === undefined) return Response.finishPart({ reason, usage, metadata })
  const inputTokens = (usage.inputTokens ?? 0) + cache.read + cache.write
  return Response.finishPart({
    reason,
    usage: new Response.Usage({
      ...usage,
      inputTokens,
      totalTokens: inputTokens + (usage.outputTokens ?? 0),
      cachedInputTokens: cache.read
    }),
    metadata: { ...metadata, daybook: { ...metadata["daybook"], cacheWriteTokens: cache.write } }
  })
}

/** Library metadata may contain class instances and undefined fields; only JSON is stored. */
const plain = (metadata: Response.ProviderMetadata): Response.ProviderMetadata => {
  const json: unknown = JSON.parse(JSON.stringify(metadata))
  if (!Predicate.isRecord(json)) return {}
  return Object.fromEntries(
    Object.entries(json).flatMap(([key, value]) => (Predicate.isRecord(value) ? [[key, value]] : []))
  )
}

const mergeMetadata = (a: Response.ProviderMetadata, b: Response.ProviderMetadata): Response.ProviderMetadata => {
  const merged: Record<string, Record<string, unknown>> = {}
  for (const metadata of [plain(a), plain(b)]) {
    for (const [key, value] of Object.entries(metadata)) merged[key] = { ...merged[key], ...value }
  }
  return merged
}

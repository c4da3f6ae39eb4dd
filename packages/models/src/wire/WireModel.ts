/**
 * A language model over a protocol: writes the request, sends it once, and reads the answer as it arrives. The runtime gets parts
 * without a schema's detour; other callers get them through the library's. Spec: MD-10..MD-19, MD-90..MD-96 in specs/models.md.
 *
 *   prompt -> History -> Protocol.write -> send -> Framer -> Protocol.read -> Answer -> parts
 */
import type * as AiError from "@effect/ai/AiError"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import { Chunk, Effect, Option, Predicate, Redacted, type SchemaAST, type Scope, Stream } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import * as ProviderModel from "@daybook/core/model/ProviderModel"
import * as Limits from "@daybook/core/support/Limits"
import { onClose } from "@daybook/log/support/Closing"
import type { Api, Profile } from "../Profiles.ts"
import { Answer, type Fault, type Part } from "./Answer.ts"
import * as Failures from "./Failures.ts"
import type { Answered, Body, Piece } from "./Fetch.ts"
import { type Frame, Framer, isMark } from "./Frames.ts"
import { conversation } from "./History.ts"
import { type Json, objectsIn, record } from "./Json.ts"
import { type WireNames, wireNames } from "./Names.ts"
import { typedSchema } from "./Schemas.ts"
import {
  type Asked,
  endpoint,
  type Protocol,
  type Reader,
  signIn,
  type WireRequest,
  type WireTool
} from "./Protocol.ts"

export interface Options extends Asked {
  readonly protocol: Protocol
  /** Used in errors: the provider's name in the configuration. */
  readonly provider: string
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted | undefined
  /** The host's own headers for this provider. */
  readonly headers: Readonly<Record<string, string>>
  readonly send: (url: string, init: RequestInit) => Promise<Answered>
}

type Tools = Record<string, Tool.Any>
type Pull = Effect.Effect<ReadonlyArray<Part>, Option.Option<AiError.AiError>>

/** After the reason of the end, the usage and the end mark may follow: so long they are awaited. */
const grace = "2 seconds"

export const make = (options: Options): Effect.Effect<LanguageModel.Service> => {
  const parts = (request: LanguageModel.ProviderOptions): Stream.Stream<Part, AiError.AiError> =>
    Stream.unwrapScoped(
      Effect.map(open(options, request), (pull) =>
        Stream.fromPull(Effect.succeed(Effect.map(pull, Chunk.unsafeFromArray)))
      )
    )
  return ProviderModel.make({
    streamText: parts,
    openText: (request, takeNow) =>
      Effect.map(
        open(options, request, takeNow),
        Effect.map((all) => Chunk.unsafeFromArray(all.map(decoded)))
      )
  })
}

/** Whose errors these are. A secret may stand in one as it is, without blanks, and encoded for an address; any header may be one. */
const ownerOf = ({ apiKey, headers, provider, settings }: Options): Failures.Owner => {
  const key = apiKey === undefined ? [] : [Redacted.value(apiKey)]
  const values = [...key, ...Object.values(headers), ...Object.values(settings.headers ?? {})]
  const forms = values.flatMap((value) => [value, value.trim(), encodeURIComponent(value.trim())])
  return { provider, secrets: forms.map((form) => Redacted.make(form)) }
}

const requestOf = (
  options: Options,
  names: WireNames,
  { prompt, responseFormat, toolChoice, tools }: LanguageModel.ProviderOptions
): WireRequest => {
  const some = Predicate.hasProperty(toolChoice, "oneOf") ? toolChoice : undefined
  const offered = tools.filter(({ name }) => some === undefined || some.oneOf.includes(name))
  const wanted = Predicate.hasProperty(toolChoice, "oneOf") ? (toolChoice.mode ?? "auto") : toolChoice
  // A choice that the server does not take is left to the model; that calls are forbidden is always said.
  const chosen = wanted === "none" || options.profile.toolChoice ? wanted : "auto"
  return {
    ...options,
    messages: conversation(prompt, options.profile, names, options.protocol),
    tools: offered.map((tool) => wireToolOf(tool, names)).map((tool) => acceptedBy(options.profile, tool)),
    toolChoice: Predicate.isString(chosen) ? chosen : { tool: names.toWire(chosen.tool) },
    format:
      responseFormat.type === "json"
        ? { name: responseFormat.objectName, schema: schemaOf(responseFormat.schema) }
        : undefined
  }
}

const schemaOf = ({ ast }: { readonly ast: SchemaAST.AST }): Json => record(Tool.getJsonSchemaFromSchemaAst(ast))

const acceptedBy = ({ schemas }: Profile, tool: WireTool): WireTool =>
  schemas === "typed" && tool._tag === "Local" ? { ...tool, schema: typedSchema(tool.schema) } : tool

const schemas = new WeakMap<Tool.Any, WireTool>()

const wireToolOf = (tool: Tool.Any, names: WireNames): WireTool => {
  const name = names.toWire(tool.name)
  const known = schemas.get(tool)
  if (known !== undefined && (known._tag === "Hosted" || known.name === name)) return known
  const made: WireTool = Tool.isProviderDefined(tool)
    ? { _tag: "Hosted", id: tool.id, name: tool.providerName, args: record(tool.args) }
    : { _tag: "Local", name, description: tool.description, schema: schemaOf(tool.parametersSchema) }
  schemas.set(tool, made)
  return made
}

/** A signal that aborts when the scope closes. Made here: a finalizer made below would hold the request until then. */
const untilClosed = Effect.suspend(() => {
  const controller = new AbortController()
  return Effect.as(
    onClose(() => Effect.sync(() => controller.abort())),
    controller.signal
  )
})

const open = (
  options: Options,
  asked: LanguageModel.ProviderOptions,
  takeNow: ProviderModel.TakeNow = () => false
): Effect.Effect<Pull, AiError.AiError, Scope.Scope> =>
  Effect.gen(function* () {
    const owner = ownerOf(options)
    const { protocol } = options
    const names = wireNames(asked.tools)
    const request = yield* Effect.try({
      try: () => requestOf(options, names, asked),
      catch: (cause) => Failures.unknown(owner, "the request could not be written", cause)
    })
    const url = endpoint(options.baseUrl, protocol.path(request))
    const signal = yield* untilClosed
    const response = yield* Effect.tryPromise({
      try: () => options.send(url, { method: "POST", signal, ...written(options, request) }),
      catch: (cause) => Failures.unsent(owner, url, cause)
    })
    if (!response.ok) {
      const body = yield* Effect.mapError(startOf(response.body), (cause) => Failures.unsent(owner, url, cause))
      return yield* Failures.rejected(owner, url, response, body)
    }
    const answer = new Answer(names.fromWire, options.profile.tags)
    return pulling(
      owner,
      url,
      response.body,
      answer,
      framesInto(answer, protocol.read(answer, request), protocol.whole),
      // A host's own `fetch` may bring bytes after the scope has closed.
      (parts) => !signal.aborted && takeNow(parts.map(decoded))
    )
  })

const written = ({ apiKey, headers, profile, protocol, settings }: Options, request: WireRequest) => {
  const laid = lay(protocol.write(request), settings)
  const body = protocol.finish?.(laid, settings) ?? laid
  const key = apiKey === undefined ? undefined : Redacted.value(apiKey).trim()
  const own = { "content-type": "application/json", accept: "text/event-stream", ...signIn(profile, key) }
  return {
    headers: headersOf(settings, { ...own, ...protocol.headers?.(body) }, headers),
    body: wellFormed(JSON.stringify(body))
  }
}

// --- settings: they never replace the conversation, the tools or the model of a request, nor its credentials (MD-47..MD-51)

/** Fields that only the runtime sets. */
const decided =
  /^(?:contents|input|instructions|messages|model|stream|system|systemInstruction|toolConfig|tool_choice|tools)$/

/** Merges the settings' JSON fields into a body; whole fields are replaced (MD-48). */
const lay = (body: Json, settings: RequestSettings): Json => ({
  ...body,
  ...Object.fromEntries(Object.entries(settings.body ?? {}).filter(([name]) => !decided.test(name)))
})

/** Headers that carry credentials or define how the body is read. */
const fixed =
  /^(?:(?:proxy-)?authorization|(?:x-|x-goog-)?api-key|cookie|host|connection|transfer-encoding|content-(?:encoding|length|type))$/

/** A list header: values are appended, not replaced. */
const listed = "anthropic-beta"

/** The headers of a request: the protocol's and the host's, and over them those that the settings may set (MD-66). */
const headersOf = (
  settings: RequestSettings,
  own: Readonly<Record<string, string>>,
  hosts: Readonly<Record<string, string>>
): Record<string, string> => {
  const headers = new Headers({ ...own, ...hosts })
  const kept = new Set(Object.keys(hosts).map((name) => name.toLowerCase()))
  for (const [given, value] of Object.entries(settings.headers ?? {})) {
    const name = given.toLowerCase()
    if (fixed.test(name) || kept.has(name)) continue
    const under = name === listed ? headers.get(name) : null
    try {
      headers.set(name, under === null ? value : `${under},${value}`)
    } catch {
      // The platform's message would quote the value, which may be a key.
      throw new Error(`the header "${name}" of the request settings has characters that HTTP does not allow`)
    }
  }
  return Object.fromEntries(headers)
}

/**
 * Replaces lone surrogates, which truncated text may contain and providers reject. In such JSON every backslash starts
 * an escape, and `JSON.stringify` escapes only lone surrogates.
 */
const wellFormed = (json: string): string =>
  json.includes("\\ud")
    ? json.replaceAll(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (at) => (at === "\\\\" ? at : "\ufffd"))
    : json

const rejectionTime = "10 seconds"

/**
 * Gives the next bytes of a body to `take`, and goes on while it returns true. Returns whether the body has ended. What `take` throws
 * is the cause of a failure.
 */
const readOnce = (body: Body, take: (bytes: Uint8Array | undefined) => boolean): Effect.Effect<boolean, unknown> =>
  Effect.async((resume) => {
    const give = (piece: Piece): void => {
      if (piece._tag === "Broken") return resume(Effect.fail(piece.cause))
      const bytes = piece._tag === "Bytes" ? piece.bytes : undefined
      try {
        if (!take(bytes)) return resume(Effect.succeed(bytes === undefined))
      } catch (cause) {
        return resume(Effect.fail(cause))
      }
      body.next(give)
    }
    body.next(give)
  })

/** The start of a rejected request's body, or what of it came in time (LM-11, MD-160). */
const startOf = (body: Body): Effect.Effect<string, unknown> =>
  Effect.suspend(() => {
    const decoder = new TextDecoder()
    let [text, left] = ["", Limits.maxErrorBytes]
    const read = readOnce(body, (bytes) => {
      text += decoder.decode(bytes?.subarray(0, left), { stream: bytes !== undefined })
      left -= bytes?.length ?? 0
      return false
    })
    const reading = Effect.repeat(read, { until: (ended) => ended || left <= 0 })
    return Effect.map(Effect.timeoutOption(reading, rejectionTime), () => text + decoder.decode())
  })

const pulling = (
  owner: Failures.Owner,
  url: string,
  body: Body,
  answer: Answer,
  take: (frame: Frame) => void,
  takeNow: (parts: ReadonlyArray<Part>) => boolean
): Pull => {
  const framer = new Framer()
  const read = readOnce(body, (bytes) => {
    for (const frame of bytes === undefined ? framer.end() : framer.feed(bytes)) take(frame)
    if (bytes === undefined || answer.finishing || answer.over) return false
    const { parts } = answer
    if (parts.length === 0) return true
    const isTaken = takeNow(parts)
    if (isTaken) answer.take()
    return isTaken
  })
  const next: Pull = Effect.suspend(() => {
    const parts = answer.take()
    if (parts.length > 0) return Effect.succeed(clean(owner, parts))
    if (answer.broken !== undefined) {
      return Effect.fail(Option.some(Failures.unknown(owner, answer.broken.message, { ...answer.broken, url })))
    }
    if (answer.over) return Effect.fail(Option.none())
    const once = answer.finishing
      ? Effect.timeoutTo(read, { duration: grace, onSuccess: (done) => done, onTimeout: () => true })
      : read
    return Effect.matchEffect(once, {
      onSuccess: (done) => {
        if (done) answer.end(false)
        return next
      },
      onFailure: (cause) => {
        // What breaks after the reason of the end breaks nothing of the answer.
        if (!answer.finishing) return Effect.fail(Option.some(Failures.unsent(owner, url, cause)))
        answer.end(true)
        return next
      }
    })
  })
  return next
}

/** What tells the answers of each protocol, when an address is another's. */
const speakers: ReadonlyArray<readonly [field: string, api: Api, tells: (event: Json) => boolean]> = [
  ["choices", "openai-compatible", (event) => "choices" in event],
  ["candidates", "gemini", (event) => "candidates" in event],
  ["content", "anthropic", ({ type }) => type === "message_start" || type === "message"],
  ["output", "openai", ({ object, type }) => object === "response" || String(type).startsWith("response.")]
]

/** Why an event cannot be read, if it is one of another protocol. */
const foreign = (event: Json, fields: Protocol["whole"]): Fault | undefined => {
  const [field, api] = speakers.find(([, , tells]) => tells(event)) ?? []
  const message = `the server sent JSON that is no answer of this api, but one of ${api}: change the provider's api`
  return field === undefined || fields.includes(field) ? undefined : { code: "not_an_answer", message }
}

const unreadable = { code: "incomplete_response", message: "the server sent a part of its answer that is not JSON" }

/** Returns a function that gives frames to the reader; `fields` tell an answer that came whole. */
const framesInto = (answer: Answer, reader: Reader, fields: Protocol["whole"]) => {
  const takeEvent = (event: Json, name = ""): void => {
    if (answer.over) return
    const error = answer.finishing ? undefined : Failures.errorIn(event, name)
    const other = answer.begun ? undefined : foreign(event, fields)
    if (other !== undefined) answer.stray(other)
    if (error === undefined) reader(event, name)
    else answer.fail(error)
  }
  /** Takes a whole body: an answer in one object, or the events of one in a list or on lines of their own. */
  const takeWhole = (source: string): void => {
    const { objects, rest } = objectsIn(source)
    const [first] = objects
    // JSON that was cut may be whole the next time.
    if (/^[[{]/.test(rest) && !isMark(rest)) return answer.breakOff(unreadable)
    const isAnswer =
      first !== undefined &&
      (rest === "" || isMark(rest)) &&
      (objects.length > 1 || Failures.errorIn(first) !== undefined || fields.some((field) => field in first))
    const other = first === undefined ? undefined : foreign(first, fields)
    if (!isAnswer) return answer.breakOff(other ?? Failures.notAnAnswer(source))
    for (const event of objects) takeEvent(event)
    answer.end(objects.length > 1 || answer.begun)
  }
  return (frame: Frame): void => {
    switch (frame._tag) {
      case "Event":
        return takeEvent(frame.event, frame.name)
      case "Done":
        return answer.end(true)
      case "Whole":
        return takeWhole(frame.body)
      case "Unreadable":
        // A text that may have been part of the answer is lost; a stray line is not.
        return frame.isJson && !answer.finishing ? answer.breakOff(unreadable) : answer.stray(unreadable)
    }
  }
}

const clean = (owner: Failures.Owner, parts: ReadonlyArray<Part>): ReadonlyArray<Part> =>
  parts.map((part) => (part.type === "error" ? { ...part, error: Failures.cleanUnknown(owner, part.error) } : part))

/** A part as the library's schema would decode it. */
const decoded = (part: Part): Response.StreamPart<Tools> => {
  switch (part.type) {
    case "response-metadata": {
      const [id, modelId] = [Option.fromNullable(part.id), Option.fromNullable(part.modelId)]
      return Response.responseMetadataPart({ id, modelId, timestamp: Option.none() })
    }
    case "finish":
      return Response.finishPart({ ...part, usage: new Response.Usage(part.usage) })
    default: {
      // The other parts are the same in both forms, but for the mark and the metadata that `makePart` adds. The types of calls and
      // results know only the tools of one toolkit.
      const made = part.type === "tool-result" ? { ...part, encodedResult: part.result } : part
      return Response.makePart(part.type, made as never) as Response.StreamPart<Tools>
    }
  }
}

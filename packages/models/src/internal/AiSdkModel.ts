/**
 * Bridges the AI SDK's interface to `@effect/ai`: converts requests, stream parts and errors.
 * Spec: MD-25..MD-29, MD-60.
 */
import type {
  JSONSchema7,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage
} from "@ai-sdk/provider"
import * as AiError from "@effect/ai/AiError"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import { Array as Arr, Effect, Option, Predicate, Stream } from "effect"
import * as ProviderModel from "@daybook/core/model/ProviderModel"
import { refusalIn } from "@daybook/core/http/HttpRefused"
import { toPrompt, toTools } from "./AiSdkPrompt.ts"
import { parseOrText } from "./CallInput.ts"
import { refusedError } from "./CleanError.ts"
import { type Guard, guard } from "./GuardedModel.ts"

export interface Bridge extends Pick<Guard, "secrets" | "callIds" | "lower"> {
  readonly model: LanguageModelV3
  readonly settings: Omit<LanguageModelV3CallOptions, "prompt" | "tools" | "toolChoice" | "abortSignal">
  /** Completes calls earlier than the provider's library; created per answer. */
  readonly makeEager?: () => (part: LanguageModelV3StreamPart) => ReadonlyArray<LanguageModelV3StreamPart>
}

export const bridge = (options: Bridge): Effect.Effect<LanguageModel.Service> => {
  const { callIds, lower, makeEager, model, secrets, settings } = options
  const failed = (method: string) => (cause: unknown) => toAiError(model, method, cause)
  const call = (request: LanguageModel.ProviderOptions, abortSignal: AbortSignal): LanguageModelV3CallOptions => ({
    ...settings,
    prompt: toPrompt(request.prompt),
    ...toTools(request),
    ...(request.responseFormat.type === "json"
      ? {
          responseFormat: {
            type: "json",
            name: request.responseFormat.objectName,
            // Both packages describe the same JSON schema with different types.
            schema: Tool.getJsonSchemaFromSchemaAst(request.responseFormat.schema.ast) as JSONSchema7
          }
        }
      : {}),
    abortSignal
  })
  return ProviderModel.make({
    generateText: (request) =>
      Effect.tryPromise({
        try: (signal) => model.doGenerate(call(request, signal)),
        catch: failed("generateText")
      }).pipe(
        Effect.map((result): Array<Response.PartEncoded> => {
          const names = toolNames(request)
          return [
            { type: "response-metadata", ...metadataOf(result.response ?? {}) },
            ...result.content.flatMap((part) => contentPart(part, names)),
            finishPart(result.finishReason, result.usage, result.providerMetadata)
          ]
        })
      ),
    streamText: (request) =>
      Stream.unwrapScoped(
        Effect.gen(function* () {
          const controller = new AbortController()
          yield* Effect.addFinalizer(() => Effect.sync(() => controller.abort()))
          const { stream } = yield* Effect.tryPromise({
            try: () => model.doStream(call(request, controller.signal)),
            catch: failed("streamText")
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => controller.abort())))
          const names = toolNames(request)
          const eager = makeEager?.() ?? Arr.of
          return Stream.fromReadableStream({ evaluate: () => stream, onError: failed("streamText") }).pipe(
            Stream.mapConcat(eager),
            Stream.mapConcat((part) => streamPart(part, names))
          )
        })
      )
  }).pipe(Effect.map((service) => guard(service, { provider: model.provider, secrets, callIds, lower })))
}

/** The toolkit's name of each offered tool, by its wire name. */
const toolNames = (request: LanguageModel.ProviderOptions): ReadonlyMap<string, string> =>
  new Map(request.tools.map((tool) => [Tool.isProviderDefined(tool) ? tool.providerName : tool.name, tool.name]))

const streamPart = (
  part: LanguageModelV3StreamPart,
  names: ReadonlyMap<string, string>
): ReadonlyArray<Response.StreamPartEncoded> => {
  switch (part.type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return [{ type: part.type, id: part.id, ...meta(part) }]
    case "text-delta":
    case "reasoning-delta":
      return [{ type: part.type, id: part.id, delta: part.delta, ...meta(part) }]
    case "tool-input-start":
      return [
        {
          type: "tool-params-start",
          id: part.id,
          name: names.get(part.toolName) ?? part.toolName,
          providerExecuted: part.providerExecuted ?? false,
          ...meta(part)
        }
      ]
    case "tool-input-delta":
      return [{ type: "tool-params-delta", id: part.id, delta: part.delta, ...meta(part) }]
    case "tool-input-end":
      return [{ type: "tool-params-end", id: part.id, ...meta(part) }]
    case "tool-call":
    case "tool-result":
    case "file":
    case "source":
      return sharedPart(part, names)
    case "response-metadata":
      return [{ type: "response-metadata", ...metadataOf(part) }]
    case "finish":
      return [finishPart(part.finishReason, part.usage, part.providerMetadata)]
    case "error":
      return [{ type: "error", error: cutOff(part.error) }]
    // Warnings, raw chunks and approval requests of hosted tools have no counterpart.
    case "stream-start":
    case "raw":
    case "tool-approval-request":
      return []
  }
}

/** A part of a complete answer. */
const contentPart = (
  part: LanguageModelV3Content,
  names: ReadonlyMap<string, string>
): ReadonlyArray<Response.PartEncoded> =>
  part.type === "text" || part.type === "reasoning"
    ? [{ type: part.type, text: part.text, ...meta(part) }]
    : sharedPart(part, names)

/** An answer without a finish reason is incomplete, so it may be retried. */
const cutOff = (error: unknown): unknown =>
  error instanceof Error && /ended without a finish reason/.test(error.message)
    ? { code: "incomplete_response", message: "the answer ended before it was complete" }
    : error

type Shared =
  | Response.ToolCallPartEncoded
  | Response.ToolResultPartEncoded
  | Response.FilePartEncoded
  | Response.DocumentSourcePartEncoded
  | Response.UrlSourcePartEncoded

/** Parts with the same form in a stream and a complete answer. */
const sharedPart = (
  part: Exclude<LanguageModelV3Content, { readonly type: "text" | "reasoning" }>,
  names: ReadonlyMap<string, string>
): ReadonlyArray<Shared> => {
  switch (part.type) {
    case "tool-call": {
      const name = names.get(part.toolName)
      // The guard passes on a call of an unknown tool; here it would fail the decoding of the stream.
      if (name === undefined) return []
      return [
        {
          type: "tool-call",
          id: part.toolCallId,
          name,
          params: parseOrText(part.input),
          providerExecuted: part.providerExecuted ?? false,
          ...meta(part)
        }
      ]
    }
    case "tool-result": {
      const name = names.get(part.toolName)
      if (name === undefined || part.preliminary === true) return []
      return [
        {
          type: "tool-result",
          id: part.toolCallId,
          name,
          result: part.result,
          isFailure: part.isError ?? false,
          providerExecuted: true,
          ...meta(part)
        }
      ]
    }
    case "file": {
      const data = Predicate.isString(part.data) ? part.data : Buffer.from(part.data).toString("base64")
      return [{ type: "file", mediaType: part.mediaType, data, ...meta(part) }]
    }
    case "source":
      return part.sourceType === "url"
        ? [
            {
              type: "source",
              sourceType: "url",
              id: part.id,
              url: part.url,
              title: part.title ?? part.url,
              ...meta(part)
            }
          ]
        : [
            {
              type: "source",
              sourceType: "document",
              id: part.id,
              mediaType: part.mediaType,
              title: part.title,
              ...(part.filename === undefined ? {} : { fileName: part.filename }),
              ...meta(part)
            }
          ]
    case "tool-approval-request":
      return []
  }
}

const meta = (part: { readonly providerMetadata?: Record<string, Record<string, unknown>> | undefined }) =>
  part.providerMetadata === undefined ? {} : { metadata: part.providerMetadata }

const metadataOf = (part: {
  readonly id?: string | undefined
  readonly modelId?: string | undefined
  readonly timestamp?: Date | undefined
}) => ({
  ...(part.id === undefined ? {} : { id: part.id }),
  ...(part.modelId === undefined ? {} : { modelId: part.modelId }),
  ...(part.timestamp === undefined || Number.isNaN(part.timestamp.getTime())
    ? {}
    : { timestamp: part.timestamp.toISOString() })
})

const finishPart = (
  reason: LanguageModelV3FinishReason,
  usage: LanguageModelV3Usage,
  providerMetadata: Record<string, Record<string, unknown>> | undefined
): Response.FinishPartEncoded => {
  const { inputTokens, outputTokens } = usage
  const written = inputTokens.cacheWrite ?? 0
  return {
    type: "finish",
    reason: reason.unified,
    usage: {
      inputTokens: inputTokens.total,
      outputTokens: outputTokens.total,
      totalTokens:
        inputTokens.total === undefined && outputTokens.total === undefined
          ? undefined
          : (inputTokens.total ?? 0) + (outputTokens.total ?? 0),
      ...(outputTokens.reasoning === undefined ? {} : { reasoningTokens: outputTokens.reasoning }),
      ...(inputTokens.cacheRead === undefined ? {} : { cachedInputTokens: inputTokens.cacheRead })
    },
    metadata: {
      ...providerMetadata,
      ...(written === 0 ? {} : { daybook: { cacheWriteTokens: written } })
    }
  }
}

/** An AI SDK failure as an AiError; an answer with a status keeps status, headers and body. */
const toAiError = (model: LanguageModelV3, method: string, cause: unknown): AiError.AiError => {
  if (AiError.isAiError(cause)) return cause
  const refused = refusalIn(cause)
  if (refused !== undefined) return refusedError(model.provider, refused)
  const at = { module: model.provider, method }
  if (!Predicate.isRecord(cause) || !Predicate.isString(cause["url"])) {
    return new AiError.UnknownError({
      ...at,
      description: cause instanceof Error ? cause.message : String(cause),
      cause
    })
  }
  const request = { method: "POST" as const, url: cause["url"], urlParams: [], hash: Option.none(), headers: {} }
  const status = cause["statusCode"]
  if (!Predicate.isNumber(status)) {
    return new AiError.HttpRequestError({
      ...at,
      reason: "Transport",
      request,
      description: String(cause["message"]),
      cause
    })
  }
  const headers = Predicate.isRecord(cause["responseHeaders"]) ? cause["responseHeaders"] : {}
  return new AiError.HttpResponseError({
    ...at,
    reason: status >= 400 ? "StatusCode" : "Decode",
    request,
    response: {
      status,
      headers: Object.fromEntries(
        Object.entries(headers).filter((entry): entry is [string, string] => Predicate.isString(entry[1]))
      )
    },
    description: String(cause["message"]),
    ...(Predicate.isString(cause["responseBody"]) ? { body: cause["responseBody"] } : {})
  })
}

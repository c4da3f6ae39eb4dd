/**
 * Recovers calls of tools that were not offered. `@effect/ai` rejects such a part and ends the stream. Its error holds
 * the rejected parts, so that the call can be settled with an error for the model to read (TO-3).
 */
import * as AiError from "@effect/ai/AiError"
import * as Response from "@effect/ai/Response"
import { Chunk, Option, ParseResult, Predicate, Schema } from "effect"
import type { StreamPart } from "../model/StreamPart.ts"

type EncodedPart = Response.AllPartsEncoded

/** The rejected parts. The provider's adapter encoded them, so they are well-formed; only a tool's name is unknown. */
const refusedParts = (error: unknown): ReadonlyArray<EncodedPart> => {
  if (!(error instanceof AiError.MalformedOutput) || !ParseResult.isParseError(error.cause)) return []
  const { actual } = error.cause.issue
  if (!Chunk.isChunk(actual)) return []
  return Chunk.toReadonlyArray(actual).filter(
    (part): part is EncodedPart => Predicate.hasProperty(part, "type") && typeof part.type === "string"
  )
}

/** Decodes a part as the library would: fills in absent metadata and keeps a result in its encoded form. */
const decoded = (part: EncodedPart): StreamPart | undefined => {
  switch (part.type) {
    case "finish":
      return Option.getOrUndefined(Schema.decodeUnknownOption(Response.FinishPart)(part))
    case "response-metadata":
      return undefined
    case "tool-result":
      // The library ties a result's type to the toolkit, which does not know this tool.
      return { ...part, encodedResult: part.result, metadata: part.metadata ?? {} } as unknown as StreamPart
    default:
      return { ...part, metadata: part.metadata ?? {} } as StreamPart
  }
}

/** The parts that ended a stream because of a call to an unknown tool; empty for any other failure. */
export const unknownToolParts = (error: unknown, offered: ReadonlySet<string>): ReadonlyArray<StreamPart> => {
  const parts = refusedParts(error)
  const unknown = parts.some(
    (part) => part.type === "tool-call" && part.providerExecuted !== true && !offered.has(part.name)
  )
  return unknown ? parts.map(decoded).filter(Predicate.isNotUndefined) : []
}

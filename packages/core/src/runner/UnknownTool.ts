/**
 * A model may call a tool that was not offered. `@effect/ai` refuses such a part and ends the stream; the parts it
 * refused are in its error, so that the call can still be settled with an error for the model to read (TO-3).
 */
import { AiError, type Response } from "@effect/ai"
import { Chunk, ParseResult, Predicate } from "effect"
import type { StreamPart } from "./TurnRecorder.ts"

type EncodedPart = Response.AllPartsEncoded

/** The refused parts; they were encoded by the provider's adapter and are its own, only a tool's name is unknown. */
const refusedParts = (error: unknown): ReadonlyArray<EncodedPart> => {
  if (!(error instanceof AiError.MalformedOutput) || !ParseResult.isParseError(error.cause)) return []
  const { actual } = error.cause.issue
  if (!Chunk.isChunk(actual)) return []
  return Chunk.toReadonlyArray(actual).filter(
    (part): part is EncodedPart => Predicate.hasProperty(part, "type") && typeof part.type === "string"
  )
}

/**
 * The parts that a stream ended with because of a call to an unknown tool; empty for any other failure. Their absent
 * metadata is filled in, as decoding would have done.
 */
export const unknownToolParts = (error: unknown, offered: ReadonlySet<string>): ReadonlyArray<StreamPart> => {
  const parts = refusedParts(error)
  const unknown = parts.some(
    (part) => part.type === "tool-call" && part.providerExecuted !== true && !offered.has(part.name)
  )
  return unknown
    ? parts
        .filter(({ type }) => type !== "finish" && type !== "response-metadata" && type !== "tool-result")
        .map((part) => ({ ...part, metadata: part.metadata ?? {} }) as StreamPart)
    : []
}

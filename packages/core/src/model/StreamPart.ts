/** Defines the parts of a provider's answer. */
import type * as Response from "@effect/ai/Response"

/** A part of the provider's stream with untyped tools. */
export type StreamPart = Response.AnyPart

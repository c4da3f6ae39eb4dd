/** The frames of a stream of events, as server-sent events or as lines of JSON. Pure. Spec: HT-44..HT-50. */
import { Schema, SchemaAST } from "effect"
import { Input as LogInput, Message as LogMessage, Session as LogSession } from "@daybook/log/domain/Message"
import * as Events from "@daybook/log/events/SessionEvents"

// The schemas of the log with names, so that `/openapi.json` describes each schema once.

export const Session = LogSession.annotations({ identifier: "Session" })
export const Message = LogMessage.annotations({ identifier: "Message" })
export const Input = LogInput.annotations({ identifier: "Input" })

const name = (identifier: string) => ({ [SchemaAST.IdentifierAnnotationId]: identifier })

type Definition = { readonly type: string; readonly event: Schema.Schema.Any }

const union = <A, I>(identifier: string, definitions: ReadonlyArray<Definition>): Schema.Schema<A, I> => {
  const members = definitions.map(({ event, type }) => SchemaAST.annotations(event.ast, name(type)))
  return Schema.make(SchemaAST.annotations(SchemaAST.Union.make(members), name(identifier)))
}

/** A stored event; each type has its own name. */
export const SessionEvent = union<Events.SessionEvent, typeof Events.SessionEvent.Encoded>(
  "SessionEvent",
  Events.durableDefinitions
)

const LiveEvent = union<Events.LiveEvent, typeof Events.LiveEvent.Encoded>("LiveEvent", Events.liveDefinitions)

/** The media types of a stream; a client chooses with `accept`. */
export const mediaTypes = { sse: "text/event-stream", ndjson: "application/x-ndjson" } as const

/**
 * Why a stream ends. After `draining`, connect again with the cursor; after `unauthorized`, with another token, since that of
 * the stream has ended. `complete`: the replay has ended, and was not followed.
 */
export const EndReason = Schema.Literal("complete", "draining", "unauthorized", "removed", "expired", "failed")
export type EndReason = typeof EndReason.Type

/** The data of the last frame of a stream. A stream that ends without it was cut off. */
export const End = Schema.Struct({
  reason: EndReason,
  /** Continue after it; absent if the stream cannot be continued. */
  cursor: Schema.optionalWith(Schema.String, { exact: true }),
  /** The error of `unauthorized`, `removed`, `expired` and `failed`, as its endpoint returns it. */
  error: Schema.optionalWith(Schema.Unknown, { exact: true })
})
export type End = typeof End.Type

/** Where stored events end and new ones begin: once a stream. */
export const Seam = Schema.Struct({ cursor: Schema.String })
export type Seam = typeof Seam.Type

export const Frame = Schema.Union(
  Schema.Struct({ frame: Schema.Literal("event"), cursor: Schema.String, event: SessionEvent }),
  Schema.Struct({ frame: Schema.Literal("replay.complete"), ...Seam.fields }),
  Schema.Struct({ frame: Schema.Literal("live"), live: LiveEvent }),
  Schema.Struct({ frame: Schema.Literal("end"), ...End.fields })
)
export type Frame = typeof Frame.Type

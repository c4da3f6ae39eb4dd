/**
 * Defines event types: a name, a version if durable, the payload's schema, and the schema of the whole event. The schemas
 * are built on first use: building all of them at import would take longer than reading a few events. Spec: EV-D1..EV-D4.
 */
import { Schema } from "effect"
import { EventID, MessageID, SessionID } from "../domain/Identifiers.ts"
import { Tokens } from "../domain/Values.ts"
import { once } from "../support/Once.ts"
import { optional } from "../support/Optional.ts"

// Fields that events of several families share.

export const assistantMessageID = MessageID
export const callID = Schema.NonEmptyString
export const paths = Schema.Array(Schema.String)
/** The token counts are Daybook's estimate, not the provider's. */
export const estimated = optional(Schema.Literal(true))
/** Cost and tokens of requests. */
export const spent = { cost: optional(Schema.Finite), tokens: optional(Tokens), estimated }

const envelope = {
  position: Schema.Int,
  /** Sequence number in the session, contiguous from 0; the value of a cursor. */
  seq: Schema.Int,
  id: EventID,
  sessionID: SessionID,
  version: Schema.Int,
  /** Milliseconds since the epoch. */
  created: Schema.Int
}

/** The fields of every durable event except its type and payload. */
export const Envelope = Schema.Struct(envelope)
export type Envelope = typeof Envelope.Type

/**
 * What the events of a type are about. A fold ignores events by family, so it has a case only for a type that it reads:
 * `about` the session and its settings, `prompts` and the inbox, activities and their `steps`, what `requests` contain
 * besides prompts, the `texts` of answers, `calls` of tools and commands of the host, `compactions` and edits of the
 * context, the `tree` of messages with its forks and files, `decisions` of people, and live `shells`.
 */
export type Family =
  "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"

/** Defines a durable event type, stored as `<type>.<version>`. A shape that old readers misread gets a new version. */
export const durable = <const Of extends Family, const Type extends string, Fields extends Schema.Struct.Fields>(
  family: Of,
  type: Type,
  version: number,
  fields: Fields
) => {
  const data = once(() => Schema.Struct(fields))
  const event = once(() => {
    const current: Schema.Schema<number> = Schema.Literal(version)
    return Schema.Struct({ ...envelope, version: current, type: Schema.Literal(type), data: data() })
  })
  return {
    family,
    type,
    version,
    get data() {
      return data()
    },
    /** The event as readers get it; another version does not decode. */
    get event() {
      return event()
    }
  }
}

/** Defines a live event type: sent to connected subscribers only, never stored, without sequence number or version. */
export const live = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) => {
  const data = Schema.Struct(fields)
  return { type, data, event: Schema.Struct({ sessionID: SessionID, type: Schema.Literal(type), data }) }
}

/**
 * Defines event types: a name, a version if durable, the payload's schema, and the schema of the whole event. The schemas
 * are built on first use: building all of them at import would take longer than reading a few events. Spec: EV-D1..EV-D4.
 */
import { Schema } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import { once } from "../support/Once.ts"

const envelope = {
  /** Position in the order of all sessions: starts at 1, grows, is never reused. */
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

/** A durable event type, stored as `<type>.<version>`. */
export type Durable<Type extends string, Fields extends Schema.Struct.Fields> = ReturnType<typeof durable<Type, Fields>>

/** A live event type: sent to connected subscribers only, never stored, without sequence number or version. */
export type Live<Type extends string, Fields extends Schema.Struct.Fields> = ReturnType<typeof live<Type, Fields>>

/** Defines a durable event type. Raise `version` when a reader of the old shape would misread the new one. */
export const durable = <const Type extends string, Fields extends Schema.Struct.Fields>(
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

/** Defines a live event type. */
export const live = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) => {
  const data = Schema.Struct(fields)
  return { type, data, event: Schema.Struct({ sessionID: SessionID, type: Schema.Literal(type), data }) }
}

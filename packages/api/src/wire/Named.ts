/**
 * The schemas of the log that many endpoints share, with names: `/openapi.json` describes each once and refers to it. Their
 * values are those of the log.
 */
import { Schema, SchemaAST } from "effect"
import * as Log from "@daybook/log/domain/Message"
import * as Events from "@daybook/log/events/SessionEvents"

export const Session = Log.Session.annotations({ identifier: "Session" })
export const Message = Log.Message.annotations({ identifier: "Message" })
export const Input = Log.Input.annotations({ identifier: "Input" })

const name = (identifier: string) => ({ [SchemaAST.IdentifierAnnotationId]: identifier })

interface Definition {
  readonly type: string
  readonly event: Schema.Schema.Any
}

/** The union of the definitions, each under its type. */
const union = <A, I>(identifier: string, definitions: ReadonlyArray<Definition>): Schema.Schema<A, I> => {
  const members = definitions.map(({ event, type }) => SchemaAST.annotations(event.ast, name(type)))
  return Schema.make(SchemaAST.annotations(SchemaAST.Union.make(members), name(identifier)))
}

/** A stored event; each type has its own name. */
export const SessionEvent = union<Events.SessionEvent, typeof Events.SessionEvent.Encoded>(
  "SessionEvent",
  Events.durableDefinitions
)

/** A live event. */
export const LiveEvent = union<Events.LiveEvent, typeof Events.LiveEvent.Encoded>("LiveEvent", Events.liveDefinitions)

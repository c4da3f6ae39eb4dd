/**
 * Redacts what a document shows. Fails closed: a message that is not a message any more after redaction, or a failure of
 * the redactor, ends the document. Spec: FM-175 in specs/formats.md.
 */
import { Effect, Schema } from "effect"
import { Message, Session } from "@daybook/log/domain/Message"
import type { Json, Redactor } from "@daybook/log/support/Redaction"

/** Secrets could not be removed from a session. The document is incomplete and must not be used. */
export class RedactionFailed extends Schema.TaggedError<RedactionFailed>("@daybook/formats/RedactionFailed")(
  "RedactionFailed",
  { what: Schema.String }
) {
  override get message() {
    return `secrets could not be removed from ${this.what}; nothing was written`
  }
}

const redacted = <A, I>(schema: Schema.Schema<A, I>, what: (value: A) => string) => {
  const encode = Schema.encodeSync(schema)
  const decode = Schema.decodeUnknownSync(schema)
  return (redactor: Redactor, value: A): Effect.Effect<A, RedactionFailed> =>
    Effect.try({
      try: () => {
        const plain: Json = JSON.parse(JSON.stringify(encode(value)))
        return decode(redactor.value(plain))
      },
      catch: () => new RedactionFailed({ what: what(value) })
    })
}

const messageWithout = redacted(Message, ({ id }) => `message ${id}`)

export const redactedMessage = (redactor: Redactor) => (message: Message) => messageWithout(redactor, message)

export const redactedSession = redacted(Session, ({ id }) => `session ${id}`)

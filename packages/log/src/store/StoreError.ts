/** Defines the errors of reading sessions and messages. */
import { Schema } from "effect"
import { LogUnavailable } from "../log/EventLog.ts"

/** A stored message does not decode. The row stays unchanged. */
export class MessageUnreadable extends Schema.TaggedError<MessageUnreadable>("@daybook/log/MessageUnreadable")(
  "MessageUnreadable",
  { sessionID: Schema.String, messageID: Schema.String, details: Schema.String }
) {
  override get message() {
    return `${this.messageID} of ${this.sessionID} cannot be read: ${this.details}`
  }
}

export { SessionNotFound } from "../log/EventLog.ts"

/** A failed read: the database, or one of its rows. */
export const StoreError = Schema.Union(LogUnavailable, MessageUnreadable)
export type StoreError = typeof StoreError.Type

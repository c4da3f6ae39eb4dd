/** What reading sessions and messages can fail with. */
import { Schema } from "effect"
import type { LogUnavailable } from "../log/EventLog.ts"

/** A stored message does not decode. The row is left as it is. */
export class MessageUnreadable extends Schema.TaggedError<MessageUnreadable>("@daybook/core/MessageUnreadable")(
  "MessageUnreadable",
  { sessionID: Schema.String, messageID: Schema.String, details: Schema.String }
) {
  override get message() {
    return `${this.messageID} of ${this.sessionID} cannot be read: ${this.details}`
  }
}

export { SessionNotFound } from "../log/EventLog.ts"

/** A read that failed: the database, or one of its rows. */
export type StoreError = LogUnavailable | MessageUnreadable

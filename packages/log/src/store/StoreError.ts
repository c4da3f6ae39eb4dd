/** Defines the errors of reading sessions and messages. */
import { Schema } from "effect"
import { LogUnavailable } from "../log/EventLog.ts"
import { ErrorClass } from "../support/ErrorClass.ts"

/** A stored message does not decode. The row stays unchanged. */
export class MessageUnreadable extends ErrorClass<MessageUnreadable>("log")("MessageUnreadable")(
  { sessionID: Schema.String, messageID: Schema.String, details: Schema.String },
  ({ details, messageID, sessionID }) => `${messageID} of ${sessionID} cannot be read: ${details}`
) {}

export { SessionNotFound } from "../log/EventLog.ts"

/** A failed read: the database, or one of its rows. */
export const StoreError = Schema.Union(LogUnavailable, MessageUnreadable)
export type StoreError = typeof StoreError.Type

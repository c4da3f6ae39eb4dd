/** Defines the errors of the durable inbox. Spec: IB-20..IB-43 in specs/sessions.md. */
import { Schema } from "effect"
import { MessageID, SessionID } from "./Identifiers.ts"

/** The message id belongs to another session, prompt or delivery, or to a message (IN-5, IN-6). */
export class PromptConflictError extends Schema.TaggedError<PromptConflictError>("@daybook/log/PromptConflictError")(
  "PromptConflictError",
  { sessionID: SessionID, messageID: MessageID }
) {
  override get message() {
    return `${this.messageID} is taken by another prompt or message; use a new id, or repeat the prompt exactly`
  }
}

/** The inbox is full (IN-12). Nothing was admitted. */
export class InboxFullError extends Schema.TaggedError<InboxFullError>("@daybook/log/InboxFullError")(
  "InboxFullError",
  { sessionID: SessionID, limit: Schema.Int }
) {
  override get message() {
    return `${this.sessionID} has ${this.limit} inputs waiting already; let it work, then try again`
  }
}

/** The prompt is no longer in the inbox: it was promoted or withdrawn. */
export class NotWaiting extends Schema.TaggedError<NotWaiting>("@daybook/log/NotWaiting")("NotWaiting", {
  sessionID: SessionID,
  messageID: Schema.String
}) {
  override get message() {
    return `${this.messageID} does not wait in the inbox of ${this.sessionID}`
  }
}

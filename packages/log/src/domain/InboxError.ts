/** Defines the errors of the durable inbox. Spec: IB-20..IB-43 in specs/sessions.md. */
import { Schema } from "effect"
import { ErrorClass } from "../support/ErrorClass.ts"
import { MessageID, SessionID } from "./Identifiers.ts"

/** The message id belongs to another session, prompt or delivery, or to a message (IN-5, IN-6). */
export class PromptConflictError extends ErrorClass<PromptConflictError>("log")("PromptConflictError")(
  { sessionID: SessionID, messageID: MessageID },
  ({ messageID }) => `${messageID} is taken by another prompt or message; use a new id, or repeat the prompt exactly`
) {}

/** The inbox is full (IN-12). Nothing was admitted. */
export class InboxFullError extends ErrorClass<InboxFullError>("log")("InboxFullError")(
  { sessionID: SessionID, limit: Schema.Int },
  ({ limit, sessionID }) => `${sessionID} has ${limit} inputs waiting already; let it work, then try again`
) {}

/** The prompt is no longer in the inbox: it was promoted or withdrawn. */
export class NotWaiting extends ErrorClass<NotWaiting>("log")("NotWaiting")(
  { sessionID: SessionID, messageID: Schema.String },
  ({ messageID, sessionID }) => `${messageID} does not wait in the inbox of ${sessionID}`
) {}

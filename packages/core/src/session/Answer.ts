/** Defines the answer to a prompt, and why there is none. Spec: IB-50..IB-56 in specs/sessions.md. */
import { Schema } from "effect"
import { ActivityID, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AssistantMessage } from "@daybook/log/domain/Message"
import { JsonRecord, StoredError } from "@daybook/log/domain/Values"
import { ErrorClass } from "@daybook/log/support/ErrorClass"
import { optional } from "@daybook/log/support/Optional"

/** The settled answer to a prompt: the same whenever it is asked for again. */
export const Answer = Schema.Struct({
  /** The prompt. */
  messageID: MessageID,
  /** The activity that answered it. */
  activityID: ActivityID,
  /** The text of the answer: the last one of the activity; empty if the model wrote none. */
  text: Schema.String,
  /** The structured answer, if one was requested. */
  output: optional(JsonRecord),
  /** The message with the text, or with the structured answer. */
  message: optional(AssistantMessage),
  /** What the answer lacks, if it is not whole: it was cut, filtered, refused or empty (IB-620). */
  error: optional(StoredError)
})
export type Answer = typeof Answer.Type

/** The prompt has no answer: its activity failed (`error`), it was withdrawn, or nothing runs it. */
export class PromptUnanswered extends ErrorClass<PromptUnanswered>("core")("PromptUnanswered")(
  {
    sessionID: SessionID,
    messageID: MessageID,
    reason: Schema.Literal("failed", "interrupted", "withdrawn", "waiting"),
    activityID: optional(ActivityID),
    /** The error of the activity; its `type` is the tag of the run's error. */
    error: optional(StoredError)
  },
  ({ error, messageID, reason, sessionID }) => {
    switch (reason) {
      case "failed":
        return `the activity that answered ${messageID} failed: ${error?.message ?? "no reason is recorded"}`
      case "interrupted":
        return `${messageID} was interrupted before it was answered: ${error?.message ?? "by a caller"}`
      case "withdrawn":
        return `${messageID} was withdrawn, so that no model answers it`
      case "waiting":
        return `${messageID} waits in the inbox of ${sessionID} and nothing runs it; ask again to run it`
    }
  }
) {}

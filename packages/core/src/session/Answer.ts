/** Defines the answer to a prompt, and why there is none. Spec: IB-50..IB-56 in specs/sessions.md. */
import { Schema } from "effect"
import { ActivityID, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { AssistantMessage } from "@daybook/log/domain/Message"
import { JsonRecord, StoredError } from "@daybook/log/domain/Values"
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
export class PromptUnanswered extends Schema.TaggedError<PromptUnanswered>("@daybook/core/PromptUnanswered")(
  "PromptUnanswered",
  {
    sessionID: SessionID,
    messageID: MessageID,
    reason: Schema.Literal("failed", "interrupted", "withdrawn", "waiting"),
    activityID: optional(ActivityID),
    /** The error of the activity; its `type` is the tag of the run's error. */
    error: optional(StoredError)
  }
) {
  override get message() {
    switch (this.reason) {
      case "failed":
        return `the activity that answered ${this.messageID} failed: ${this.error?.message ?? "no reason is recorded"}`
      case "interrupted":
        return `${this.messageID} was interrupted before it was answered: ${this.error?.message ?? "by a caller"}`
      case "withdrawn":
        return `${this.messageID} was withdrawn, so that no model answers it`
      case "waiting":
        return `${this.messageID} waits in the inbox of ${this.sessionID} and nothing runs it; ask again to run it`
    }
  }
}

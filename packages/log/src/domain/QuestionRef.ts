/** Names a question that a model asks a person, and the error of one that is closed. Spec: TO-81..TO-86. */
import { Schema } from "effect"
import { MessageID, SessionID } from "./Identifiers.ts"

/** The `question` call that an answer is for. `messageID` is the assistant message that made the call. */
export const QuestionRef = Schema.Struct({ sessionID: SessionID, messageID: MessageID, callID: Schema.NonEmptyString })
export type QuestionRef = typeof QuestionRef.Type

/** The question is not open: it was answered or dismissed, its call has ended, or it was never asked. */
export class QuestionClosed extends Schema.TaggedError<QuestionClosed>("@daybook/log/QuestionClosed")(
  "QuestionClosed",
  { sessionID: SessionID, messageID: MessageID, callID: Schema.String }
) {
  override get message() {
    return `${this.sessionID} has no open question ${this.callID} in ${this.messageID}: it was answered, dismissed or has ended`
  }
}

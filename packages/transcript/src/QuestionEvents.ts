/** Finds the events that open or close a question of the model. Pure. Spec: SO-95 in specs/socket.md. */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { EventIn, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"

export interface QuestionChange {
  /** The model asked; a person answered or dismissed the question; a call ended, whether it asked or not. */
  readonly type: "asked" | "answered" | "dismissed" | "ended"
  readonly messageID: MessageID
  readonly callID: string
}

const change = (
  type: QuestionChange["type"],
  { data }: { readonly data: { readonly assistantMessageID: MessageID; readonly callID: string } }
): QuestionChange => ({ type, messageID: data.assistantMessageID, callID: data.callID })

/** How the event affects a question; undefined for every other event. */
export const questionChange = (event: SessionEvent | LiveEvent): QuestionChange | undefined => {
  switch (event.type) {
    case "session.next.tool.called":
      return event.data.tool === "question" ? change("asked", event) : undefined
    case "session.next.question.answered":
      return change("answered", event)
    case "session.next.question.dismissed":
      return change("dismissed", event)
    case "session.next.tool.success":
    case "session.next.tool.failed":
      return change("ended", event)
    default:
      event satisfies
        | EventIn<
            | "about"
            | "prompts"
            | "steps"
            | "requests"
            | "texts"
            | "calls"
            | "compactions"
            | "tree"
            | "decisions"
            | "shells"
          >
        | LiveEvent
      return undefined
  }
}

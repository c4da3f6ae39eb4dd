/** Finds the events that open or close a question of the model. Pure. Spec: SO-95 in specs/socket.md. */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"

/** How an event affects a call that asks a question. */
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
    case "session.created":
    case "session.next.addressed":
    case "session.next.agent.switched":
    case "session.next.model.switched":
    case "session.next.moved":
    case "session.next.renamed":
    case "session.next.prompted":
    case "session.next.prompt.admitted":
    case "session.next.prompt.promoted":
    case "session.next.prompt.withdrawn":
    case "session.next.interrupt.requested":
    case "session.next.activity.started":
    case "session.next.activity.settled":
    case "session.next.request.framed":
    case "session.next.instructions.discovered":
    case "session.next.context.updated":
    case "session.next.synthetic":
    case "session.next.shell.started":
    case "session.next.shell.ended":
    case "session.next.step.started":
    case "session.next.step.ended":
    case "session.next.step.failed":
    case "session.next.text.started":
    case "session.next.text.ended":
    case "session.next.reasoning.started":
    case "session.next.reasoning.ended":
    case "session.next.tool.input.started":
    case "session.next.tool.input.ended":
    case "session.next.tool.progress":
    case "session.next.retried":
    case "session.next.compaction.started":
    case "session.next.compaction.requested":
    case "session.next.compaction.ended":
    case "session.next.compaction.failed":
    case "session.next.context.pruned":
    case "session.next.context.edited":
    case "session.next.part.withheld":
    case "session.next.leaf.moved":
    case "session.next.branch.summarized":
    case "session.next.labeled":
    case "session.next.forked":
    case "session.next.files.changed":
    case "session.next.files.restored":
    case "session.next.permission.decided":
    case "session.next.permission.revoked":
    case "session.next.budget.set":
    case "session.next.imported":
    case "session.next.shell.opened":
    case "session.next.shell.executed":
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
    case "session.next.text.delta":
    case "session.next.reasoning.delta":
    case "session.next.tool.input.delta":
    case "session.next.compaction.delta":
      return undefined
    default:
      return event satisfies never
  }
}

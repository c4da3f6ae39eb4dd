/**
 * Repeats the events of a session's history in a fork: with new message ids, and without what belongs to the session alone
 * (its place, its runs, its requests, decisions of a person). Pure. `Forking.ts` reads and appends. Spec: HP-30 to HP-33.
 */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import { type Draft, draft, type SessionEvent } from "@daybook/log/events/SessionEvents"

/** How ids and sequence numbers of the source read in the fork. */
export interface Renaming {
  /** The new id of a message of the history; undefined for a message that the fork does not have. */
  readonly message: (id: MessageID) => MessageID | undefined
  /** The new sequence number of the first repeated event at or after this one. */
  readonly seq: (seq: number) => number | undefined
}

/** The message that the event makes or belongs to; undefined for an event without one. */
export const messageOf = (event: SessionEvent, shells: ReadonlyMap<string, MessageID>): MessageID | undefined => {
  const { data } = event
  if ("assistantMessageID" in data) return data.assistantMessageID
  if ("messageID" in data && event.type !== "session.next.leaf.moved" && event.type !== "session.next.forked") {
    return data.messageID
  }
  return event.type === "session.next.shell.ended" ? shells.get(event.data.callID) : undefined
}

/** The event in the fork; undefined if the fork does not repeat it. */
export const repeated = (event: SessionEvent, { message, seq }: Renaming): Draft | undefined => {
  const inMessage = <Data extends { readonly messageID: MessageID }>({ messageID, ...data }: Data) => {
    const id = message(messageID)
    return id && { ...data, messageID: id }
  }
  const inStep = <Data extends { readonly assistantMessageID: MessageID }>({ assistantMessageID, ...data }: Data) => {
    const id = message(assistantMessageID)
    return id && { ...data, assistantMessageID: id }
  }
  switch (event.type) {
    case "session.next.agent.switched":
    case "session.next.model.switched":
    case "session.next.prompted":
    case "session.next.prompt.admitted":
    case "session.next.prompt.promoted":
    case "session.next.context.updated":
    case "session.next.synthetic":
    case "session.next.shell.started":
    case "session.next.branch.summarized":
    case "session.next.context.edited":
    case "session.next.part.withheld": {
      const data = inMessage(event.data)
      // The spread keeps the payload of the event's own type.
      return data && ({ type: event.type, data } as Draft)
    }
    case "session.next.step.started":
    case "session.next.step.ended":
    case "session.next.step.failed":
    case "session.next.text.started":
    case "session.next.text.ended":
    case "session.next.reasoning.started":
    case "session.next.reasoning.ended":
    case "session.next.tool.input.started":
    case "session.next.tool.input.ended":
    case "session.next.tool.called":
    case "session.next.tool.success":
    case "session.next.tool.failed": {
      const data = inStep(event.data)
      return data && ({ type: event.type, data } as Draft)
    }
    case "session.next.compaction.ended": {
      const { firstKeptSeq, keptSeq, ...rest } = event.data
      const data = inMessage(rest)
      const [first, kept] = [firstKeptSeq, keptSeq].map((each) => (each === undefined ? undefined : seq(each)))
      return (
        data &&
        draft("session.next.compaction.ended", {
          ...data,
          ...(first === undefined ? {} : { firstKeptSeq: first }),
          ...(kept === undefined ? {} : { keptSeq: kept })
        })
      )
    }
    case "session.next.shell.ended":
      return draft("session.next.shell.ended", event.data)
    case "session.next.instructions.discovered":
      return draft("session.next.instructions.discovered", event.data)
    case "session.created":
    case "session.next.addressed":
    case "session.next.moved":
    case "session.next.renamed":
    case "session.next.prompt.withdrawn":
    case "session.next.interrupt.requested":
    case "session.next.activity.started":
    case "session.next.activity.settled":
    case "session.next.request.framed":
    case "session.next.tool.progress":
    case "session.next.retried":
    case "session.next.compaction.requested":
    case "session.next.compaction.started":
    case "session.next.compaction.failed":
    case "session.next.context.pruned":
    case "session.next.leaf.moved":
    case "session.next.labeled":
    case "session.next.forked":
    case "session.next.files.changed":
    case "session.next.files.restored":
    case "session.next.question.answered":
    case "session.next.question.dismissed":
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
      return undefined
    default:
      return event satisfies never
  }
}

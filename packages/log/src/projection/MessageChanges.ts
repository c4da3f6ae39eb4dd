/** The changes to `session_message`: one row per message. Pure. */
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import { plain } from "./Columns.ts"
import type { MessageRow } from "./Tables.ts"

const message = (event: SessionEvent, id: string, type: string, row: Partial<MessageRow> = {}): Change => ({
  op: "insert",
  table: "session_message",
  row: {
    id,
    session_id: event.sessionID,
    seq: event.seq,
    type,
    call_id: null,
    first_kept: null,
    all_kept: null,
    settled: null,
    time_created: event.created,
    ...row
  }
})

export const agentSwitched = (event: EventOfType<"session.next.agent.switched">): Change =>
  message(event, event.data.messageID, "agent-switched")

export const modelSwitched = (event: EventOfType<"session.next.model.switched">): Change =>
  message(event, event.data.messageID, "model-switched")

export const prompted = (event: EventOfType<"session.next.prompted">): Change =>
  message(event, event.data.messageID, "user")

export const promoted = (event: EventOfType<"session.next.prompt.promoted">): Change =>
  message(event, event.data.messageID, "user", { time_created: event.data.timeCreated })

export const contextUpdated = (event: EventOfType<"session.next.context.updated">): Change =>
  message(event, event.data.messageID, "system")

export const synthetic = (event: EventOfType<"session.next.synthetic">): Change =>
  message(event, event.data.messageID, "synthetic")

export const shellStarted = (event: EventOfType<"session.next.shell.started">): Change =>
  message(event, event.data.messageID, "shell", { call_id: plain(event.data.callID) })

export const stepStarted = (event: EventOfType<"session.next.step.started">): Change =>
  message(event, event.data.assistantMessageID, "assistant")

export const branchSummarized = (event: EventOfType<"session.next.branch.summarized">): Change =>
  message(event, event.data.messageID, "branch-summary")

type Ended = EventOfType<"session.next.step.ended" | "session.next.step.failed">

export const stepSettled = (event: Ended): Change => ({
  op: "update",
  table: "session_message",
  key: { id: event.data.assistantMessageID, session_id: event.sessionID },
  set: { settled: event.seq }
})

export const compactionEnded = (event: EventOfType<"session.next.compaction.ended">): Change =>
  message(event, event.data.messageID, "compaction", {
    first_kept: event.data.firstKeptSeq ?? null,
    all_kept: event.data.keptSeq ?? null
  })

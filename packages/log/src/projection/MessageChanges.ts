/** The changes to the tables of a session's messages, parts, inputs, instructions, leaf and labels. Pure. */
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, plain, plainOrNull } from "./Change.ts"
import type { InputRow, MessageRow, PartRow } from "./Tables.ts"

// The changes to `session_part`: one row per part of an answer, shell output, or edit for the model. A shell's output
// has its call id as message id, because the event that ends it names no message.

type PartKind = "text" | "reasoning" | "tool" | "shell" | "edit"

export const partOpened = (
  event: SessionEvent,
  messageID: string,
  kind: PartKind,
  key: string,
  row: Partial<PartRow> = {}
): Change => ({
  op: "insert",
  table: "session_part",
  row: {
    session_id: event.sessionID,
    message_id: plain(messageID),
    kind,
    key: plain(key),
    seq: event.seq,
    name: null,
    status: "pending",
    opened: null,
    raw: null,
    called: null,
    progress: null,
    settled: null,
    time_created: event.created,
    ...row
  }
})

export const partUpdated = (
  event: SessionEvent,
  messageID: string,
  kind: PartKind,
  key: string,
  set: Partial<PartRow>
): Change => ({
  op: "update",
  table: "session_part",
  key: { message_id: plain(messageID), kind, key: plain(key), session_id: event.sessionID },
  set
})

export const settled = (event: SessionEvent, status: "completed" | "error" = "completed") => ({
  status,
  settled: event.seq
})

type ToolEvent = Extract<SessionEvent, { readonly type: `session.next.tool.${string}` }>

export const toolUpdated = (event: ToolEvent, set: Partial<PartRow>): Change =>
  partUpdated(event, event.data.assistantMessageID, "tool", event.data.callID, set)

/**
 * An edit of the context is a part of the message that it edits, on the branch where it was made. A withheld part is an edit
 * too: both change what the model is shown of a message.
 */
export const edited = (event: EventOfType<"session.next.context.edited" | "session.next.part.withheld">): Change =>
  partOpened(event, event.data.messageID, "edit", String(event.seq), { status: "completed", settled: event.seq })

// The changes to `session_instruction`: events that report instruction files.

export const discovered = (event: EventOfType<"session.next.instructions.discovered">): Change => ({
  op: "insert",
  table: "session_instruction",
  row: { session_id: event.sessionID, seq: event.seq }
})

// The changes to `session_input`, the durable inbox.

/** A new input. `promotedSeq` is null while it waits. */
export const inputAdmitted = (
  event: EventOfType<"session.next.prompt.admitted" | "session.next.prompted">,
  promotedSeq: number | null
): Change => ({
  op: "insert",
  table: "session_input",
  row: {
    id: event.data.messageID,
    session_id: event.sessionID,
    delivery: event.data.delivery,
    admitted_seq: event.seq,
    promoted_seq: promotedSeq,
    withdrawn_seq: null
  }
})

type PromptEnd = EventOfType<"session.next.prompt.promoted" | "session.next.prompt.withdrawn">

export const inputTaken = (event: PromptEnd, set: Partial<InputRow>): Change => ({
  op: "update",
  table: "session_input",
  key: { id: event.data.messageID, session_id: event.sessionID },
  set
})

// The changes to `session_leaf` and `session_label`: moves of the leaf, and labels of messages.

export const leafMoved = (event: EventOfType<"session.next.leaf.moved">): Change => ({
  op: "insert",
  table: "session_leaf",
  row: { session_id: event.sessionID, seq: event.seq, message_id: event.data.messageID ?? null }
})

export const labeled = (event: EventOfType<"session.next.labeled">): Change => ({
  op: "insert",
  table: "session_label",
  row: {
    session_id: event.sessionID,
    seq: event.seq,
    message_id: event.data.messageID,
    label: plainOrNull(event.data.label)
  }
})

export const message = (event: SessionEvent, id: string, type: string, row: Partial<MessageRow> = {}): Change => ({
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

export const stepSettled = (event: EventOfType<"session.next.step.ended" | "session.next.step.failed">): Change => ({
  op: "update",
  table: "session_message",
  key: { id: event.data.assistantMessageID, session_id: event.sessionID },
  set: { settled: event.seq }
})

/** The changes to the tables of a session's messages, parts, inputs, instructions, leaf and labels. Pure. */
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import { type Change, plain, plainOrNull } from "./Change.ts"
import type { InputRow, MessageRow, PartRow } from "./Tables.ts"

// The changes to `session_part`: one row per part of an answer, shell output, or edit for the model. A shell's output
// has its call id as message id, because the event that ends it names no message.

type PartKind = "text" | "reasoning" | "tool" | "shell" | "edit"

const opened = (
  event: SessionEvent,
  messageID: string,
  kind: PartKind,
  key: string,
  row: Partial<PartRow>
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

const updated = (
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

const settled = (event: SessionEvent, status: "completed" | "error" = "completed") => ({ status, settled: event.seq })

export const shellPartStarted = (event: EventOfType<"session.next.shell.started">): Change =>
  opened(event, event.data.callID, "shell", event.data.callID, { status: "running" })

export const shellPartEnded = (event: EventOfType<"session.next.shell.ended">): Change =>
  updated(event, event.data.callID, "shell", event.data.callID, settled(event))

export const textStarted = (event: EventOfType<"session.next.text.started">): Change =>
  opened(event, event.data.assistantMessageID, "text", event.data.textID, {})

export const textEnded = (event: EventOfType<"session.next.text.ended">): Change =>
  updated(event, event.data.assistantMessageID, "text", event.data.textID, settled(event))

export const reasoningStarted = (event: EventOfType<"session.next.reasoning.started">): Change => {
  const { assistantMessageID, providerMetadata, reasoningID } = event.data
  return opened(event, assistantMessageID, "reasoning", reasoningID, {
    opened: providerMetadata === undefined ? null : event.seq
  })
}

export const reasoningEnded = (event: EventOfType<"session.next.reasoning.ended">): Change =>
  updated(event, event.data.assistantMessageID, "reasoning", event.data.reasoningID, settled(event))

type ToolEvent = Extract<SessionEvent, { readonly type: `session.next.tool.${string}` }>

const tool = (event: ToolEvent, set: Partial<PartRow>): Change =>
  updated(event, event.data.assistantMessageID, "tool", event.data.callID, set)

export const toolInputStarted = (event: EventOfType<"session.next.tool.input.started">): Change =>
  opened(event, event.data.assistantMessageID, "tool", event.data.callID, { name: plain(event.data.name) })

export const toolInputEnded = (event: EventOfType<"session.next.tool.input.ended">) => tool(event, { raw: event.seq })

export const toolCalled = (event: EventOfType<"session.next.tool.called">): Change =>
  // The decoded input replaces the raw text.
  tool(event, { status: "running", name: plain(event.data.tool), raw: null, called: event.seq })

export const toolProgress = (event: EventOfType<"session.next.tool.progress">) => tool(event, { progress: event.seq })

export const toolSuccess = (event: EventOfType<"session.next.tool.success">): Change =>
  tool(event, { progress: null, ...settled(event) })

export const toolFailed = (event: EventOfType<"session.next.tool.failed">): Change =>
  tool(event, settled(event, "error"))

const edited = (event: EventOfType<"session.next.context.edited" | "session.next.part.withheld">): Change =>
  opened(event, event.data.messageID, "edit", String(event.seq), { status: "completed", settled: event.seq })

/** An edit of the context is a part of the message that it edits, on the branch where it was made. */
export const contextEdited = (event: EventOfType<"session.next.context.edited">): Change => edited(event)

/** A withheld part is an edit too: both change what the model is shown of a message. */
export const partWithheld = (event: EventOfType<"session.next.part.withheld">): Change => edited(event)

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

const taken = (event: PromptEnd, set: Partial<InputRow>): Change => ({
  op: "update",
  table: "session_input",
  key: { id: event.data.messageID, session_id: event.sessionID },
  set
})

export const inputPromoted = (event: PromptEnd): Change => taken(event, { promoted_seq: event.seq })

/** `promoted_seq` is set once, so only one of promotion and withdrawal succeeds. */
export const inputWithdrawn = (event: PromptEnd) => taken(event, { promoted_seq: event.seq, withdrawn_seq: event.seq })

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

export const prompted = (event: EventOfType<"session.next.prompted">) => message(event, event.data.messageID, "user")

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

export const stepSettled = (event: EventOfType<"session.next.step.ended" | "session.next.step.failed">): Change => ({
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

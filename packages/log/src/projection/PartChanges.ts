/**
 * The changes to `session_part`: one row per text, reasoning or tool part of an assistant message, per shell output, and per
 * edit of a message for the model. A shell's output is a part with its call id as message id, because the event that ends it
 * names no message. Pure.
 */
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import { plain } from "./Columns.ts"
import type { PartRow } from "./Tables.ts"

type Kind = "text" | "reasoning" | "tool" | "shell" | "edit"

const opened = (event: SessionEvent, messageID: string, kind: Kind, key: string, row: Partial<PartRow>): Change => ({
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

const updated = (event: SessionEvent, messageID: string, kind: Kind, key: string, set: Partial<PartRow>): Change => ({
  op: "update",
  table: "session_part",
  key: { message_id: plain(messageID), kind, key: plain(key), session_id: event.sessionID },
  set
})

const settled = (event: SessionEvent, status: "completed" | "error" = "completed") => ({ status, settled: event.seq })

export const shellStarted = (event: EventOfType<"session.next.shell.started">): Change =>
  opened(event, event.data.callID, "shell", event.data.callID, { status: "running" })

export const shellEnded = (event: EventOfType<"session.next.shell.ended">): Change =>
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

export const toolInputEnded = (event: EventOfType<"session.next.tool.input.ended">): Change =>
  tool(event, { raw: event.seq })

export const toolCalled = (event: EventOfType<"session.next.tool.called">): Change =>
  // The decoded input replaces the raw text.
  tool(event, { status: "running", name: plain(event.data.tool), raw: null, called: event.seq })

export const toolProgress = (event: EventOfType<"session.next.tool.progress">): Change =>
  tool(event, { progress: event.seq })

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

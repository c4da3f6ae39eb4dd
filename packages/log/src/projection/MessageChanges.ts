/** The changes to `session_message`: one row per message. Pure. */
import type { EventOfType, SessionEvent } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import { json } from "./Columns.ts"

/** A new message. `data` is its JSON; a user message has none, because the input's row holds its prompt. */
const message = (
  event: SessionEvent,
  id: string,
  type: string,
  data: string | null,
  timeCreated: number = event.created
): Change => ({
  op: "insert",
  table: "session_message",
  row: {
    id,
    session_id: event.sessionID,
    seq: event.seq,
    type,
    data,
    settled: null,
    time_created: timeCreated,
    time_settled: null
  }
})

const settled = (event: SessionEvent, id: string, outcome: unknown): Change => ({
  op: "update",
  table: "session_message",
  key: { id, session_id: event.sessionID },
  set: { settled: json(outcome), time_settled: event.created }
})

export const agentSwitched = (event: EventOfType<"session.next.agent.switched">): Change =>
  message(event, event.data.messageID, "agent-switched", json({ agent: event.data.agent }))

export const modelSwitched = (event: EventOfType<"session.next.model.switched">): Change =>
  message(event, event.data.messageID, "model-switched", json({ model: event.data.model }))

export const prompted = (event: EventOfType<"session.next.prompted">): Change =>
  message(event, event.data.messageID, "user", null)

export const promoted = (event: EventOfType<"session.next.prompt.promoted">): Change =>
  message(event, event.data.messageID, "user", null, event.data.timeCreated)

export const contextUpdated = (event: EventOfType<"session.next.context.updated">): Change =>
  message(event, event.data.messageID, "system", json({ text: event.data.text }))

export const synthetic = (event: EventOfType<"session.next.synthetic">): Change =>
  message(event, event.data.messageID, "synthetic", json({ text: event.data.text }))

export const shellStarted = (event: EventOfType<"session.next.shell.started">): Change => {
  const { callID, command, messageID } = event.data
  return message(event, messageID, "shell", json({ callID, command }))
}

export const stepStarted = (event: EventOfType<"session.next.step.started">): Change => {
  const { assistantMessageID, ...data } = event.data
  return message(event, assistantMessageID, "assistant", json(data))
}

export const stepEnded = (event: EventOfType<"session.next.step.ended">): Change => {
  const { assistantMessageID, ...outcome } = event.data
  return settled(event, assistantMessageID, outcome)
}

export const stepFailed = (event: EventOfType<"session.next.step.failed">): Change => {
  const { assistantMessageID, ...failure } = event.data
  return settled(event, assistantMessageID, { finish: "error", ...failure })
}

export const compactionEnded = (event: EventOfType<"session.next.compaction.ended">): Change => {
  const { cost: _c, estimated: _e, messageID, text, tokens: _t, tokensBefore: _b, ...data } = event.data
  return message(event, messageID, "compaction", json({ ...data, summary: text }))
}

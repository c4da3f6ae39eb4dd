/** The changes to `session_leaf` and `session_label`: moves of the leaf, and labels of messages. Pure. */
import type { EventOfType } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import { plainOrNull } from "./Columns.ts"

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

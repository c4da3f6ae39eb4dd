/** The changes to `session_instruction`: events that report instruction files. Pure. */
import type { EventOfType } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"

export const discovered = (event: EventOfType<"session.next.instructions.discovered">): Change => ({
  op: "insert",
  table: "session_instruction",
  row: { session_id: event.sessionID, seq: event.seq }
})

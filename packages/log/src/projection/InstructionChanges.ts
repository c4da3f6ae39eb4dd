/** The changes to `session_instruction`: instruction files that the session's reads found. Pure. */
import type { EventOfType } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import { json } from "./Columns.ts"

export const discovered = (event: EventOfType<"session.next.instructions.discovered">): Change => ({
  op: "insert",
  table: "session_instruction",
  row: { session_id: event.sessionID, seq: event.seq, paths: json(event.data.paths) }
})

/** The changes to `session_input`, the durable inbox. Pure. */
import type { EventOfType } from "../events/SessionEvents.ts"
import type { Change } from "./Change.ts"
import type { InputRow } from "./Tables.ts"

/** A new input. `promotedSeq` is null while it waits. */
export const admitted = (
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

type Taken = EventOfType<"session.next.prompt.promoted" | "session.next.prompt.withdrawn">

const taken = (event: Taken, set: Partial<InputRow>): Change => ({
  op: "update",
  table: "session_input",
  key: { id: event.data.messageID, session_id: event.sessionID },
  set
})

export const promoted = (event: Taken): Change => taken(event, { promoted_seq: event.seq })

/** `promoted_seq` is set once, so only one of promotion and withdrawal succeeds. */
export const withdrawn = (event: Taken): Change => taken(event, { promoted_seq: event.seq, withdrawn_seq: event.seq })

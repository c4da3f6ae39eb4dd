/**
 * What one event comes to, while it is folded: the state after it, and the rows and bytes that it gives. One value a call
 * of the fold, changed in place inside of it and nowhere else.
 */
import type { SessionEvent } from "@daybook/core"
import { timeText } from "../Layout.ts"
import type { Block, EventRow, MessageRow } from "../Rows.ts"
import type { Blob, Content } from "./Blocks.ts"
import type { State } from "./State.ts"
import type { StoredText } from "./Texts.ts"

/** A block whose text is too long to be remembered. */
export interface LongBlock {
  readonly type: "text"
  readonly text: StoredText
}
type AssistantRow = Extract<MessageRow, { readonly role: "assistant" }>
/** A row of `messages.jsonl`, with the places of its long texts. */
export type FoldedRow =
  | Exclude<MessageRow, AssistantRow>
  | (Omit<AssistantRow, "content"> & { readonly content: ReadonlyArray<Block | LongBlock> })

export interface Out {
  readonly event: SessionEvent
  /** Its own copy: nobody else holds it before the fold returns. */
  readonly state: State
  readonly messages: Array<FoldedRow>
  readonly events: Array<EventRow>
  readonly blobs: Array<Blob>
}

/** Rows of one event, at most: the places between two events' sequence numbers. */
export const rowsPerEvent = 4

export const set = (out: Out, change: Partial<State>): void => {
  Object.assign(out.state, change)
}

/** Where the next event row of this event stands: places depend on nothing but the event. */
export const place = ({ event, events }: Out) => ({
  id: events.length === 0 ? event.id : `${event.id}.${events.length}`,
  seq: rowsPerEvent * event.seq + events.length,
  time: timeText(event.created)
})

/** The run that is open, as a field of a row. */
export const ofRun = ({ state: { run } }: Out) => (run === undefined ? {} : { run: run.id })

/** The blocks, with their bytes noted. */
export const blocksOf = (out: Out, { blobs, blocks }: Content): Content["blocks"] => {
  out.blobs.push(...blobs)
  return blocks
}

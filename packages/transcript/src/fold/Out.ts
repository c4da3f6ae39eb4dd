/**
 * The mutable output of folding one event: the state after it, and its rows and blobs. Each call of the fold has one,
 * and only that call changes it.
 */
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Block, EventRow, MessageRow } from "../row/Rows.ts"
import { timeText } from "../row/TimeText.ts"
import type { Blob, Content } from "./Blocks.ts"
import type { State } from "./State.ts"
import type { StoredText } from "./Texts.ts"

/** A block whose text is too long to be held in memory. */
export interface LongBlock {
  readonly type: "text"
  readonly text: StoredText
}
type AssistantRow = Extract<MessageRow, { readonly role: "assistant" }>
/** A row of `messages.jsonl`, with references to its long texts. */
export type FoldedRow =
  | Exclude<MessageRow, AssistantRow>
  | (Omit<AssistantRow, "content"> & { readonly content: ReadonlyArray<Block | LongBlock> })

export interface Out {
  readonly event: SessionEvent
  /** A private copy until the fold returns. */
  readonly state: State
  readonly messages: Array<FoldedRow>
  readonly events: Array<EventRow>
  readonly blobs: Array<Blob>
}

/** The maximum number of rows per event; row sequence numbers reserve that many for each. */
export const rowsPerEvent = 4

export const set = (out: Out, change: Partial<State>): void => {
  Object.assign(out.state, change)
}

/** The id and sequence number of the event's next row; they depend on the event alone. */
export const place = ({ event, events }: Out) => ({
  id: events.length === 0 ? event.id : `${event.id}.${events.length}`,
  seq: rowsPerEvent * event.seq + events.length,
  time: timeText(event.created)
})

/** The open run as a field of a row. */
export const ofRun = ({ state: { run } }: Out) => (run === undefined ? {} : { run: run.id })

/** Returns the blocks and adds their blobs to the output. */
export const blocksOf = (out: Out, { blobs, blocks }: Content): Content["blocks"] => {
  out.blobs.push(...blobs)
  return blocks
}

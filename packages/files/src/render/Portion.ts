/**
 * Rendered events of one session that wait to be written: the pieces for both logs, and the state after them. Joining
 * many pages of the log into one portion costs one append. `take` changes it in place. Spec: FI-69 in specs/files.md.
 */
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Piece } from "@daybook/transcript/Fold"
import * as Rendering from "./Rendering.ts"

export interface Portion {
  /** The rendering after the last event. */
  readonly run: Rendering.Run
  /** The id of the first event; the sequence number and position of the last. */
  readonly first: string
  seq: number
  position: number
  readonly messages: Array<Piece>
  readonly events: Array<Piece>
  readonly blobs: Array<Rendering.Added["blobs"][number]>
  /** The rendering at the last end of a run; retention removes events at most up to there. */
  settled: Rendering.Rendering | undefined
  /** Its approximate size in bytes. */
  size: number
}

/** Pending bytes at which a portion is written. */
export const portionLimit = 1024 * 1024

/** An empty portion that continues the rendering. */
export const begin = (rendering: Rendering.Rendering, { id }: SessionEvent): Portion => ({
  run: Rendering.from(rendering),
  first: id,
  seq: rendering.fold.seq,
  position: rendering.fold.position,
  messages: [],
  events: [],
  blobs: [],
  settled: undefined,
  size: 0
})

/** Adds one event. */
export const take = (portion: Portion, event: SessionEvent): void => {
  const added = portion.run.take(event)
  portion.seq = event.seq
  portion.position = event.position
  if (event.type === "session.next.activity.settled") portion.settled = Rendering.from(portion.run.rendering).rendering
  for (const piece of added.messages) {
    portion.messages.push(piece)
    portion.size += piece.length
  }
  for (const piece of added.events) {
    portion.events.push(piece)
    portion.size += piece.length
  }
  for (const blob of added.blobs) {
    portion.blobs.push(blob)
    portion.size += blob.size
  }
}

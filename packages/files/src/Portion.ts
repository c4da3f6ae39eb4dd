/**
 * Rendered events of one session that wait to be written: what they add to the logs, in order, and where the session stands
 * after them. One append for many pages of the log costs what one for a page does. Changed in place by `take`, and no
 * longer than a writer's limit. Spec: FI-69 in specs/files.md.
 */
import type { SessionEvent } from "@daybook/core"
import type { Piece } from "./Pieces.ts"
import * as Rendering from "./Rendering.ts"

export interface Portion {
  /** Stands after the last event. */
  readonly run: Rendering.Run
  /** The id of the first event, and the places of the last. */
  readonly first: string
  seq: number
  position: number
  readonly messages: Array<Piece>
  readonly events: Array<Piece>
  readonly blobs: Array<Rendering.Added["blobs"][number]>
  /** What it holds, nearly. */
  size: number
}

/** Bytes that wait, at most, beside those of the last event. */
export const portionLimit = 4 * 1024 * 1024

/** A portion that goes on from here and that holds nothing yet. */
export const begin = (rendering: Rendering.Rendering, { id }: SessionEvent): Portion => ({
  run: Rendering.from(rendering),
  first: id,
  seq: rendering.fold.seq,
  position: rendering.fold.position,
  messages: [],
  events: [],
  blobs: [],
  size: 0
})

/** One event more. */
export const take = (portion: Portion, event: SessionEvent): void => {
  const added = portion.run.take(event)
  portion.seq = event.seq
  portion.position = event.position
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

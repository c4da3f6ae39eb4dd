/**
 * Collects what a reader produces, in file order, while one item may still grow: an answer whose record spans several
 * lines, or a command whose output follows. What comes after it waits. The wait is bounded, and ends where an earlier
 * import of the log ended, which gives the items of that import. Spec: FM-133, IM-420.
 */
import type { Item, Piece } from "../conversation/Conversation.ts"

export interface Outlet {
  /** Produces a piece, behind the growing item if there is one. */
  readonly emit: (piece: Piece, sizeBytes?: number) => void
  /** Lets an item grow, and produces the one that grew before. `complete` makes the item; it is called once. */
  readonly grow: (complete: () => Item, sizeBytes?: number) => void
  /** Produces the growing item and what waits behind it. */
  readonly release: () => void
  /** What a record produced; the next call returns what comes later. */
  readonly take: () => ReadonlyArray<Piece>
}

const maxWaiting = 512
const maxWaitingBytes = 16 * 1024 * 1024

/** Counts of items at which an item ends that could grow. */
export type Ends = ReadonlyArray<number>

export const make = (ends: Ends = []): Outlet => {
  const isEnd = new Set(ends)
  let items = 0
  let out: Array<Piece> = []
  let complete: (() => Item) | undefined
  let waiting: Array<Piece> = []
  let waitingBytes = 0
  const release = () => {
    if (complete === undefined) return
    const first = complete
    complete = undefined
    out.push(first())
    for (const piece of waiting) out.push(piece)
    waiting = []
    waitingBytes = 0
  }
  return {
    emit: (piece, sizeBytes = 0) => {
      if (piece._tag !== "Problem") items += 1
      if (complete === undefined) return void out.push(piece)
      waiting.push(piece)
      waitingBytes += sizeBytes
      if (waiting.length >= maxWaiting || waitingBytes > maxWaitingBytes) release()
    },
    grow: (next, sizeBytes = 0) => {
      release()
      items += 1
      complete = next
      waitingBytes = sizeBytes
    },
    release,
    take: () => {
      if (isEnd.has(items)) release()
      const pieces = out
      out = []
      return pieces
    }
  }
}

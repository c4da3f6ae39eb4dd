/**
 * Lines and answers as pieces: short text in memory, or a reference to the event that holds a long text, which is read
 * when it is written or compared. So memory does not grow with an answer. Spec: FI-69, FI-98, FI-99 in specs/files.md.
 */
import { crc32 } from "node:zlib"
import { Effect, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type EventLog, type ReadError, SessionNotFound } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import * as Fold from "@daybook/transcript/Fold"
import { type Piece, sizeOf } from "@daybook/transcript/Fold"
import type { Sum } from "../disk/SafeFiles.ts"
import * as Rendering from "./Rendering.ts"

// Rendered events of one session that wait to be written: many pages of the log become one append.

export interface Portion {
  readonly run: Rendering.Run
  /** The id of the first event; the sequence number and position of the last. */
  readonly first: string
  seq: number
  position: number
  readonly messages: Array<Piece>
  readonly events: Array<Piece>
  readonly blobs: Array<Rendering.RenderedPieces["blobs"][number]>
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

export interface Source<E = never> {
  readonly size: number
  readonly bytes: Stream.Stream<Uint8Array, E>
}

export type Reader = (stored: Fold.StoredText) => Effect.Effect<string, ReadError>

const textIn = (event: SessionEvent | undefined, { length, seq }: Fold.StoredText): string | undefined =>
  event?.type === "session.next.text.ended" && event.seq === seq && event.data.text.length === length
    ? event.data.text
    : undefined

/** Reads texts from the session's log, or from its blocks if retention moved them there. */
export const keptReaderOf =
  ({ log, store }: { readonly log: EventLog["Type"]; readonly store: SessionStore["Type"] }, id: string): Reader =>
  (stored) =>
    Effect.catchTag(readerOf(log, id)(stored), "CursorExpired", (error) =>
      Effect.flatMap(store.event(SessionID.make(id), stored.seq), (event) => {
        const text = textIn(event, stored)
        return text === undefined ? error : Effect.succeed(text)
      })
    )

export const readerOf =
  (log: EventLog["Type"], id: string): Reader =>
  (stored) =>
    Effect.gen(function* () {
      const sessionID = SessionID.make(id)
      const [event] = (yield* log.read({ sessionID, after: stored.seq - 1, limit: 1 })).events
      // Lets other fibers run between two long texts.
      yield* Effect.yieldNow()
      const text = textIn(event, stored)
      if (text !== undefined) return text
      // A new session has the id.
      return yield* new SessionNotFound({ sessionID, removed: true })
    })

/** The pieces one by one; adjacent short ones are joined. */
const texts = (
  pieces: ReadonlyArray<Piece>,
  long: (stored: Fold.StoredText) => Effect.Effect<string, ReadError>
): Stream.Stream<string, ReadError> => {
  const runs: Array<{ short: Array<string>; long?: Fold.StoredText }> = []
  let short: Array<string> = []
  for (const piece of pieces) {
    if (!Fold.isStored(piece)) short.push(piece)
    else {
      runs.push({ short, long: piece })
      short = []
    }
  }
  if (short.length > 0) runs.push({ short })
  return Stream.fromIterable(runs).pipe(
    Stream.rechunk(1),
    Stream.mapEffect((run) => {
      const before = run.short.join("")
      return run.long === undefined ? Effect.succeed(before) : Effect.map(long(run.long), (text) => before + text)
    })
  )
}

/** The lines as bytes. */
export const linesFrom = (pieces: ReadonlyArray<Piece>, read: Reader): Source<ReadError> => ({
  size: sizeOf(pieces),
  bytes: Stream.map(
    texts(pieces, (stored) => Effect.map(read(stored), (text) => JSON.stringify(text))),
    (text) => Buffer.from(text, "utf8")
  )
})

/** The texts joined, with a newline, in UTF-8. A surrogate pair may span two of them. */
export const answerFrom = (latest: ReadonlyArray<Fold.Text>, read: Reader): Stream.Stream<Uint8Array, ReadError> =>
  texts([...latest, "\n"], read).pipe(
    Stream.mapAccum("", (half, text) => {
      const all = half + text
      const end = /[\uD800-\uDBFF]$/.test(all) ? all.length - 1 : all.length
      return [all.slice(end), Buffer.from(all.slice(0, end), "utf8")]
    })
  )

export const sumOfStream = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Sum, E, R> =>
  Stream.runFold(bytes, { size: 0, crc: 0 }, ({ crc, size }, piece) => ({
    size: size + piece.length,
    crc: crc32(piece, crc)
  }))

/**
 * One session's events on their way to text: the folds of its files and of its context pack, side by side, and what each
 * event adds to the two logs. Pure. Spec: FI-69 in specs/files.md.
 */
import type { SessionEvent } from "@daybook/core"
import { Either, Schema } from "effect"
import * as PackFold from "./context/PackFold.ts"
import * as PackState from "./context/PackState.ts"
import * as Fold from "./Fold.ts"
import { lineOf, sizeOf, type Piece } from "./Pieces.ts"

/** What is remembered of a session's events so far. */
export interface Rendering {
  readonly fold: Fold.State
  readonly pack: PackState.PackState
}

/** Lines for the two logs, each with its newline, and the bytes that they name. */
export interface Added {
  readonly messages: ReadonlyArray<Piece>
  readonly events: ReadonlyArray<Piece>
  readonly blobs: ReadonlyArray<Fold.Blob>
}

/** The two logs of a session's folder, in the order in which they are written. */
export const logs = ["messages.jsonl", "events.jsonl"] as const
export type LogName = (typeof logs)[number]
export const isLog = (name: string): boolean => logs.some((log) => log === name)

/** What goes to the end of the log. */
export const piecesOf = (added: Pick<Added, "messages" | "events">, name: LogName): ReadonlyArray<Piece> =>
  name === "messages.jsonl" ? added.messages : added.events

/** Before the first event. */
export const initial: Rendering = { fold: Fold.initial, pack: PackState.initial }

/** Several events, one by one, in a copy of its own: what they come to is that of `rendering`, whatever becomes of this. */
export interface Run {
  readonly rendering: Rendering
  readonly take: (event: SessionEvent) => Added
}

/** Goes on from a rendering, which stays as it is. */
export const from = ({ fold, pack }: Rendering): Run => {
  const now = { fold: { ...fold }, pack }
  return {
    rendering: now,
    take: (event) => {
      const { blobs, events, messages } = Fold.evolveOwn(now.fold, event)
      const lines = messages.map((row) => ({ row, pieces: lineOf(row) }))
      const written = lines.map(({ pieces, row }) => ({ row, bytes: sizeOf(pieces) }))
      now.pack = PackFold.evolve(now.pack, event, written)
      return {
        messages: lines.flatMap(({ pieces }) => pieces),
        events: events.map((row) => `${JSON.stringify(row)}\n`),
        blobs
      }
    }
  }
}

/** Several events further, what they add joined. */
export const evolveAll = (
  rendering: Rendering,
  events: ReadonlyArray<SessionEvent>
): { readonly rendering: Rendering; readonly added: Added } => {
  const run = from(rendering)
  const all = events.map(run.take)
  return {
    rendering: run.rendering,
    added: {
      messages: all.flatMap(({ messages }) => messages),
      events: all.flatMap(({ events }) => events),
      blobs: all.flatMap(({ blobs }) => blobs)
    }
  }
}

const Stored = Schema.parseJson(Schema.Struct({ fold: Fold.Checkpoint, pack: PackState.Checkpoint }))
const decode = Schema.decodeEither(Stored)

/** Code units of the latest answer that a checkpoint holds, at most: one with more costs more than it saves. */
const longestLatest = 1024 * 1024

/** Code units of the latest answer that the fold itself holds. */
const heldOf = ({ latest = [] }: Fold.State): number =>
  latest.reduce((sum, text) => sum + (Fold.isStored(text) ? 0 : text.length), 0)

/** The rendering as a ledger stores it; undefined while a run is open, and behind an answer of very many texts. It is checked when it is read. */
export const toText = ({ fold, pack }: Rendering): string | undefined => {
  if (!Fold.isQuiet(fold) || heldOf(fold) > longestLatest) return undefined
  const stored: typeof Stored.Type = { fold: Fold.toCheckpoint(fold), pack: PackState.toCheckpoint(pack) }
  // A checkpoint is its own JSON: encoding by the schema would check a long session line by line, each time.
  return JSON.stringify(stored)
}

/** The rendering that the text was made of; undefined for a text of another version, which is then made anew from the log. */
export const fromText = (text: string): Rendering | undefined =>
  Either.getOrUndefined(
    Either.map(decode(text), ({ fold, pack }) => ({
      fold: Fold.fromCheckpoint(fold),
      pack: PackState.fromCheckpoint(pack)
    }))
  )

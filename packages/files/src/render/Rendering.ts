/**
 * Renders one session's events: runs the folds of its files and of its context pack together, and returns what each
 * event adds to the two logs. Pure. Spec: FI-69 in specs/files.md.
 */
import { Either, Schema } from "effect"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import * as Fold from "@daybook/transcript/Fold"
import { lineOf, type Piece, sizeOf } from "@daybook/transcript/Fold"
import * as PackFold from "../context/PackFold.ts"
import * as PackState from "../context/PackState.ts"

export interface Rendering {
  readonly fold: Fold.State
  readonly pack: PackState.PackState
}

export interface RenderedPieces {
  readonly messages: ReadonlyArray<Piece>
  readonly events: ReadonlyArray<Piece>
  readonly blobs: ReadonlyArray<Fold.Blob>
}

/** The two logs of a session's folder, in write order. */
export const logs = ["messages.jsonl", "events.jsonl"] as const
export type LogName = (typeof logs)[number]
export const isLog = (name: string): boolean => logs.some((log) => log === name)

export const piecesOf = (added: Pick<RenderedPieces, "messages" | "events">, name: LogName): ReadonlyArray<Piece> =>
  name === "messages.jsonl" ? added.messages : added.events

export const initial: Rendering = { fold: Fold.initial, pack: PackState.initial }

/** Renders events one by one in a private copy of the rendering. */
export interface Run {
  readonly rendering: Rendering
  readonly take: (event: SessionEvent) => RenderedPieces
}

/** Continues from a rendering, which is not changed. */
export const from = ({ fold, pack }: Rendering): Run => {
  const now = { fold: { ...fold }, pack }
  return {
    rendering: now,
    take: (event) => {
      const { blobs, events, messages } = Fold.evolveOwn(now.fold, event)
      const pieces: Array<Piece> = []
      const written: Array<PackFold.WrittenLine> = []
      for (const row of messages) {
        const line = lineOf(row)
        pieces.push(...line)
        written.push({ row, bytes: sizeOf(line) })
      }
      now.pack = PackFold.evolve(now.pack, event, written)
      return { messages: pieces, events: events.map((row) => `${JSON.stringify(row)}\n`), blobs }
    }
  }
}

/** Renders several events and joins what they add. */
export const evolveAll = (
  rendering: Rendering,
  events: ReadonlyArray<SessionEvent>
): { readonly rendering: Rendering; readonly added: RenderedPieces } => {
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

/** Code units of the latest answer that a checkpoint may hold; a longer one costs more than it saves. */
const longestLatest = 1024 * 1024

/** Code units of the latest answer that the fold holds in memory. */
const heldOf = ({ latest = [] }: Fold.State): number =>
  latest.reduce((sum, text) => sum + (Fold.isStored(text) ? 0 : text.length), 0)

/** The rendering as the ledger stores it; undefined while a run is open, or if its answer is too long. */
export const toText = ({ fold, pack }: Rendering): string | undefined => {
  if (!Fold.isQuiet(fold) || heldOf(fold) > longestLatest) return undefined
  const stored: typeof Stored.Type = { fold: Fold.toCheckpoint(fold), pack: PackState.toCheckpoint(pack) }
  // The checkpoint is plain JSON. Encoding it by the schema would validate a long session each time; reading validates
  // it.
  return JSON.stringify(stored)
}

/** The stored rendering; undefined for another version, which is then rendered again from the log. */
export const fromText = (text: string): Rendering | undefined =>
  Either.getOrUndefined(
    Either.map(decode(text), ({ fold, pack }) => ({
      fold: Fold.fromCheckpoint(fold),
      pack: PackState.fromCheckpoint(pack)
    }))
  )

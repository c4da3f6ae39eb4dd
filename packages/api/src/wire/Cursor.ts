/**
 * The text of a cursor: a position in the events of a session, or in the feed of all sessions, of one database. Clients
 * keep the text and send the text back. Pure. Spec: HT-40..HT-43 in specs/http.md.
 */
import { Either, Schema, Struct } from "effect"

/** A position: in a session of this incarnation, or in the feed. */
export interface Cursor {
  readonly database: string
  /** Absent in the feed. */
  readonly incarnation?: number
  readonly position: number
}

/** The cursor is not one of this source, or of this version. */
export class ForeignCursor extends Schema.TaggedError<ForeignCursor>("@daybook/api/ForeignCursor")("ForeignCursor", {
  cursor: Schema.String,
  reason: Schema.Literal("malformed", "database", "kind")
}) {
  override get message() {
    switch (this.reason) {
      case "malformed":
        return "this is no cursor of this server; leave it out to begin with the first event"
      case "database":
        return "the cursor is of another database; leave it out to begin with the first event"
      case "kind":
        return "the cursor of a session is not one of the feed, and that of the feed is not one of a session"
    }
  }
}

/** `CursorExpired` of the log, with what a reader needs to start again. */
export class Expired extends Schema.TaggedError<Expired>("@daybook/api/CursorExpired")("CursorExpired", {
  cursor: Schema.Number,
  floor: Schema.Int,
  /** The floor as a cursor: events continue from there. */
  floorCursor: Schema.String,
  /** The path of the state at the floor. */
  snapshot: Schema.String
}) {
  override get message() {
    return `events after ${this.cursor} are no longer kept: read ${this.snapshot}, then continue with the floor's cursor`
  }
}

const form = /^d1\.([0-9a-f]{8})\.(?:(\d{1,15})\.)?(-1|\d{1,15})$/

/** `d1.DATABASE.INCARNATION.SEQ` for a session, `d1.DATABASE.POSITION` for the feed. */
export const format = ({ database, incarnation, position }: Cursor): string =>
  `d1.${database}.${incarnation === undefined ? "" : `${incarnation}.`}${position}`

/** Reads a cursor's text; undefined if it is none. */
export const read = (text: string): Cursor | undefined => {
  const [, database, incarnation, position] = form.exec(text) ?? []
  if (database === undefined || position === undefined) return undefined
  return {
    database,
    position: Number(position),
    ...(incarnation === undefined ? {} : { incarnation: Number(incarnation) })
  }
}

/** Reads a cursor of this source. A sequence number or a position alone is accepted: people type it. */
export const parse = (
  text: string,
  { database, kind }: { readonly database: string; readonly kind: "session" | "feed" }
): Either.Either<Omit<Cursor, "database">, ForeignCursor> => {
  if (/^-?\d{1,15}$/.test(text)) return Either.right({ position: Number(text) })
  const refused = (reason: ForeignCursor["reason"]) =>
    Either.left(new ForeignCursor({ cursor: text.slice(0, 100), reason }))
  const cursor = read(text)
  if (cursor === undefined) return refused("malformed")
  if (cursor.database !== database) return refused("database")
  if ((kind === "session") !== (cursor.incarnation !== undefined)) return refused("kind")
  return Either.right(Struct.omit(cursor, "database"))
}

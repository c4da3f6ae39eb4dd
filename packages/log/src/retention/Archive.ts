/**
 * The lines of an archive: a header, one line per removed event, and an end with the checksum of all lines before it. An
 * archive holds one contiguous range of one session, as stored, so that it can be put back exactly. Pure; `ArchiveFile.ts`
 * writes and reads the file. Spec: RT-20..RT-23.
 */
import { Either, Schema } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import { SessionBase } from "../projection/SessionBase.ts"

/** An archive cannot be written, read or put back. Nothing was changed. */
export class ArchiveUnusable extends Schema.TaggedError<ArchiveUnusable>("@daybook/log/ArchiveUnusable")(
  "ArchiveUnusable",
  { file: Schema.String, details: Schema.String }
) {
  override get message() {
    return `${this.file}: ${this.details}`
  }
}

const exact = { onExcessProperty: "error" } as const

/** The first line: what the archive holds, and the floor's state before the events were removed. */
export const Header = Schema.Struct({
  archive: Schema.Literal("daybook"),
  version: Schema.Literal(1),
  /** The identity of the database. */
  database: Schema.String,
  sessionID: SessionID,
  incarnation: Schema.Int,
  /** The floor before; the first event follows it. */
  from: Schema.Int,
  /** The floor after, and the last event. */
  to: Schema.Int,
  /** The session's head when the archive was written. */
  head: Schema.Int,
  /** The state at `from`; null for the beginning of the log. */
  base: Schema.NullOr(Schema.Struct({ ...SessionBase.fields, position: Schema.Int }))
})
export type Header = typeof Header.Type

/** An event as stored. */
export const StoredEvent = Schema.Struct({
  position: Schema.Int,
  seq: Schema.Int,
  id: EventID,
  type: Schema.String,
  created: Schema.Int,
  /** The payload's JSON, unchanged. */
  data: Schema.String,
  checksum: Schema.Int
})
export type StoredEvent = typeof StoredEvent.Type

/** The last line. */
export const End = Schema.Struct({
  end: Schema.Literal(true),
  events: Schema.Int,
  /** SHA-256 of all lines before this one, with their line ends. */
  sha256: Schema.String
})
export type End = typeof End.Type

/** One line of an archive. */
export type Line = Header | StoredEvent | End

/** A line with its end. */
export const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`

const Json = {
  header: Schema.decodeUnknownEither(Schema.parseJson(Header), exact),
  event: Schema.decodeUnknownEither(Schema.parseJson(StoredEvent), exact),
  end: Schema.decodeUnknownEither(Schema.parseJson(End), exact)
}

const decoding =
  <A>(what: string, decode: (text: unknown) => Either.Either<A, { readonly message: string }>) =>
  (text: string): Either.Either<A, string> =>
    Either.mapLeft(decode(text), () => `it has no valid ${what}`)

export const headerOf = decoding("header of a Daybook archive", Json.header)
export const eventOf = decoding("event on one of its lines", Json.event)
export const endOf = decoding("last line: it was cut off", Json.end)

/** Whether a line is the last one. */
export const isEnd = (text: string): boolean => text.startsWith('{"end":')

/** The name of a session's archive. Two incarnations of one id, and two ranges of one session, have different names. */
export const nameOf = ({ from, incarnation, sessionID, to }: Header): string =>
  `${sessionID}.${incarnation}.${from + 1}-${to}.jsonl.gz`

/**
 * Reads JSON Lines as a stream: bytes in, records and problems out, in file order, each with its line and byte offset.
 * Memory is bounded by the largest accepted line. `Dissection.ts` recovers records from damaged lines, `LogFile.ts` reads
 * the bytes of a file, `../entry`, `../thread` and others interpret the records. Spec: FM-1..FM-9 in specs/formats.md.
 */
import { isUtf8 } from "node:buffer"
import { Chunk, Predicate, Schema, Stream } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"
import { Place, type Problem } from "../conversation/Conversation.ts"
import { type Range, trimmed } from "./Braces.ts"
import { dissect, parsed, type Piece, textOf } from "./Dissection.ts"

/** A JSON object of a log. */
export const LogRecord = Schema.TaggedStruct("LogRecord", {
  place: Place,
  /**
   * Its index among the records of the file, from 0. In `recover` mode a line without a readable record counts as one,
   * in `compat` mode only parsed values count (FM-6).
   */
  slot: Schema.Int,
  value: JsonRecord,
  /** The JSON as it was read, without the white space around it. */
  text: Schema.String
})
export type LogRecord = typeof LogRecord.Type

/** What the reader does with a line that is not one JSON object. */
export const Mode = Schema.Literal("recover", "compat").annotations({
  description: "recover: read the objects that a damaged line holds; compat: drop a damaged line, as the originals do"
})
export type Mode = typeof Mode.Type

export interface Options {
  /** Default: `recover`. */
  readonly mode?: Mode
  /** Longer lines are reported and not loaded. Default: 64 MiB. */
  readonly maxLineBytes?: number
  /**
   * Whether an object beside damaged bytes is a record of this log, and not a part of a damaged record. Default: it is
   * not, and counts as damage. `recover` only.
   */
  readonly isRecord?: (value: JsonRecord) => boolean
}

/** Reads one file. Pass its bytes in order to `push`, then call `end` once. */
export interface JsonLines {
  readonly push: (bytes: Uint8Array) => ReadonlyArray<LogRecord | Problem>
  readonly end: () => ReadonlyArray<LogRecord | Problem>
}

export const defaultMaxLineBytes = 64 * 1024 * 1024

/** Deeper values would overflow the stack of code that walks them. */
export const maxDepth = 500

const newline = 0x0a

/** Whether a value is nested deeper than so many levels. */
export const isDeeper = (value: unknown, levels: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  for (const part of Object.values(value)) if (isDeeper(part, levels - 1)) return true
  return false
}

/** A line that is shorter than this cannot nest deeper. */
export const isTooDeep = (value: unknown, sizeBytes: number): boolean =>
  sizeBytes > 2 * maxDepth && isDeeper(value, maxDepth)

/** The problems that reading lines can find, and what the reader did. */
export const sentences = {
  "byte-order-mark": "A byte order mark was skipped.",
  "carriage-returns": "Lines of this file end in carriage return and newline; the carriage returns were skipped.",
  "line-separator": "A line or paragraph separator around a record was skipped.",
  "nul-padding": "NUL bytes around a record were skipped.",
  "blank-line": "One or more blank lines were skipped.",
  "invalid-utf8": "The line is not valid UTF-8; each invalid sequence became U+FFFD.",
  "glued-records": "The line holds several records; each was read.",
  "bad-line": "Damaged bytes were skipped: they are not a JSON record.",
  "torn-line": "The file ends in the middle of a record, which was skipped.",
  "not-an-object": "The line is JSON, but not an object; it was skipped.",
  "line-too-long": "The line is longer than the limit; it was skipped.",
  "too-deep": "The record nests its values too deeply; it was skipped."
}
export type Kind = keyof typeof sentences

/** A reader of one file. */
export const make = (options: Options = {}): JsonLines => {
  const { isRecord = () => false, maxLineBytes = defaultMaxLineBytes, mode = "recover" } = options
  let out: Array<LogRecord | Problem> = []
  let line = 1
  let slot = 0
  /** Where the line starts in the file, and how many NUL bytes its start has. */
  let [start, padding] = [0, 0]
  /** The line's bytes of earlier chunks, unless there are too many. */
  let held: Array<Buffer> = []
  let heldBytes = 0
  let [afterBlank, carriageReturns] = [false, false]

  const report = (kind: Kind, offset: number, details = sentences[kind]) =>
    void out.push({ _tag: "Problem", place: { line, offset }, kind, details })

  const skip = (kind: Kind, offset: number, details?: string) => {
    report(kind, offset, details)
    slot++
  }

  const accept = (value: JsonRecord, text: string, offset: number) => {
    if (isTooDeep(value, text.length)) skip("too-deep", offset)
    else out.push({ _tag: "LogRecord", place: { line, offset }, slot: slot++, value, text })
  }

  /** Reports what surrounds the content of a line, and says where the content starts. */
  const contentOf = (bytes: Buffer, whole: Range): Range => {
    const content = trimmed(bytes, whole)
    const around =
      textOf(bytes, { from: whole.from, to: content.from }) + textOf(bytes, { from: content.to, to: whole.to })
    const offset = start + padding
    if (around.includes("\ufeff")) report("byte-order-mark", offset)
    if (/[\u2028\u2029]/.test(around)) report("line-separator", offset)
    if (padding > 0 || around.includes("\0")) report("nul-padding", start)
    if (around.endsWith("\r") && !carriageReturns) {
      carriageReturns = true
      report("carriage-returns", offset)
    }
    return content
  }

  const recover = (bytes: Buffer, whole: Range, content: Range, isLast: boolean) => {
    const base = start + padding - whole.from
    const pieces: ReadonlyArray<Piece> = mode === "compat" ? [content] : dissect(bytes, content, isRecord)
    const records = pieces.filter(({ value }) => value !== undefined).length
    for (const piece of pieces) {
      const offset = base + piece.from
      if (piece.value !== undefined) {
        if (records > 1) report("glued-records", offset)
        accept(piece.value, textOf(bytes, piece), offset)
      } else report(isLast && piece.to === content.to ? "torn-line" : "bad-line", offset)
    }
    if (records === 0 && mode === "recover") slot++
  }

  const complete = (bytes: Buffer, whole: Range, isLast: boolean) => {
    const raw = textOf(bytes, whole)
    const text = raw.trim()
    const value = parsed(text)
    const isPlain = value !== undefined && text.length === raw.length && padding === 0
    const content = isPlain ? whole : contentOf(bytes, whole)
    const offset = start + padding + content.from - whole.from
    const isBlank = content.from === content.to
    if (isBlank) {
      if (!afterBlank && padding === 0) report("blank-line", start)
    } else {
      if (text.includes("\ufffd") && !isUtf8(bytes.subarray(whole.from, whole.to))) report("invalid-utf8", offset)
      if (value === undefined || (padding > 0 && mode === "compat")) recover(bytes, whole, content, isLast)
      else if (Predicate.isReadonlyRecord(value)) accept(value, text, offset)
      else skip("not-an-object", offset)
    }
    afterBlank = isBlank
  }

  /** Ends the line whose remaining bytes are the range. */
  const endLine = (bytes: Buffer, { from, to }: Range, isLast: boolean) => {
    const sizeBytes = heldBytes + to - from
    if (sizeBytes > maxLineBytes) skip("line-too-long", start, `The line has ${sizeBytes} bytes; it was skipped.`)
    else if (heldBytes === 0) complete(bytes, { from, to }, isLast)
    else complete(Buffer.concat([...held, bytes.subarray(from, to)]), { from: 0, to: sizeBytes }, isLast)
    line++
    start += padding + sizeBytes + 1
    padding = 0
    held = []
    heldBytes = 0
  }

  const hold = (bytes: Buffer) => {
    heldBytes += bytes.length
    if (heldBytes > maxLineBytes) held = []
    else held.push(bytes)
  }

  const taken = () => {
    const pieces = out
    out = []
    return pieces
  }

  return {
    push: (chunk) => {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      for (let from = 0; from < bytes.length;) {
        // A file system may pad a file with any number of NUL bytes after a power cut: they are counted, not held.
        if (heldBytes === 0 && bytes[from] === 0) {
          from++
          padding++
          continue
        }
        const to = bytes.indexOf(newline, from)
        if (to < 0) {
          hold(bytes.subarray(from))
          break
        }
        endLine(bytes, { from, to }, false)
        from = to + 1
      }
      return taken()
    },
    end: () => {
      if (heldBytes + padding > 0) endLine(Buffer.alloc(0), { from: 0, to: 0 }, true)
      return taken()
    }
  }
}

/** Reads the bytes of one file. Nothing is read ahead of the consumer but the current chunk. */
export const read =
  (options?: Options, makeReader: (options?: Options) => JsonLines = make) =>
  <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<LogRecord | Problem, E, R> =>
    Stream.suspend(() => {
      const reader = makeReader(options)
      return bytes.pipe(
        // One piece of the file at a time, however the source groups them.
        Stream.rechunk(1),
        Stream.mapConcatChunk((chunk) => Chunk.unsafeFromArray(reader.push(chunk))),
        Stream.concat(Stream.suspend(() => Stream.fromChunk(Chunk.unsafeFromArray(reader.end()))))
      )
    })

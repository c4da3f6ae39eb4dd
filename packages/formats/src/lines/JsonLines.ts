/**
 * Reads JSON Lines as a stream: bytes in, records and problems out, in file order, each with its line and byte offset.
 * Memory is bounded by the largest accepted line. `LogFile.ts` reads the bytes of a file; `../entry`,
 * `../thread` and others interpret the records. Spec: FM-1..FM-9, FM-423 in specs/formats.md.
 */
import { isUtf8 } from "node:buffer"
import { Chunk, Either, Predicate, Schema, Stream } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"
import { RecordPlace, type Problem } from "../conversation/Conversation.ts"

// Finds JSON objects in the bytes of a damaged line: braces, quotes and backslashes are single bytes in UTF-8.

const quote = 0x22
const backslash = 0x5c
const open = 0x7b
const close = 0x7d

/** A part of a buffer: from the byte `from` up to the byte `to`, exclusive. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Where the object that starts at `from` ends, exclusive; -1 if it does not end before `to`. */
const endOfObject = (bytes: Uint8Array, { from, to }: Range): number => {
  let depth = 0
  let inText = false
  for (let at = from; at < to; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === backslash) at++
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    else if (byte === open) depth++
    else if (byte === close && --depth === 0) return at + 1
  }
  return -1
}

/** In valid JSON a quote is part of a text exactly if an odd number of backslashes precedes it. */
const isEscaped = (bytes: Uint8Array, from: number, at: number): boolean => {
  let before = at
  while (before > from && bytes[before - 1] === backslash) before--
  return (at - before) % 2 === 1
}

/** Where the object that ends with the byte before `to` starts; -1 if it does not start at or after `from`. */
const startOfObject = (bytes: Uint8Array, { from, to }: Range): number => {
  let depth = 0
  let inText = false
  for (let at = to - 1; at >= from; at--) {
    const byte = bytes[at]
    if (byte === quote) {
      // A run of backslashes is read once per quote that follows it, so at most twice.
      if (!inText || !isEscaped(bytes, from, at)) inText = !inText
    } else if (inText) continue
    else if (byte === close) depth++
    else if (byte === open && --depth === 0) return at
  }
  return -1
}

/** How many bytes at `at` separate records: white space, NUL, byte order mark, U+2028 and U+2029. 0: a record starts. */
const separatorAt = (bytes: Uint8Array, at: number): number => {
  const byte = bytes[at] ?? -1
  if (byte === 0x20 || byte === 0 || (byte >= 0x09 && byte <= 0x0d)) return 1
  const [second, third] = [bytes[at + 1], bytes[at + 2]]
  if (byte === 0xef && second === 0xbb && third === 0xbf) return 3
  return byte === 0xe2 && second === 0x80 && (third === 0xa8 || third === 0xa9) ? 3 : 0
}

/** The part without separators at its start and end. */
const trimmed = (bytes: Uint8Array, { from, to }: Range): Range => {
  let [start, end] = [from, to]
  for (let width = 1; start < end && width > 0; start += width) width = separatorAt(bytes, start)
  start = Math.min(start, end)
  for (;;) {
    const width = [1, 3].find((count) => end - count >= start && separatorAt(bytes, end - count) === count)
    if (width === undefined) return { from: start, to: end }
    end -= width
  }
}

// Divides a damaged line into objects and damage, from both ends, so that a damaged place costs no record beside it.

/** Bytes of a line: an object, or damage if `value` is absent. */
export interface Piece extends Range {
  readonly value?: JsonRecord
}

const openBrace = 0x7b

const textOf = (bytes: Buffer, { from, to }: Range): string => bytes.toString("utf8", from, to)

/** The JSON value of a text, or undefined. No JSON text has the value undefined. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const objectIn = (bytes: Buffer, range: Range): Piece | undefined => {
  const value = parsed(textOf(bytes, range))
  return Predicate.isReadonlyRecord(value) ? { ...range, value } : undefined
}

/**
 * The pieces of a line in order; `isRecord` says whether an object beside damage is a record. Without it, such an object
 * may be a part of a damaged record.
 */
const dissect = (bytes: Buffer, line: Range, isRecord: (value: JsonRecord) => boolean): ReadonlyArray<Piece> => {
  let { from, to } = trimmed(bytes, line)
  const before: Array<Piece> = []
  while (from < to) {
    const start = bytes.indexOf(openBrace, from)
    const end = start < 0 || start >= to ? -1 : endOfObject(bytes, { from: start, to })
    const piece = end < 0 ? undefined : objectIn(bytes, { from: start, to: end })
    if (piece?.value === undefined || (start > from && !isRecord(piece.value))) break
    if (start > from) before.push({ from, to: start })
    before.push(piece)
    from = trimmed(bytes, { from: end, to }).from
  }
  const after: Array<Piece> = []
  while (from < to) {
    const start = startOfObject(bytes, { from, to })
    const piece = start < 0 ? undefined : objectIn(bytes, { from: start, to })
    if (piece?.value === undefined || !isRecord(piece.value)) break
    after.push(piece)
    to = trimmed(bytes, { from, to: start }).to
  }
  if (from < to) after.push({ from, to })
  return [...before, ...after.toReversed()]
}

export const LogRecord = Schema.TaggedStruct("LogRecord", {
  place: RecordPlace,
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
const isDeeper = (value: unknown, levels: number): boolean => {
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
export type ProblemKind = keyof typeof sentences

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

  const report = (kind: ProblemKind, offset: number, details = sentences[kind]) =>
    void out.push({ _tag: "Problem", place: { line, offset }, kind, details })

  const skip = (kind: ProblemKind, offset: number, details?: string) => {
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

// Makes the line of a record, unless readers would skip the line.

/** The record would be lost: readers of the file skip it. Nothing was written. */
export class RecordRefused extends Schema.TaggedError<RecordRefused>("@daybook/formats/RecordRefused")(
  "RecordRefused",
  { details: Schema.String }
) {
  override get message() {
    return `the record was not written, because it could not be read back: ${this.details}`
  }
}

/** Refuses values that are nested too deeply, also those without an end, before anything walks them. */
export const shallow = <A>(record: A): Either.Either<A, RecordRefused> =>
  isDeeper(record, maxDepth)
    ? Either.left(new RecordRefused({ details: `its values are nested deeper than ${maxDepth} levels` }))
    : Either.right(record)

/** The line of the record, without a newline. */
export const recordLine = (record: object): Either.Either<string, RecordRefused> =>
  Either.gen(function* () {
    yield* shallow(record)
    const line = yield* Either.try({
      try: () => JSON.stringify(record),
      catch: (cause) => new RecordRefused({ details: `it cannot be written as JSON: ${String(cause)}` })
    })
    const sizeBytes = Buffer.byteLength(line)
    if (sizeBytes <= defaultMaxLineBytes) return line
    const details = `its line has ${sizeBytes} bytes; the limit is ${defaultMaxLineBytes}`
    return yield* Either.left(new RecordRefused({ details }))
  })

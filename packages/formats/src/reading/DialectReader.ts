/**
 * Reads a log of a dialect that is only read: finds the head among the first records, then folds the records. The dialects
 * are in `../claude` and `../codex`. Spec: FM-130, FM-133 in specs/formats.md, IM-420 in specs/formats.md.
 */
import type { FileSystem } from "@effect/platform/FileSystem"
import { Chunk, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { AnswerPart, Head, Item, Piece, Problem, RecordPlace, Spending } from "../conversation/Conversation.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import { decompressed } from "../lines/LogFile.ts"
import { isNothing, phrase } from "./Tolerant.ts"

// Collects items in file order while one item still grows; later items wait. The wait is bounded, and ends where an
// earlier import of the log ended.

const maxWaiting = 512
const maxWaitingBytes = 16 * 1024 * 1024

/** Counts of items at which an item ends that could grow. */
export type Ends = ReadonlyArray<number>

export const makeOutlet = (ends: Ends = []) => {
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
  /** Produces a piece, behind the growing item if there is one. */
  const emit = (piece: Piece, sizeBytes = 0) => {
    if (piece._tag !== "Problem") items += 1
    if (complete === undefined) return void out.push(piece)
    waiting.push(piece)
    waitingBytes += sizeBytes
    if (waiting.length >= maxWaiting || waitingBytes > maxWaitingBytes) release()
  }
  const report = (place: RecordPlace, kind: string, details: string) => emit({ _tag: "Problem", place, kind, details })
  /** What a record produced; the next call returns what comes later. */
  const take = (): ReadonlyArray<Piece> => {
    if (isEnd.has(items)) release()
    const pieces = out
    out = []
    return pieces
  }
  /** Tools of calls without result yet, by call. */
  const tools = new Map<string, string>()
  return {
    emit,
    report,
    take,
    /** Produces the item that grew before, and lets another item grow. `complete` makes the item and is called once. */
    grow: (next: () => Item, sizeBytes = 0) => {
      release()
      items += 1
      complete = next
      waitingBytes = sizeBytes
    },
    /** Produces the growing item and what waits behind it. */
    release,
    /** The calls among the parts wait for their results. */
    called: (parts: ReadonlyArray<AnswerPart>) => {
      for (const part of parts) if (part.type === "call") tools.set(part.id, part.name)
    },
    /** The tool whose result has come; empty if the log has no such call. */
    toolOf: (callID: string, place: RecordPlace): string => {
      const tool = tools.get(callID)
      if (tool === undefined) report(place, "missing-call", `The call of the result ${callID} is not in the file.`)
      tools.delete(callID)
      return tool ?? ""
    },
    /** The last pieces. `beside`: what `whose` spent that belongs to no item. */
    end: (whose: string, beside: Spending): ReadonlyArray<Piece> => {
      release()
      const details = `${whose} spent ${phrase(beside)}; they belong to no item.`
      if (!isNothing(beside)) report({ line: 1, offset: 0 }, "unattributed-usage", details)
      return take()
    }
  }
}

export type Outlet = ReturnType<typeof makeOutlet>

export interface Fold {
  readonly push: (record: JsonLines.LogRecord) => ReadonlyArray<Piece>
  readonly end: () => ReadonlyArray<Piece>
}

export interface OpenLog {
  readonly head: Head
  readonly makeFold: (ends?: Ends) => Fold
}

export interface DialectReader {
  /** Whether an object beside damage is a record, and not a part of one. */
  readonly isRecord: (value: JsonRecord) => boolean
  /** Finds the records in the bytes of a file. Default: each line is one. */
  readonly makeRecords?: (options?: JsonLines.Options) => JsonLines.JsonLines
  /**
   * Opens the log if its records so far say which session it is. It is asked again after each record. `name` is the name
   * of the file, without its ending. `last`: no better record follows soon, so that any hint must do.
   */
  readonly open: (early: ReadonlyArray<JsonRecord>, name: string | undefined, last: boolean) => OpenLog | undefined
}

export interface Options extends Omit<JsonLines.Options, "isRecord"> {
  /** The name of the file without its ending, if the bytes are those of a file. */
  readonly name?: string | undefined
  /** After how many items earlier reads of the log ended: an item that grew there ends there again (IM-420). */
  readonly ends?: Ends
}

/** The head must be among this many records and bytes. */
const maxRecords = 256
const maxSizeBytes = 16 * 1024 * 1024

const make = (dialect: DialectReader, name: string | undefined, ends: Ends | undefined): Fold => {
  let fold: Fold | undefined
  let early: Array<JsonLines.LogRecord> = []
  let earlyBytes = 0
  let refused = false
  const values = () => early.map(({ value }) => value)
  const openedBy = ({ head, makeFold }: OpenLog): ReadonlyArray<Piece> => {
    const opened = makeFold(ends)
    fold = opened
    const records = early
    early = []
    return [head, ...records.flatMap((record) => opened.push(record))]
  }
  /** Opens the log by the best hint among the early records. */
  const settle = (): ReadonlyArray<Piece> => {
    const opened = early.length === 0 ? undefined : dialect.open(values(), name, true)
    if (opened !== undefined) return openedBy(opened)
    refused = true
    const place = early[0]?.place ?? { line: 1, offset: 0 }
    early = []
    return [{ _tag: "Problem", place, kind: "not-a-session", details: "No record says which session this is." }]
  }
  return {
    push: (record) => {
      if (fold !== undefined) return fold.push(record)
      if (refused) return []
      early.push(record)
      earlyBytes += record.text.length
      const opened = dialect.open(values(), name, false)
      if (opened !== undefined) return openedBy(opened)
      return early.length >= maxRecords || earlyBytes > maxSizeBytes ? settle() : []
    },
    end: () => {
      const pieces = fold === undefined && !refused ? settle() : []
      return fold === undefined ? pieces : [...pieces, ...fold.end()]
    }
  }
}

/** Reads records in file order. Problems of lines pass through. */
const readRecords =
  (dialect: DialectReader, name?: string, ends?: Ends) =>
  <E, R>(records: Stream.Stream<JsonLines.LogRecord | Problem, E, R>): Stream.Stream<Piece, E, R> =>
    Stream.suspend(() => {
      const fold = make(dialect, name, ends)
      return records.pipe(
        // A chunk at a time: an effect for each record would cost more than its reading.
        Stream.mapChunks((chunk) =>
          Chunk.unsafeFromArray(
            Chunk.toReadonlyArray(chunk).flatMap((piece) => (piece._tag === "Problem" ? [piece] : fold.push(piece)))
          )
        ),
        Stream.concat(Stream.suspend(() => Stream.fromIterable(fold.end())))
      )
    })

/** Reads the bytes of a log. */
export const read =
  (dialect: DialectReader, { ends, name, ...options }: Options = {}) =>
  <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Piece, E, R> =>
    bytes.pipe(
      JsonLines.read({ ...options, isRecord: dialect.isRecord }, dialect.makeRecords),
      readRecords(dialect, name, ends)
    )

/** Reads a file, which is never changed. */
export const readFile =
  (dialect: DialectReader) =>
  (path: string, options: Omit<Options, "name"> = {}): Stream.Stream<Piece, LogFile.LogUnreadable, FileSystem> =>
    LogFile.bytes(path).pipe(decompressed, read(dialect, { ...options, name: nameOf(path) }))

/** The name of a file without its folder and ending. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1).replace(/\.jsonl?(?:\.zst)?$/, "")

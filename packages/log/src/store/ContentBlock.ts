/**
 * The form of a block of kept events: a line of JSON with the columns of the events and of their parts' rows, then the
 * payloads, compressed together, so that what a session repeats (files read again, diffs, outputs of tests) is stored
 * once. A checksum stands before the block. Spec: ST-33, ST-34.
 */
import { promisify } from "node:util"
import { brotliCompress, brotliDecompress, constants, crc32 } from "node:zlib"
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
import type { PartRow } from "../projection/Tables.ts"
import { compile } from "../support/Conforms.ts"
import * as EventLoop from "../support/EventLoop.ts"
import { messageOf } from "../support/SystemError.ts"

// The columns of a block: an array for each field, so that alike values stand together and compress well.

/** An event's row without its session and its checksum, which the other columns give. */
export interface KeptEvent {
  readonly seq: number
  readonly position: number
  /** The stored name: type and version. */
  readonly type: string
  readonly created: number
  /** Null if the position gives the event its id. */
  readonly id: string | null
  readonly data: string
}

/** A kept event with the checksum that its row had. */
export interface CheckedEvent extends KeptEvent {
  readonly checksum: number
}

/** A part's row without its session. It names its message by the sequence number. */
export interface KeptPart extends Omit<PartRow, "session_id" | "message_id"> {
  readonly message: number
}

const Numbers = Schema.Array(Schema.Number)
const OptionalNumbers = Schema.Array(Schema.NullOr(Schema.Number))
const Strings = Schema.Array(Schema.String)
const OptionalStrings = Schema.Array(Schema.NullOr(Schema.String))

const EventColumns = Schema.Struct({
  types: Strings,
  /** Places in `types`. */
  type: Numbers,
  seq: Numbers,
  position: Numbers,
  created: Numbers,
  id: OptionalStrings,
  /** Of the payloads. */
  bytes: Numbers
})
type EventColumns = typeof EventColumns.Type

const PartColumns = Schema.Struct({
  message: Numbers,
  kind: Strings,
  key: Strings,
  seq: Numbers,
  name: OptionalStrings,
  status: Strings,
  opened: OptionalNumbers,
  raw: OptionalNumbers,
  called: OptionalNumbers,
  progress: OptionalNumbers,
  settled: OptionalNumbers,
  time_created: Numbers
})
type PartColumns = typeof PartColumns.Type

const Columns = Schema.Struct({
  events: EventColumns,
  parts: PartColumns,
  /** Of the events' checksums (`sumOf`). */
  sum: Schema.Number
})
type Columns = typeof Columns.Type

const conforms = compile(Columns.ast)

/** Every read of a block checks thousands of numbers, and `Schema.is` takes as long for them as decompression. */
const isColumns = (value: unknown): value is Columns => conforms(value)

const differences = (values: ReadonlyArray<number>) => values.map((value, index) => value - (values[index - 1] ?? 0))

const eventColumns = (events: ReadonlyArray<KeptEvent>): EventColumns => {
  const types = Arr.dedupe(events.map(({ type }) => type))
  return {
    types,
    type: events.map(({ type }) => types.indexOf(type)),
    seq: differences(events.map(({ seq }) => seq)),
    position: differences(events.map(({ position }) => position)),
    created: differences(events.map(({ created }) => created)),
    id: events.map(({ id }) => id),
    bytes: events.map(({ data }) => Buffer.byteLength(data))
  }
}

/** The columns of a part that are sequence numbers of events, or null. */
const references = ["opened", "raw", "called", "progress", "settled"] as const

/** The events that hold a part's content. */
export const referencesOf = (part: KeptPart) => references.flatMap((column) => part[column] ?? [])

const partColumns = (parts: ReadonlyArray<KeptPart>): PartColumns => {
  const counted = (column: (typeof references)[number]) =>
    parts.map((part) => (part[column] === null ? null : part[column] - part.seq))
  return {
    message: differences(parts.map(({ message }) => message)),
    kind: parts.map(({ kind }) => kind),
    key: parts.map(({ key }) => key),
    seq: parts.map(({ message, seq }) => seq - message),
    name: parts.map(({ name }) => name),
    status: parts.map(({ status }) => status),
    opened: counted("opened"),
    raw: counted("raw"),
    called: counted("called"),
    progress: counted("progress"),
    settled: counted("settled"),
    time_created: differences(parts.map(({ time_created }) => time_created))
  }
}

/** One checksum of many. Ten digits for each event would be a twentieth of a block: they do not compress. */
export const sumOf = (checksums: Iterable<number>): number => crc32(new Uint8Array(Uint32Array.from(checksums).buffer))

/** The columns of events and parts, both in order. */
const columnsOf = (events: ReadonlyArray<CheckedEvent>, parts: ReadonlyArray<KeptPart>): Columns => ({
  events: eventColumns(events),
  parts: partColumns(parts),
  sum: sumOf(events.map(({ checksum }) => checksum))
})

/** Throws unless all columns are as long as the first one. */
const alike = (first: ReadonlyArray<unknown>, others: ReadonlyArray<ReadonlyArray<unknown>>): void => {
  if (others.some(({ length }) => length !== first.length)) throw new Error("a column has another length")
}

/** The value at a place. The columns' lengths were compared. */
const at = <A>(column: ReadonlyArray<A>, index: number): A => {
  const value = column[index]
  if (value === undefined) throw new Error("a column has no such place")
  return value
}

/** The events of these columns, if they are wanted; `payload` reads the bytes from one place to another. */
const eventsIn = (
  { bytes, types, ...columns }: EventColumns,
  payload: (start: number, end: number) => string,
  isWanted: (seq: number) => boolean
): ReadonlyArray<KeptEvent> => {
  const events: Array<KeptEvent> = []
  let [seq, position, created, start] = [0, 0, 0, 0]
  for (const [index, length] of bytes.entries()) {
    seq += at(columns.seq, index)
    position += at(columns.position, index)
    created += at(columns.created, index)
    if (isWanted(seq)) {
      const type = at(types, at(columns.type, index))
      events.push({ seq, position, type, created, id: at(columns.id, index), data: payload(start, start + length) })
    }
    start += length
  }
  return events
}

/** The parts of these columns whose message is wanted. */
const partsIn = (columns: PartColumns, isWanted: (message: number) => boolean): ReadonlyArray<KeptPart> => {
  const parts: Array<KeptPart> = []
  let [message, time_created] = [0, 0]
  for (const index of columns.message.keys()) {
    message += at(columns.message, index)
    time_created += at(columns.time_created, index)
    if (!isWanted(message)) continue
    const seq = message + at(columns.seq, index)
    const counted = (column: (typeof references)[number]) => {
      const value = at(columns[column], index)
      return value === null ? null : seq + value
    }
    parts.push({
      message,
      kind: at(columns.kind, index),
      key: at(columns.key, index),
      seq,
      name: at(columns.name, index),
      status: at(columns.status, index),
      opened: counted("opened"),
      raw: counted("raw"),
      called: counted("called"),
      progress: counted("progress"),
      settled: counted("settled"),
      time_created
    })
  }
  return parts
}

/** Throws unless the columns belong together, and payloads have so many bytes. */
const check = ({ events, parts }: Columns, payloadBytes: number): void => {
  const { bytes, types, ...others } = events
  alike(bytes, Object.values(others))
  if (others.type.some((place) => types[place] === undefined)) throw new Error("a type has no name")
  const { message, ...rest } = parts
  alike(message, Object.values(rest))
  if (bytes.reduce((sum, length) => sum + length, 0) !== payloadBytes) {
    throw new Error("its payloads have another length")
  }
}

/** Events `first` to `last` of one session; not all of them need to be in it. */
export interface Block {
  readonly first: number
  readonly last: number
  readonly packed: Uint8Array
  /** The texts of its prompts, compressed apart, for searches; null if it has none. */
  readonly prompts: Uint8Array | null
}

/** Bytes of events per block, uncompressed. Larger blocks compress better, but a read opens a whole block. */
export const blockBytes = 4 * 1024 * 1024

/** What an event's columns are counted as. */
const columnBytes = 64

/** The bytes that an event counts for in a block. */
export const bytesOf = ({ data }: KeptEvent): number => Buffer.byteLength(data) + columnBytes

/** What one block holds, in order: events, and the parts of the messages that they open. */
export interface Contents {
  readonly events: Arr.NonEmptyReadonlyArray<CheckedEvent>
  readonly parts: ReadonlyArray<KeptPart>
}

/** Divides events, which come in the order of their sequence numbers, into the contents of blocks. */
export interface Divider {
  /** Adds events, and the parts of messages that they open. Returns the contents of the blocks that are full. */
  readonly add: (events: ReadonlyArray<CheckedEvent>, parts: ReadonlyArray<KeptPart>) => ReadonlyArray<Contents>
  readonly rest: () => ReadonlyArray<Contents>
}

export const makeDivider = (): Divider => {
  let [events, parts, bytes]: [Array<CheckedEvent>, ReadonlyArray<KeptPart>, number] = [[], [], 0]
  const take = (): ReadonlyArray<Contents> => {
    const taken = events
    if (!Arr.isNonEmptyArray(taken)) return []
    const last = Arr.lastNonEmpty(taken).seq
    const [own, later] = Arr.partition(parts, ({ message }) => message > last)
    ;[events, parts, bytes] = [[], later, 0]
    return [{ events: taken, parts: own }]
  }
  return {
    add: (added, ofThem) => {
      parts = [...parts, ...ofThem]
      return added.flatMap((event) => {
        const length = bytesOf(event)
        const full = bytes + length > blockBytes ? take() : []
        events.push(event)
        bytes += length
        return full
      })
    },
    rest: take
  }
}

const Admission = Schema.parseJson(Schema.Struct({ prompt: Schema.Struct({ text: Schema.String }) }))
const decodeAdmission = Schema.decodeUnknownOption(Admission)

const promptOf = ({ data, type }: KeptEvent): Option.Option<string> =>
  /^session\.next\.(prompt\.admitted|prompted)\.\d+$/.test(type)
    ? Option.map(decodeAdmission(data), ({ prompt }) => prompt.text)
    : Option.none()

const [compressing, decompressing] = [promisify(brotliCompress), promisify(brotliDecompress)]

/** The next one takes a third longer for a percent. */
const quality = 7

const checksumBytes = 4

/** Compresses a text behind a checksum, which brotli does not have. */
const sealed = async (text: Buffer): Promise<Buffer> => {
  const bytes = await compressing(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  })
  const checksum = Buffer.allocUnsafe(checksumBytes)
  checksum.writeUInt32BE(crc32(bytes))
  return Buffer.concat([checksum, bytes])
}

/** The text that was sealed. Rejects if it is damaged. */
const unsealed = async (stored: Uint8Array): Promise<Buffer> => {
  const [checksum, bytes] = [stored.subarray(0, checksumBytes), stored.subarray(checksumBytes)]
  if (Buffer.from(checksum).readUInt32BE() !== crc32(bytes)) throw new Error("its checksum differs")
  return decompressing(bytes)
}

/** Payloads that are written before the event loop runs. */
const writtenAtOnce = 512

/**
 * The text of a block before compression. Written piece by piece: to join the payloads first takes twice the time. A
 * whole block would keep the event loop for several milliseconds, so it runs in between.
 */
const textOf = Effect.fnUntraced(function* ({ events, parts }: Contents) {
  const columns = columnsOf(events, parts)
  yield* EventLoop.turn
  const line = `${JSON.stringify(columns)}\n`
  const text = Buffer.allocUnsafe(columns.events.bytes.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(line)))
  let at = text.write(line)
  for (const some of Arr.chunksOf(events, writtenAtOnce)) {
    yield* EventLoop.turn
    for (const { data } of some) at += text.write(data, at)
  }
  return text
})

const decodePrompts = Schema.decodeUnknownSync(Schema.parseJson(Schema.Array(Schema.String)))

/** Packs a block. It is compressed off the event loop. */
export const pack = Effect.fnUntraced(function* (contents: Contents): Effect.fn.Return<Block> {
  const { events } = contents
  const texts = Arr.getSomes(events.map(promptOf))
  const prompts = texts.length === 0 ? null : yield* Effect.promise(() => sealed(Buffer.from(JSON.stringify(texts))))
  const text = yield* textOf(contents)
  const packed = yield* Effect.promise(() => sealed(text))
  return { first: Arr.headNonEmpty(events).seq, last: Arr.lastNonEmpty(events).seq, packed, prompts }
})

export interface OpenBlock {
  /** Of the checksums that its events had. */
  readonly sum: number
  readonly events: (isWanted?: (seq: number) => boolean) => ReadonlyArray<KeptEvent>
  readonly parts: (isWanted?: (message: number) => boolean) => ReadonlyArray<KeptPart>
}

const all = () => true

const blockOf = (text: Buffer): OpenBlock => {
  const end = text.indexOf("\n")
  const columns: unknown = JSON.parse(text.toString("utf8", 0, end))
  if (!isColumns(columns)) throw new Error("its columns are of another form")
  const start = end + 1
  check(columns, text.length - start)
  const payload = (from: number, to: number) => text.toString("utf8", start + from, start + to)
  return {
    sum: columns.sum,
    events: (isWanted = all) => eventsIn(columns.events, payload, isWanted),
    parts: (isWanted = all) => partsIn(columns.parts, isWanted)
  }
}

const attempt = <A>(read: () => Promise<A>): Effect.Effect<Either.Either<A, string>> =>
  Effect.either(Effect.tryPromise({ try: read, catch: messageOf }))

/** Opens a block; the reason if it is damaged. It is decompressed off the event loop. */
export const unpack = (packed: Uint8Array) => attempt(async () => blockOf(await unsealed(packed)))

/** The texts of a block's prompts; the reason if they are damaged. They are decompressed off the event loop. */
export const unpackPrompts = (prompts: Uint8Array): Effect.Effect<Either.Either<ReadonlyArray<string>, string>> =>
  attempt(async () => decodePrompts((await unsealed(prompts)).toString()))

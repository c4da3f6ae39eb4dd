/**
 * The form of a block of kept events: a line of JSON with their columns, then their payloads, compressed together, so that
 * what a session repeats (files read again, diffs, outputs of tests) is stored once. A checksum stands before it. Spec:
 * ST-33, ST-34.
 */
import { promisify } from "node:util"
import { brotliCompress, brotliDecompress, constants, crc32 } from "node:zlib"
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
import { compile } from "../support/Conforms.ts"

/** An event's row without its session. */
export interface KeptEvent {
  readonly seq: number
  readonly position: number
  /** The stored name: type and version. */
  readonly type: string
  readonly created: number
  /** Null if the position gives the event its id. */
  readonly id: string | null
  readonly checksum: number
  readonly data: string
}

/** Events `first` to `last` of one session; not all of them need to be in it. */
export interface Block {
  readonly first: number
  readonly last: number
  readonly packed: Uint8Array
  /** The texts of its prompts as a JSON array, for searches; null if it has none. */
  readonly prompts: string | null
}

/**
 * Bytes of events per block, before compression. A longer event is a block of its own. Larger blocks compress better, but
 * a read of one event opens the whole block.
 */
export const blockBytes = 1024 * 1024

/** What an event's columns are counted as. */
const columnBytes = 64

/** The bytes that an event counts for in a block. */
export const bytesOf = ({ data }: KeptEvent): number => Buffer.byteLength(data) + columnBytes

/** The events of a block, in order. */
export type Events = Arr.NonEmptyReadonlyArray<KeptEvent>

/** Divides events, ordered by sequence number, into blocks. */
export const divide = (events: ReadonlyArray<KeptEvent>): ReadonlyArray<Events> => {
  const blocks: Array<Arr.NonEmptyArray<KeptEvent>> = []
  let bytes = Infinity
  for (const event of events) {
    const length = bytesOf(event)
    if (bytes + length > blockBytes) {
      blocks.push([event])
      bytes = length
    } else {
      blocks.at(-1)?.push(event)
      bytes += length
    }
  }
  return blocks
}

/** The columns of a block's events. Numbers that grow are differences to the event before, which compress better. */
const Columns = Schema.Struct({
  types: Schema.Array(Schema.String),
  /** Places in `types`. */
  type: Schema.Array(Schema.Number),
  seq: Schema.Array(Schema.Number),
  position: Schema.Array(Schema.Number),
  created: Schema.Array(Schema.Number),
  id: Schema.Array(Schema.NullOr(Schema.String)),
  checksum: Schema.Array(Schema.Number),
  /** Of the payloads. */
  bytes: Schema.Array(Schema.Number)
})
type Columns = typeof Columns.Type
const conforms = compile(Columns.ast)
/** Every read of a block checks thousands of numbers, and `Schema.is` takes as long for them as decompression. */
const isColumns = (value: unknown): value is Columns => conforms(value)

const differences = (values: ReadonlyArray<number>): ReadonlyArray<number> =>
  values.map((value, index) => value - (values[index - 1] ?? 0))

const columnsOf = (events: Events): Columns => {
  const types = Arr.dedupe(events.map(({ type }) => type))
  return {
    types,
    type: events.map(({ type }) => types.indexOf(type)),
    seq: differences(events.map(({ seq }) => seq)),
    position: differences(events.map(({ position }) => position)),
    created: differences(events.map(({ created }) => created)),
    id: events.map(({ id }) => id),
    checksum: events.map(({ checksum }) => checksum),
    bytes: events.map(({ data }) => Buffer.byteLength(data))
  }
}

const Admission = Schema.parseJson(Schema.Struct({ prompt: Schema.Struct({ text: Schema.String }) }))
const decodeAdmission = Schema.decodeUnknownOption(Admission)

const promptOf = ({ data, type }: KeptEvent): Option.Option<string> =>
  /^session\.next\.(prompt\.admitted|prompted)\.\d+$/.test(type)
    ? Option.map(decodeAdmission(data), ({ prompt }) => prompt.text)
    : Option.none()

const [compressing, decompressing] = [promisify(brotliCompress), promisify(brotliDecompress)]

/** Above it, a percent of size costs a third of the speed. */
const quality = 6

const checksumBytes = 4

/** The text of a block before compression. Written piece by piece: to join the payloads first takes twice the time. */
const textOf = (events: Events): Buffer => {
  const columns = columnsOf(events)
  const line = `${JSON.stringify(columns)}\n`
  const text = Buffer.allocUnsafe(columns.bytes.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(line)))
  let at = text.write(line)
  for (const { data } of events) at += text.write(data, at)
  return text
}

const compressed = async (text: Buffer): Promise<Buffer> => {
  const bytes = await compressing(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  })
  const checksum = Buffer.allocUnsafe(checksumBytes)
  checksum.writeUInt32BE(crc32(bytes))
  return Buffer.concat([checksum, bytes])
}

/** Packs the events of one block. They are compressed off the event loop. */
export const pack = (events: Events): Effect.Effect<Block> => {
  const prompts = Arr.getSomes(events.map(promptOf))
  return Effect.map(
    Effect.promise(() => compressed(textOf(events))),
    (packed) => ({
      first: Arr.headNonEmpty(events).seq,
      last: Arr.lastNonEmpty(events).seq,
      packed,
      prompts: prompts.length === 0 ? null : JSON.stringify(prompts)
    })
  )
}

/** The value of an event in a column. */
const valueAt = <A>(column: ReadonlyArray<A>, index: number): A => {
  const value = column[index]
  if (value === undefined) throw new Error("a column is too short")
  return value
}

/** The wanted events of a decompressed block. Throws if it is not one. */
const eventsIn = (text: Buffer, isWanted: (seq: number) => boolean): ReadonlyArray<KeptEvent> => {
  const end = text.indexOf("\n")
  const columns: unknown = JSON.parse(text.toString("utf8", 0, end))
  if (!isColumns(columns)) throw new Error("its columns are of another form")
  const events: Array<KeptEvent> = []
  let [seq, position, created, at] = [0, 0, 0, end + 1]
  for (const [index, bytes] of columns.bytes.entries()) {
    seq += valueAt(columns.seq, index)
    position += valueAt(columns.position, index)
    created += valueAt(columns.created, index)
    if (isWanted(seq)) {
      const type = valueAt(columns.types, valueAt(columns.type, index))
      const [id, checksum] = [valueAt(columns.id, index), valueAt(columns.checksum, index)]
      events.push({ seq, position, type, created, id, checksum, data: text.toString("utf8", at, at + bytes) })
    }
    at += bytes
  }
  if (at !== text.length) throw new Error("its payloads have another length")
  return events
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** The events of a block, or those that are wanted; the reason if it is damaged. It is decompressed off the event loop. */
export const unpack = (
  packed: Uint8Array,
  isWanted: (seq: number) => boolean = () => true
): Effect.Effect<Either.Either<ReadonlyArray<KeptEvent>, string>> =>
  Effect.tryPromise({
    try: async () => {
      const [checksum, compressed] = [packed.subarray(0, checksumBytes), packed.subarray(checksumBytes)]
      if (Buffer.from(checksum).readUInt32BE() !== crc32(compressed)) throw new Error("its checksum differs")
      return eventsIn(await decompressing(compressed), isWanted)
    },
    catch: reasonOf
  }).pipe(Effect.either)

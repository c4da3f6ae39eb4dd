/**
 * The columns of a block: one array for each field of its events and of its parts' rows, so that alike values stand
 * together. Numbers that grow are differences, which compress better. Pure. Spec: ST-33.
 */
import { crc32 } from "node:zlib"
import { Array as Arr, Schema } from "effect"
import type { PartRow } from "../projection/Tables.ts"
import { compile } from "../support/Conforms.ts"

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

/** `seq` counts from the message's number, the other numbers of events from `seq`. */
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
export type Columns = typeof Columns.Type

const conforms = compile(Columns.ast)

/** Every read of a block checks thousands of numbers, and `Schema.is` takes as long for them as decompression. */
export const isColumns = (value: unknown): value is Columns => conforms(value)

const differences = (values: ReadonlyArray<number>): ReadonlyArray<number> =>
  values.map((value, index) => value - (values[index - 1] ?? 0))

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
export const referencesOf = (part: KeptPart): ReadonlyArray<number> =>
  references.flatMap((column) => part[column] ?? [])

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
export const columnsOf = (events: ReadonlyArray<CheckedEvent>, parts: ReadonlyArray<KeptPart>): Columns => ({
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
export const eventsIn = (
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
export const partsIn = (columns: PartColumns, isWanted: (message: number) => boolean): ReadonlyArray<KeptPart> => {
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
export const check = ({ events, parts }: Columns, payloadBytes: number): void => {
  const { bytes, types, ...others } = events
  alike(bytes, Object.values(others))
  if (others.type.some((place) => types[place] === undefined)) throw new Error("a type has no name")
  const { message, ...rest } = parts
  alike(message, Object.values(rest))
  if (bytes.reduce((sum, length) => sum + length, 0) !== payloadBytes) {
    throw new Error("its payloads have another length")
  }
}

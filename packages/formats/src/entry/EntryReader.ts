/**
 * Reads entry logs of all versions and dialects as a conversation, in one pass: a record's parent is before it in the file,
 * so that the items form a tree by construction. `Migration.ts` upgrades old records, `EntryItem.ts` maps entries to items.
 * Spec: FM-10..FM-19 in specs/formats.md.
 */
import type { FileSystem } from "@effect/platform/FileSystem"
import { Chunk, Effect, Either, Option, Predicate, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type * as Conversation from "../conversation/Conversation.ts"
import { type EventStream, streamOf } from "../conversation/EventStream.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import { bodyOf, type BodyOf, isEntryRecord, isKnownType } from "./Entry.ts"
import { dialectOf } from "./EntryDialect.ts"
import { type EntryError, NotASession, SessionVersionTooNew } from "./EntryErrors.ts"
import { itemOf } from "./EntryItem.ts"
import { besideLog, type Lookup, refersToBlob, withPictures } from "./EntryPictures.ts"
import { currentVersion, type Header, isHeader, isTitleSlot, readHeader, timeOf, versionOf } from "./Header.ts"
import * as Migration from "./Migration.ts"

export interface Options<E = never, R = never> extends Omit<JsonLines.Options, "isRecord"> {
  /** Finds the pictures that the log keeps as blobs. Default for bytes: they are missing. */
  readonly pictures?: Lookup<E, R>
}

/** Why a log cannot be read. */
export type ReadingError = EntryError | EventStream

type Read = JsonLines.LogRecord | Conversation.Problem

/** So many records after the header are read before the dialect is decided, or so many characters. */
const lookahead = 50
const lookaheadLength = 1024 * 1024

/** Whether an object beside damaged bytes is a header or an entry, of any version. */
export const isRecord = (value: JsonRecord): boolean =>
  isHeader(value) ||
  (Predicate.isString(value["type"]) &&
    ((isEntryRecord(value) && "parentId" in value) || (isKnownType(value) && Predicate.isString(value["timestamp"]))))

const problem = (place: Conversation.Place, kind: string, details: string): Conversation.Problem => ({
  _tag: "Problem",
  place,
  kind,
  details
})

/** The records of a log so far, by id. Later records of an id hide earlier ones. */
const makeIndex = () => {
  const keys: Array<string> = []
  const parents: Array<number> = []
  const ordinals = new Map<string, number>()
  /** How often an id occurred, if more than once: counting copies anew would make many duplicates quadratic. */
  const copies = new Map<string, number>()
  const ordinalOf = (id: string): number => ordinals.get(id) ?? -1
  return {
    keyOf: (id: string): string | null => keys[ordinalOf(id)] ?? null,
    /** The key of a record, if the record or one of its ancestors is the one that `id` names. */
    onPath: (from: string | null, id: string): string | null => {
      const target = ordinalOf(id)
      let at = from === null ? -1 : ordinalOf(from)
      // A parent is before its child: no earlier record can lead to the target.
      while (at > target) at = parents[at] ?? -1
      return at >= 0 && at === target ? (keys[at] ?? null) : null
    },
    /** Adds a record and returns its key, which is its id unless a record before it has the same. */
    add: (id: string, parentId: string | null): string => {
      let key = id
      for (let copy = copies.get(id) ?? 1; ordinals.has(key);) {
        key = `${id}~${++copy}`
        copies.set(id, copy)
      }
      parents.push(parentId === null ? -1 : ordinalOf(parentId))
      keys.push(key)
      ordinals.set(key, keys.length - 1)
      ordinals.set(id, keys.length - 1)
      return key
    }
  }
}

/** Turns the records after a header into items and problems. */
const makeItems = (migration: Migration.Migration, createdAt: number) => {
  const index = makeIndex()
  let time = createdAt

  const parentOf = (id: string, parentId: unknown, found: (kind: string, details: string) => void): string | null => {
    if (!Predicate.isString(parentId)) return null
    if (parentId === id && index.keyOf(id) === null)
      found("self-parent", "The record is its own parent; it begins a tree.")
    else if (index.keyOf(parentId) !== null) return parentId
    else found("missing-parent", "No record before this one has its parent's id; it begins a tree.")
    return null
  }

  /** Its own id says that a compaction keeps nothing, on purpose. */
  const losesKept = (id: string, { firstKeptEntryId }: BodyOf<"compaction">, parent: string | null): boolean =>
    Predicate.isString(firstKeptEntryId) && firstKeptEntryId !== id && index.onPath(parent, firstKeptEntryId) === null

  return (read: JsonLines.LogRecord, emit: (piece: Conversation.Piece) => void): void => {
    const { place } = read
    const found = (kind: string, details: string) => emit(problem(place, kind, details))
    if (read.value["type"] === "session") return found("second-header", "Another session header was skipped.")
    const { keptNothing, record } = migration.next(read.value, read.slot)
    if (!isEntryRecord(record)) return found("not-an-entry", "The record has no type or no id; it was skipped.")
    const id = String(record["id"])
    const decoded = bodyOf(record)
    if (decoded !== undefined && Either.isLeft(decoded)) {
      found(
        "wrong-field",
        `The record is kept, but not shown: ${decoded.left} has another form than its type requires.`
      )
    }
    const body = decoded === undefined ? undefined : Option.getOrUndefined(Either.getRight(decoded))
    const parentId = parentOf(id, record["parentId"], found)
    const parent = parentId === null ? null : index.keyOf(parentId)
    const key = index.add(id, parentId)
    if (key !== id) found("duplicate-id", `The id occurred before; the record is called ${key}.`)
    const own = body?.type === "message" ? timeOf(body.message.timestamp) : undefined
    const stamp = own ?? timeOf(record["timestamp"])
    if (stamp === undefined) found("missing-time", "The record has no valid time; it has that of the record before it.")
    time = stamp ?? time
    if (keptNothing === true || (body?.type === "compaction" && losesKept(id, body, parent))) {
      found("nothing-kept", "The first kept record of this compaction is not on its branch; it keeps nothing.")
    }
    if (body?.type === "compaction" && Predicate.isNotNullable(body.retainedTail)) {
      found(
        "retained-tail",
        "The compaction holds the messages it keeps; the records from its first kept one are shown."
      )
    }
    if (body?.type === "label" && index.keyOf(body.targetId) === null) {
      found("missing-target", "No record before this label has its target's id; it names nothing.")
    }
    const isLocal = body?.type === "compaction" || body?.type === "context_edit"
    const keyOf = (target: string) => (isLocal ? index.onPath(parent, target) : index.keyOf(target))
    if (body?.type === "context_edit" && keyOf(body.targetId) === null) {
      found("missing-target", "No record before this edit on its branch has its target's id; it changes nothing.")
    }
    emit(itemOf({ key, parent, time, place, record }, body, keyOf))
  }
}

/** A log whose header was read, until its dialect is decided. */
interface Opening {
  readonly header: Header
  readonly place: Conversation.Place
  readonly slot: number
  /** omp's title slot. */
  readonly titleSlot: JsonRecord | undefined
  readonly version: number
  readonly ahead: Array<Read>
  /** Characters of the records ahead. */
  length: number
}

const headOf = (opening: Opening, migrated: JsonRecord): Conversation.Head => {
  const { ahead, header, titleSlot, version } = opening
  const records = ahead.flatMap((read) => (read._tag === "LogRecord" ? [read.value] : []))
  const times = [header, ...records].map(({ timestamp }) => timeOf(timestamp))
  return {
    _tag: "Head",
    dialect: dialectOf(header, titleSlot === undefined ? records : [titleSlot, ...records]),
    ...readHeader(header, titleSlot),
    version,
    createdAt: times.find(Predicate.isNotUndefined) ?? 0,
    ...(titleSlot === undefined ? {} : { before: [titleSlot] }),
    record: migrated
  }
}

/** Reads one log: `push` its records and problems in order, then call `end` once. */
export const make = () => {
  let titleSlot: JsonRecord | undefined
  let opening: Opening | undefined
  let next: ReturnType<typeof makeItems> | undefined
  let out: Array<Conversation.Piece> = []
  const emit = (piece: Conversation.Piece) => void out.push(piece)

  const open = (read: JsonLines.LogRecord): EntryError | undefined => {
    const { place, slot, value } = read
    if (titleSlot === undefined && isTitleSlot(value)) {
      titleSlot = value
      return undefined
    }
    if (!isHeader(value)) return new NotASession({ place })
    const version = versionOf(value)
    if (version !== undefined && version > currentVersion) {
      return new SessionVersionTooNew({ found: version, supported: currentVersion })
    }
    if (version === undefined) {
      emit(problem(place, "wrong-field", `The version is not a number; the log is read as version ${currentVersion}.`))
    }
    opening = { header: value, place, slot, titleSlot, version: version ?? currentVersion, ahead: [], length: 0 }
    return undefined
  }

  const item = (read: Read) => {
    if (read._tag === "Problem") emit(read)
    else next?.(read, emit)
  }

  const begin = (log: Opening): EventStream | undefined => {
    const stream = streamOf([
      log.header,
      ...log.ahead.flatMap((read) => (read._tag === "LogRecord" ? [read.value] : []))
    ])
    if (stream !== undefined) return stream
    const migration = Migration.make(log.header, log.slot)
    const head = headOf(log, migration.header)
    emit(head)
    next = makeItems(migration, head.createdAt)
    for (const read of log.ahead) item(read)
    opening = undefined
    return undefined
  }

  const take = (read: Read): ReadingError | undefined => {
    if (next !== undefined) item(read)
    else if (opening !== undefined) {
      opening.ahead.push(read)
      opening.length += read._tag === "LogRecord" ? read.text.length : 0
      if (opening.ahead.length >= lookahead || opening.length >= lookaheadLength) return begin(opening)
    } else if (read._tag === "Problem") emit(read)
    else return open(read)
    return undefined
  }

  const taken = (): ReadonlyArray<Conversation.Piece> => {
    const pieces = out
    out = []
    return pieces
  }

  return {
    push: (reads: Iterable<Read>): Either.Either<ReadonlyArray<Conversation.Piece>, ReadingError> => {
      for (const read of reads) {
        const error = take(read)
        if (error !== undefined) return Either.left(error)
      }
      return Either.right(taken())
    },
    end: (): Either.Either<ReadonlyArray<Conversation.Piece>, ReadingError> => {
      const error = opening === undefined ? undefined : begin(opening)
      if (error !== undefined) return Either.left(error)
      return next === undefined ? Either.left(new NotASession({})) : Either.right(taken())
    }
  }
}

const noPictures: Lookup<never, never> = () => Effect.succeedNone

/** The conversation of a log's bytes. Fails before the head if the bytes are not an entry log that this release reads. */
export const fromBytes =
  <E2 = never, R2 = never>(options: Options<E2, R2> = {}) =>
  <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Conversation.Piece, E | E2 | ReadingError, R | R2> =>
    Stream.suspend(() => {
      const reader = make()
      const { pictures, ...rest } = options
      const filled = withPictures<E2, R2>(pictures ?? noPictures)
      const withAll = (pieces: ReadonlyArray<Conversation.Piece>) =>
        pieces.some(refersToBlob)
          ? Effect.map(Effect.forEach(pieces, filled), (all) => Chunk.unsafeFromArray(all.flat()))
          : Effect.succeed(Chunk.unsafeFromArray(pieces))
      return bytes.pipe(
        JsonLines.read({ ...rest, isRecord }),
        Stream.mapChunksEffect((reads) => Effect.flatMap(reader.push(reads), withAll)),
        Stream.concat(Stream.unwrap(Effect.map(Effect.flatMap(Effect.suspend(reader.end), withAll), Stream.fromChunk)))
      )
    })

/** The conversation of a file, which is only read. By default its pictures are looked up in its tool's blob store. */
export const fromPath = <E = never, R = never>(
  path: string,
  { pictures, ...options }: Options<E, R> = {}
): Stream.Stream<Conversation.Piece, E | ReadingError | LogFile.LogUnreadable, R | FileSystem> =>
  fromBytes<E, R | FileSystem>({ ...options, pictures: pictures ?? besideLog(path) })(LogFile.bytes(path))

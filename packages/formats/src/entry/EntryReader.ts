/**
 * Reads entry logs of all versions and dialects as a conversation, in one pass: a record's parent is before it in the file,
 * so that the items form a tree by construction. `EntryItem.ts` maps entries to items.
 * Spec: FM-10..FM-27 in specs/formats.md.
 */
import { createHash } from "node:crypto"
import { dirname, join } from "node:path"
import { FileSystem } from "@effect/platform/FileSystem"
import { Chunk, Effect, Either, Option, Predicate, Schema, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { type BlobHash, hashOf as digestOf, parseRef } from "../blob/BlobStore.ts"
import type * as Conversation from "../conversation/Conversation.ts"
import { type Dialect, RecordPlace } from "../conversation/Conversation.ts"
import { type EventStream, streamOf } from "../conversation/EventStream.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import {
  bodyOf,
  type BodyOf,
  currentVersion,
  type Header,
  isEntryRecord,
  isHeader,
  isKnownType,
  isTitleSlot,
  readHeader,
  timeOf,
  versionOf
} from "./Entry.ts"
import { itemOf } from "./EntryItem.ts"

// The errors of reading an entry log.

/** The first record is not the header of a session (LO-3). */
export class NotASession extends Schema.TaggedError<NotASession>("@daybook/formats/NotASession")("NotASession", {
  /** The first record; absent if the file has none. */
  place: Schema.optionalWith(RecordPlace, { exact: true })
}) {
  override get message() {
    const found = this.place === undefined ? "it has no records" : `line ${this.place.line} is not a session header`
    return `this file is not an entry log: ${found}`
  }
}

/** The log is of a later version than this release reads (MI-8). */
export class SessionVersionTooNew extends Schema.TaggedError<SessionVersionTooNew>(
  "@daybook/formats/SessionVersionTooNew"
)("SessionVersionTooNew", { found: Schema.Number, supported: Schema.Int }) {
  override get message() {
    return `the log has version ${this.found}; this release reads versions up to ${this.supported}: use a newer release`
  }
}

/** Another program wrote to the log while it was migrated. Nothing was changed. */
export class LogChanged extends Schema.TaggedError<LogChanged>("@daybook/formats/LogChanged")("LogChanged", {
  path: Schema.String
}) {
  override get message() {
    return `${this.path} was written to meanwhile; close the program that uses it, then try again`
  }
}

export const EntryError = Schema.Union(NotASession, SessionVersionTooNew)
export type EntryError = typeof EntryError.Type

// Puts the pictures of blobs into items; the record keeps the reference for an export.

/** Finds the bytes of a blob; none if it is missing. */
type Lookup<E, R> = (hash: BlobHash) => Effect.Effect<Option.Option<Uint8Array>, E, R>

/**
 * The blobs that belong to a log in its tool's own folders: `sessions/FOLDER/LOG` and `blobs/HASH`. They are only read; a
 * blob that is missing, cannot be read or has other bytes is none.
 */
const besideLog = (path: string): Lookup<never, FileSystem> => {
  const folder = join(dirname(path), "..", "..", "blobs")
  return (hash) =>
    Effect.flatMap(FileSystem, (files) => Effect.option(files.readFile(join(folder, hash)))).pipe(
      Effect.map(Option.filter((bytes) => digestOf(bytes) === hash))
    )
}

type Part = Conversation.Content[number]

const hashOf = (part: Part): BlobHash | undefined => (part.type === "media" ? parseRef(part.data) : undefined)

const refersToBlob = (piece: Conversation.Piece): boolean =>
  "content" in piece && piece.content.some((part) => hashOf(part) !== undefined)

/** The piece with its pictures. A missing picture becomes a text and a problem. */
const withPictures =
  <E, R>(lookup: Lookup<E, R>) =>
  (piece: Conversation.Piece): Effect.Effect<ReadonlyArray<Conversation.Piece>, E, R> =>
    Effect.gen(function* () {
      if (!("content" in piece) || !refersToBlob(piece)) return [piece]
      const problems: Array<Conversation.Problem> = []
      const content: Array<Part> = []
      for (const part of piece.content) {
        const hash = hashOf(part)
        const bytes = hash === undefined ? Option.none() : yield* lookup(hash)
        if (part.type === "text" || hash === undefined) content.push(part)
        else if (Option.isSome(bytes)) content.push({ ...part, data: Buffer.from(bytes.value).toString("base64") })
        else {
          content.push({ type: "text", text: `[the picture ${hash} is missing]` })
          const details = `The picture ${hash} is not in the blob store; a text says so.`
          problems.push({ _tag: "Problem", place: piece.place, kind: "missing-picture", details })
        }
      }
      return [...problems, { ...piece, content }]
    })

// Tells which tool wrote an entry log, by the shapes of its first records.

type EntryDialect = Extract<Dialect, "pi" | "xcsh" | "omp">

const typesOfOmp = new Set<unknown>(["title_change", "model_usage", "credential_pin", "reset_boundary", "archive"])
const typesOfXcsh = new Set<unknown>([
  "context_change",
  "mcp_tool_selection",
  "mode_change",
  "service_tier_change",
  "session_init",
  "ttsr_injection"
])
const typesOfPi = new Set<unknown>(["session_info", "active_tools_change"])
const headerFieldsOfOmp = ["additionalDirectories", "previousSessionFiles", "providerPromptCacheKey"]
const headerFieldsOfPi = ["provider", "modelId", "thinkingLevel", "branchedFrom"]
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const byFields = (record: JsonRecord): EntryDialect | undefined => {
  const { type } = record
  const has = (field: string) => field in record
  if (isTitleSlot(record) || typesOfOmp.has(type)) return "omp"
  if (type === "session" && headerFieldsOfOmp.some(has)) return "omp"
  if (typesOfPi.has(type) || has("fromHook") || (type === "model_change" && has("modelId"))) return "pi"
  if (typesOfXcsh.has(type) || has("fromExtension") || (type === "model_change" && has("model"))) return "xcsh"
  if (type !== "session") return undefined
  if (has("title") || has("titleSource")) return "xcsh"
  return headerFieldsOfPi.some(has) ? "pi" : undefined
}

/**
 * The dialect of a log that begins with these records. omp shares the marks of xcsh, so its own marks decide. Without any
 * mark, an id that is a UUID says pi; otherwise the default is xcsh, the dialect of the format's description.
 */
export const dialectOf = (header: JsonRecord, records: ReadonlyArray<JsonRecord>): EntryDialect => {
  const found = new Set([header, ...records].map(byFields))
  const marked = (["omp", "pi", "xcsh"] as const).find((dialect) => found.has(dialect))
  return marked ?? (uuid.test(String(header["id"])) ? "pi" : "xcsh")
}

// Migrates entry logs of version 1 and 2 to version 3; the same log gets the same ids each time.

/** A record of version 3. `keptNothing`: its index of the first kept record names no entry before it. */
type Migrated = { readonly record: JsonRecord; readonly keptNothing?: true }

export interface Migration {
  readonly header: JsonRecord
  /** The record in version 3. Call it for each record after the header, in order, with its slot. */
  readonly next: (record: JsonRecord, slot: number) => Migrated
}

/** Each step is a bijection of 32-bit numbers, so two indexes never get the same id. */
const scrambled = (value: number): number => {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** Ids of eight hexadecimal digits for the records of a session by their index, all different. */
const idsOf = (sessionID: string) => {
  const key = createHash("sha256").update(sessionID).digest().readUInt32LE(0)
  return (index: number): string =>
    scrambled(index ^ key)
      .toString(16)
      .padStart(8, "0")
}

const without = (record: JsonRecord, field: string): JsonRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== field))

/** Version 1 has no ids: entries get one, and a chain in file order (MI-1..MI-3). */
const toVersion2 = (sessionID: string): Migration["next"] => {
  const idOf = idsOf(sessionID)
  const indexes = new Set<number>()
  let parentId: string | null = null
  return (record, index) => {
    if (!Predicate.isString(record["type"]) || record["type"] === "session") return { record }
    const id = idOf(index)
    const linked: JsonRecord = { ...record, id, parentId }
    parentId = id
    indexes.add(index)
    const { firstKeptEntryIndex: kept } = record
    if (record["type"] !== "compaction" || !Predicate.isNumber(kept)) return { record: linked }
    const rest = without(linked, "firstKeptEntryIndex")
    return indexes.has(kept)
      ? { record: { ...rest, firstKeptEntryId: idOf(kept) } }
      : { record: without(rest, "firstKeptEntryId"), keptNothing: true }
  }
}

/** Version 3 calls the role `hookMessage` `custom` (MI-5). */
const toVersion3 = (record: JsonRecord): JsonRecord => {
  const { message, type } = record
  return type === "message" && Predicate.isReadonlyRecord(message) && message["role"] === "hookMessage"
    ? { ...record, message: { ...message, role: "custom" } }
    : record
}

/** Begins the migration of a log. A log of version 3 stays as it is (MI-6). */
export const makeMigration = (header: Header, headerSlot: number): Migration => {
  const version = versionOf(header) ?? currentVersion
  if (version >= currentVersion) return { header, next: (record) => ({ record }) }
  const step = version < 2 ? toVersion2(header.id) : (record: JsonRecord): Migrated => ({ record })
  return {
    header: { ...header, version: currentVersion },
    next: (record, slot) => {
      const migrated = step(record, slot - headerSlot)
      return { ...migrated, record: toVersion3(migrated.record) }
    }
  }
}

/** A whole log in version 3: a header and entries, in order. */
export const migrate = (header: Header, records: ReadonlyArray<JsonRecord>): ReadonlyArray<JsonRecord> => {
  const migration = makeMigration(header, 0)
  return [migration.header, ...records.map((record, at) => migration.next(record, at + 1).record)]
}

export interface Options<E = never, R = never> extends Omit<JsonLines.Options, "isRecord"> {
  /** Finds the pictures that the log keeps as blobs. Default for bytes: they are missing. */
  readonly pictures?: Lookup<E, R>
}

/** Why a log cannot be read. */
export type ReadingError = EntryError | EventStream

type LineResult = JsonLines.LogRecord | Conversation.Problem

/** So many records after the header are read before the dialect is decided, or so many characters. */
const lookahead = 50
const lookaheadLength = 1024 * 1024

/** Whether an object beside damaged bytes is a header or an entry, of any version. */
export const isRecord = (value: JsonRecord): boolean =>
  isHeader(value) ||
  (Predicate.isString(value["type"]) &&
    ((isEntryRecord(value) && "parentId" in value) || (isKnownType(value) && Predicate.isString(value["timestamp"]))))

const problem = (place: Conversation.RecordPlace, kind: string, details: string): Conversation.Problem => ({
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
  /** How often an id occurred, if more than once: counting copies again would make many duplicates quadratic. */
  const copies = new Map<string, number>()
  const ordinalOf = (id: string): number => ordinals.get(id) ?? -1
  return {
    keyOf: (id: string): string | null => keys[ordinalOf(id)] ?? null,
    /** The key of a record, if `id` names the record or one of its ancestors. */
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
const makeItems = (migration: Migration, createdAt: number) => {
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
  readonly place: Conversation.RecordPlace
  readonly slot: number
  /** omp's title slot. */
  readonly titleSlot: JsonRecord | undefined
  readonly version: number
  readonly ahead: Array<LineResult>
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

  const item = (read: LineResult) => {
    if (read._tag === "Problem") emit(read)
    else next?.(read, emit)
  }

  const begin = (log: Opening): EventStream | undefined => {
    const stream = streamOf([
      log.header,
      ...log.ahead.flatMap((read) => (read._tag === "LogRecord" ? [read.value] : []))
    ])
    if (stream !== undefined) return stream
    const migration = makeMigration(log.header, log.slot)
    const head = headOf(log, migration.header)
    emit(head)
    next = makeItems(migration, head.createdAt)
    for (const read of log.ahead) item(read)
    opening = undefined
    return undefined
  }

  const take = (read: LineResult): ReadingError | undefined => {
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
    push: (reads: Iterable<LineResult>): Either.Either<ReadonlyArray<Conversation.Piece>, ReadingError> => {
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

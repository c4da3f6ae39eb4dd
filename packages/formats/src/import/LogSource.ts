/** Opens a log of any dialect as a conversation. Spec: FM-166, FM-167, FM-444, IM-48 in specs/formats.md. */
import { FileSystem } from "@effect/platform/FileSystem"
import { Chunk, Effect, Either, Option, Predicate, Schema, Stream } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import * as ClaudeReader from "../claude/ClaudeReader.ts"
import { isDocument } from "../codex/CodexDocument.ts"
import * as CodexReader from "../codex/CodexReader.ts"
import type { Dialect, Piece } from "../conversation/Conversation.ts"
import { type EventStream, streamOf } from "../conversation/EventStream.ts"
import { isHeader, isTitleSlot } from "../entry/Entry.ts"
import * as EntryReader from "../entry/EntryReader.ts"
import { dialectOf as entryDialectOf } from "../entry/EntryReader.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import { decompressed, type LogUnreadable } from "../lines/LogFile.ts"
import type { Ends } from "../reading/DialectReader.ts"
import * as ThreadReader from "../thread/ThreadReader.ts"

// Says which tool wrote a log, by its first records and not by its name.

/** No tool that this release knows wrote the log. */
export class UnknownDialect extends Schema.TaggedError<UnknownDialect>("@daybook/formats/UnknownDialect")(
  "UnknownDialect",
  { details: Schema.String }
) {
  override get message() {
    return `not a session log of pi, xcsh, omp, a thread, Claude Code or Codex: ${this.details}`
  }
}

/** So many records decide. */
export const lookahead = 64

const has = (record: JsonRecord, ...fields: ReadonlyArray<string>): boolean =>
  fields.every((field) => Predicate.isString(record[field]))

const typesOfCodex = /^(?:session_meta|response_item|event_msg|turn_context|compacted)$/

const isThread = (record: JsonRecord): boolean =>
  (record["recordType"] === "message" || record["recordType"] === "compaction") && "seq" in record

const isCodex = (record: JsonRecord): boolean => {
  const { payload, record_type, type } = record
  if (has(record, "type") && typesOfCodex.test(String(type))) return Predicate.isReadonlyRecord(payload)
  return record_type === "state" || (type === undefined && has(record, "id", "timestamp") && "instructions" in record)
}

/** `uuid` and `parentUuid` link its records; those without say the session, or a leaf or message of it. */
const isClaude = (record: JsonRecord): boolean =>
  has(record, "type") &&
  (("parentUuid" in record && has(record, "uuid", "sessionId")) ||
    (record["type"] === "summary" && has(record, "summary", "leafUuid")) ||
    (record["type"] === "file-history-snapshot" && "snapshot" in record) ||
    (has(record, "sessionId") && !has(record, "id")))

/** The dialect of a log that begins with these records. The first record that is of a dialect decides. */
export const detect = (records: ReadonlyArray<JsonRecord>): Either.Either<Dialect, UnknownDialect | EventStream> => {
  const stream = streamOf(records)
  if (stream !== undefined) return Either.left(stream)
  for (const record of records) {
    if (isThread(record)) return Either.right("thread")
    if (isCodex(record)) return Either.right("codex")
    if (isHeader(record) || isTitleSlot(record)) return Either.right(entryDialectOf(record, records))
    if (isClaude(record)) return Either.right("claude-code")
  }
  const types = [...new Set(records.map(({ type }) => (Predicate.isString(type) ? type.slice(0, 40) : "none")))]
  const found =
    records.length === 0 ? "it has no records" : `its records have the types ${types.slice(0, 5).join(", ")}`
  return Either.left(new UnknownDialect({ details: found }))
}

const ofFile = Effect.fnUntraced(function* (path: string) {
  const bytes = decompressed(LogFile.bytes(path))
  const start = yield* Stream.runHead(bytes)
  if (Option.exists(start, isDocument)) return "codex"
  const records = yield* bytes.pipe(
    JsonLines.read({ isRecord: (value) => isClaude(value) || isCodex(value) || isThread(value) }),
    Stream.filterMap((piece) => (piece._tag === "LogRecord" ? Option.some(piece.value) : Option.none())),
    Stream.take(lookahead),
    Stream.runCollect
  )
  return yield* detect(Chunk.toReadonlyArray(records))
})

/** The dialect of a file, or of a thread's folder. Nothing is changed. */
export const dialectOf = Effect.fn("Detection.dialectOf")(function* (path: string) {
  const files = yield* FileSystem
  const type = yield* Effect.option(Effect.map(files.stat(path), (info) => info.type))
  if (type._tag === "None" || type.value !== "Directory") return yield* ofFile(path)
  const records = `${path}/session.jsonl`
  const isThreadFolder = yield* Effect.orElseSucceed(files.exists(records), () => false)
  if (isThreadFolder) return "thread" as const
  return yield* new UnknownDialect({ details: "it is a folder without session.jsonl; name a file in it" })
})

/** The given dialect of a log, or the dialect that its content shows. */
export type Choice = Dialect | "auto"

export type Source = Stream.Stream<Piece, EntryReader.ReadingError | UnknownDialect | LogUnreadable, FileSystem>

const entries = (path: string): Source => EntryReader.fromPath(path)

const readers: Readonly<Record<Dialect, (path: string, ends: Ends) => Source>> = {
  pi: entries,
  xcsh: entries,
  omp: entries,
  thread: (path) => ThreadReader.read(path),
  "claude-code": (path, ends) => ClaudeReader.file(path, { ends }),
  codex: (path, ends) => CodexReader.file(path, { ends })
}

/** Opens a log, which is only read. `ends`: after how many items earlier imports of it ended (IM-420). */
export const open = (path: string, dialect: Choice = "auto", ends: Ends = []): Source =>
  dialect === "auto"
    ? Stream.unwrap(Effect.map(dialectOf(path), (found) => readers[found](path, ends)))
    : readers[dialect](path, ends)

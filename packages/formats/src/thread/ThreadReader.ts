/**
 * Reads a thread in the terms of all dialects, as a stream. The format stores neither the provider nor the model
 * of an answer: neutral values are filled in and reported. Reading never changes the folder. Spec: FM-118..FM-121 (TH-4,
 * TH-17).
 */
import { basename, dirname, extname, join } from "node:path"
import { FileSystem } from "@effect/platform/FileSystem"
import { Effect, Either, Option, Predicate, Stream } from "effect"
import { describeIssues } from "@daybook/log/support/Issues"
import type { AnswerPart, Content, Head, Item, Piece, RecordPlace, Problem } from "../conversation/Conversation.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import * as LogFile from "../lines/LogFile.ts"
import {
  check,
  type ContentBlock,
  decodeMetadata,
  decodeRecord,
  type MessageRecord,
  metadataFile,
  recordsFile,
  type ThreadMetadata,
  timeOf
} from "./ThreadRecord.ts"

type Answer = Extract<Item, { readonly _tag: "Answer" }>

const start: RecordPlace = { line: 1, offset: 0 }

const unknown = "unknown"

/** The provider and the model of all answers; a name such as `anthropic/claude` has both. */
const modelOf = (name: string | undefined): Pick<Answer, "provider" | "model"> => {
  const slash = name?.indexOf("/") ?? -1
  if (name === undefined || name === "") return { provider: unknown, model: unknown }
  return slash > 0 && slash < name.length - 1
    ? { provider: name.slice(0, slash), model: name.slice(slash + 1) }
    : { provider: unknown, model: name }
}

const contentOf = (blocks: ReadonlyArray<ContentBlock>): Content =>
  blocks.flatMap((block) => (block.type === "text" ? [block] : []))

const partsOf = (blocks: ReadonlyArray<ContentBlock>): ReadonlyArray<AnswerPart> =>
  blocks.map((block) =>
    block.type === "text"
      ? block
      : { type: "call", id: block.id || unknown, name: block.name || unknown, input: block.arguments }
  )

/** Repairs that keep a record readable: a text in place of blocks becomes one block. */
const repaired = (value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  value["recordType"] === "message" && typeof value["content"] === "string"
    ? { ...value, content: [{ type: "text", text: value["content"] }] }
    : value

/** Turns records into items. Remembers the index that later records refer to, not their texts. */
const makeInterpreter = (model: string | undefined, createdAt: number) => {
  const answered = modelOf(model)
  /** The message records: `seq` and key, in file order. */
  const messages: Array<readonly [number, string]> = []
  const keys = new Set<string>()
  /** The tools of the calls without a result. */
  const pending = new Map<string, string>()
  let [parent, time]: [string | null, number] = [null, createdAt]

  const keyOf = ({ seq }: Readonly<Record<string, unknown>>, { offset }: RecordPlace): string =>
    Predicate.isNumber(seq) && !keys.has(`${seq}`) ? `${seq}` : `byte-${offset}`

  const message = (record: MessageRecord, base: Omit<Answer, "_tag" | "provider" | "model" | "parts">): Item => {
    switch (record.role) {
      case "user":
        return { _tag: "User", ...base, content: contentOf(record.content) }
      case "assistant":
        for (const block of record.content) if (block.type === "toolCall") pending.set(block.id, block.name)
        return { _tag: "Answer", ...base, ...answered, parts: partsOf(record.content) }
      case "toolResult": {
        const callID = record.toolCallId || unknown
        const tool = record.toolName ?? pending.get(callID) ?? ""
        pending.delete(callID)
        return {
          _tag: "Result",
          ...base,
          callID,
          tool,
          content: contentOf(record.content),
          failed: record.isError === true
        }
      }
    }
  }

  return ({ place, value }: JsonLines.LogRecord): ReadonlyArray<Item | Problem> => {
    const problems: Array<Problem> = []
    const report = (kind: string, details: string) => void problems.push({ _tag: "Problem", place, kind, details })
    const key = keyOf(value, place)
    if (key.startsWith("byte-")) {
      report("duplicate-id", `The record has no sequence number of its own; it is named ${key}.`)
    }
    const fixed = repaired(value)
    if (fixed !== value) report("bare-content", "The content was a text; it was read as one text block.")
    const decoded = decodeRecord(fixed)
    if (Either.isRight(decoded)) time = Date.parse(decoded.right.timestamp)
    const base = { key, parent, time, place, record: value }
    keys.add(key)
    parent = key
    if (Either.isLeft(decoded)) {
      report("unknown-record", `The record was kept but not interpreted: ${describeIssues(decoded.left, "")}.`)
      return [...problems, { _tag: "Opaque", ...base }]
    }
    const record = decoded.right
    if (record.recordType === "message") {
      messages.push([record.seq, key])
      return [...problems, message(record, base)]
    }
    const { firstKeptSeq, modifiedFiles, readFiles, summary, tokensBefore } = record
    const firstKept = messages.find(([seq]) => seq >= firstKeptSeq)?.[1] ?? null
    return [...problems, { _tag: "Compaction", ...base, summary, firstKept, tokensBefore, readFiles, modifiedFiles }]
  }
}

const problemAtStart = (kind: string, details: string): Problem => ({ _tag: "Problem", place: start, kind, details })

/** The head of a thread, and what is wrong with its metadata. */
const headOf = (name: string, text: Option.Option<string>) => {
  const decoded = Option.match(text, {
    onNone: () => Either.left("metadata.json is missing or cannot be read"),
    onSome: (text) => Either.mapLeft(decodeMetadata(text), (error) => describeIssues(error, "metadata.json"))
  })
  const metadata: ThreadMetadata | undefined = Either.getOrUndefined(decoded)
  const id = Option.getOrUndefined(Either.getRight(check(name)))
  const createdAt = metadata === undefined ? (id === undefined ? 0 : timeOf(id)) : Date.parse(metadata.createdAt)
  const head: Head = {
    _tag: "Head",
    dialect: "thread",
    id: metadata?.id ?? name,
    version: 1,
    createdAt,
    record: metadata === undefined ? {} : { ...metadata },
    ...(metadata?.name === undefined || metadata.name === "" ? {} : { title: metadata.name })
  }
  const problems = Either.isLeft(decoded)
    ? [problemAtStart("bad-metadata", `${decoded.left}; name, model and source are unknown.`)]
    : []
  return { head, metadata, problems }
}

const synthetic = problemAtStart(
  "synthetic-values",
  "The format stores no provider and no usage: provider, model and usage of answers are filled in."
)

export const itemsOf =
  (model: string | undefined, createdAt: number, mode: JsonLines.Mode) =>
  <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Piece, E, R> =>
    Stream.suspend(() => {
      const interpret = makeInterpreter(model, createdAt)
      return bytes.pipe(
        JsonLines.read({ mode, isRecord: (value) => "recordType" in value }),
        Stream.mapConcat((piece): ReadonlyArray<Piece> => (piece._tag === "Problem" ? [piece] : interpret(piece)))
      )
    })

/** The files of a thread: a folder's, or a file of records that stands alone under a name of its own. */
const filesOf = (path: string, isFolder: boolean) => {
  const folder = isFolder ? path : dirname(path)
  return isFolder || basename(path) === recordsFile
    ? { name: basename(folder), records: join(folder, recordsFile), metadata: join(folder, metadataFile) }
    : { name: basename(path, extname(path)), records: path, metadata: undefined }
}

/** Reads a thread's folder, or a file of records: problems of the metadata, the head, then items and problems in file order. */
export const read = (
  path: string,
  mode: JsonLines.Mode = "recover"
): Stream.Stream<Piece, LogFile.LogUnreadable, FileSystem> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem
      const info = yield* Effect.option(files.stat(path))
      const isFolder = Option.exists(info, ({ type }) => type === "Directory")
      const { metadata: beside, name, records } = filesOf(path, isFolder)
      const text = beside === undefined ? Option.none() : yield* Effect.option(files.readFileString(beside))
      const { head, metadata, problems } = headOf(name, text)
      const items = LogFile.bytes(records).pipe(itemsOf(metadata?.model, head.createdAt, mode))
      return Stream.concat(Stream.make<Array<Piece>>(...problems, synthetic, head), items)
    })
  )

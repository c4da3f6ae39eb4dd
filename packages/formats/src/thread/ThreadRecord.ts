/** The records of a thread's `session.jsonl` and `metadata.json`. Spec: FM-100..FM-102 (seed 003, TH-1). */
import { Either, Schema } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"
import { clip } from "@daybook/log/support/Issues"
import { optional } from "@daybook/log/support/Optional"

// Defines the ids of threads: ULIDs, checked before a path is built from one.

/** A ULID in its canonical, upper-case form. It names a folder. */
export const ThreadID = Schema.String.pipe(Schema.pattern(/^[0-9A-HJKMNP-TV-Z]{26}$/), Schema.brand("ThreadID"))
export type ThreadID = typeof ThreadID.Type

/** The text is not an id of a thread. Nothing was read. An HTTP server answers 400. */
export class InvalidThreadID extends Schema.TaggedError<InvalidThreadID>("@daybook/formats/InvalidThreadID")(
  "InvalidThreadID",
  { id: Schema.String }
) {
  override get message() {
    return `${JSON.stringify(clip(this.id))} is not a thread's id: expected 26 digits and upper-case letters except I, L, O and U`
  }
}

const isThreadID = Schema.is(ThreadID)

export const check = (id: string): Either.Either<ThreadID, InvalidThreadID> =>
  isThreadID(id) ? Either.right(id) : Either.left(new InvalidThreadID({ id }))

/** The digits of a ULID. */
export const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** The time of a ULID in milliseconds since the epoch: its first ten characters. */
export const timeOf = (id: ThreadID): number =>
  id
    .slice(0, 10)
    .split("")
    .reduce((time, character) => time * 32 + alphabet.indexOf(character), 0)

const Timestamp = Schema.String.pipe(
  Schema.filter((text) => !Number.isNaN(Date.parse(text)), { message: () => "expected a time as ISO 8601" })
).annotations({ arbitrary: () => (fc) => fc.date({ noInvalidDate: true }).map((date) => date.toISOString()) })

export const ToolCall = Schema.Struct({
  type: Schema.Literal("toolCall"),
  id: Schema.String,
  name: Schema.String,
  arguments: JsonRecord
})
export type ToolCall = typeof ToolCall.Type

export const ContentBlock = Schema.Union(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }), ToolCall)
export type ContentBlock = typeof ContentBlock.Type

/** What the model is shown of a message, and what a caller appends. `content` is always an array (S7.12). */
export const ThreadMessage = Schema.Struct({
  role: Schema.Literal("user", "assistant", "toolResult"),
  content: Schema.Array(ContentBlock),
  /** The call that a `toolResult` answers. */
  toolCallId: optional(Schema.String),
  toolName: optional(Schema.String),
  isError: optional(Schema.Boolean)
})
export type ThreadMessage = typeof ThreadMessage.Type

/** A message's line. `seq` grows by one from record to record, starting at 1. */
export const MessageRecord = Schema.Struct({
  recordType: Schema.Literal("message"),
  schemaVersion: Schema.Literal(1),
  seq: Schema.NonNegativeInt,
  ...ThreadMessage.fields,
  timestamp: Timestamp
})
export type MessageRecord = typeof MessageRecord.Type

/** A compaction's line: an overlay, which replaces the messages with a smaller `seq` than `firstKeptSeq`. */
export const CompactionRecord = Schema.Struct({
  recordType: Schema.Literal("compaction"),
  schemaVersion: Schema.Literal(1),
  seq: Schema.NonNegativeInt,
  firstKeptSeq: Schema.NonNegativeInt,
  summary: Schema.String,
  /** Estimated tokens of the messages that were summarized. */
  tokensBefore: Schema.Finite.pipe(Schema.nonNegative()),
  /** Files that the compacted history read and did not modify. */
  readFiles: Schema.Array(Schema.String),
  modifiedFiles: Schema.Array(Schema.String),
  timestamp: Timestamp
})
export type CompactionRecord = typeof CompactionRecord.Type

export const ThreadRecord = Schema.Union(MessageRecord, CompactionRecord)
export type ThreadRecord = typeof ThreadRecord.Type

const total = Schema.Finite.pipe(Schema.nonNegative())

/** What the thread has used so far. */
export const ThreadMetrics = Schema.Struct({
  totalTurns: total,
  totalTokens: total,
  totalToolCalls: total,
  totalDurationMs: total
})
export type ThreadMetrics = typeof ThreadMetrics.Type

/** The content of `metadata.json`. */
export const ThreadMetadata = Schema.Struct({
  id: ThreadID,
  name: optional(Schema.String),
  createdAt: Timestamp,
  lastMessageAt: Timestamp,
  model: Schema.String,
  messageCount: Schema.NonNegativeInt,
  source: Schema.Literal("interactive", "cron"),
  cronJobId: optional(Schema.String),
  /** Instructions for this thread alone. */
  systemPromptOverride: optional(Schema.String),
  metrics: optional(ThreadMetrics),
  nextSeq: optional(Schema.NonNegativeInt)
})
export type ThreadMetadata = typeof ThreadMetadata.Type

/** Unknown fields stay in the value. */
export const decodeRecord = Schema.decodeUnknownEither(ThreadRecord, { onExcessProperty: "preserve" })
/** Unknown fields stay in the value. */
export const decodeMetadata = Schema.decodeUnknownEither(Schema.parseJson(ThreadMetadata), {
  onExcessProperty: "preserve"
})

/** The text of a message: its text blocks, one per line. */
export const textOf = (content: ReadonlyArray<ContentBlock>): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")

export const callsOf = (content: ReadonlyArray<ContentBlock>): ReadonlyArray<ToolCall> =>
  content.filter((block) => block.type === "toolCall")

export const recordsFile = "session.jsonl"
export const metadataFile = "metadata.json"

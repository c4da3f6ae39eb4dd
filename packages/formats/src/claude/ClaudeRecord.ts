/**
 * Defines a record of Claude Code's logs, of all versions so far: one schema for all types, since versions add fields to
 * all of them. Fields that this reader does not use stay in the item's `record`. Spec: FM-132 in specs/formats.md.
 */
import { Schema } from "effect"
import { count, flag, list, text, tolerant, unchecked, word } from "../reading/Tolerant.ts"

/** Tokens of an API message. Cache tokens are not part of `input_tokens`; reasoning is part of `output_tokens`. */
export const ApiUsage = Schema.Struct({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count
})
export type ApiUsage = typeof ApiUsage.Type

const ApiMessage = Schema.Struct({
  id: word,
  model: word,
  role: word,
  /** Blocks, or one text. */
  content: Schema.Union(Schema.String, Schema.Array(Schema.Unknown)),
  stop_reason: word,
  usage: tolerant(ApiUsage)
})

const Source = Schema.Struct({ type: word, media_type: word, data: text, url: word })

/** A block of an API message. */
export const Block = Schema.Struct({
  type: Schema.NonEmptyString,
  text,
  thinking: text,
  id: word,
  name: word,
  input: unchecked,
  tool_use_id: word,
  content: unchecked,
  is_error: flag,
  source: tolerant(Source)
})
export type Block = typeof Block.Type

const CompactMetadata = Schema.Struct({
  preTokens: count,
  preservedSegment: tolerant(Schema.Struct({ headUuid: word })),
  preservedMessages: tolerant(Schema.Struct({ uuids: list }))
})
export type CompactMetadata = typeof CompactMetadata.Type

const Attachment = Schema.Struct({
  type: word,
  content: unchecked,
  prompt: unchecked,
  commandMode: word,
  filename: word,
  path: word,
  snippet: text
})
export type Attachment = typeof Attachment.Type

export const ClaudeRecord = Schema.Struct({
  type: word,
  subtype: word,
  uuid: word,
  parentUuid: tolerant(Schema.NullOr(Schema.NonEmptyString)),
  logicalParentUuid: word,
  sessionId: word,
  agentId: word,
  timestamp: text,
  cwd: word,
  version: word,
  gitBranch: text,
  isSidechain: flag,
  isMeta: flag,
  isCompactSummary: flag,
  isVisibleInTranscriptOnly: flag,
  isApiErrorMessage: flag,
  costUSD: count,
  forkedFrom: tolerant(Schema.Struct({ sessionId: word })),
  message: tolerant(ApiMessage),
  compactMetadata: tolerant(CompactMetadata),
  attachment: tolerant(Attachment),
  content: unchecked,
  summary: word,
  leafUuid: word,
  aiTitle: word,
  customTitle: word
})
export type ClaudeRecord = typeof ClaudeRecord.Type

/** Reads any JSON object as a record: every field may be absent. */
export const decode = Schema.decodeUnknownSync(ClaudeRecord)

export const decodeBlock = Schema.decodeUnknownOption(Block)

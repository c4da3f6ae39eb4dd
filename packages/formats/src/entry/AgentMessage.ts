/**
 * Defines the messages of entry logs, by role. The schemas have no transformation: a value that matches one is used as it
 * was read, so unknown fields survive. Spec: FM-12 in specs/formats.md.
 */
import { Schema } from "effect"
import { JsonRecord, JsonValue } from "@daybook/log/domain/Json"

export const optionalOrNull = <A, I, R>(schema: Schema.Schema<A, I, R>) => Schema.optional(Schema.NullOr(schema))

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const ImageBlock = Schema.Struct({ type: Schema.Literal("image"), data: Schema.String, mimeType: Schema.String })
const ThinkingBlock = Schema.Struct({ type: Schema.Literal("thinking"), thinking: Schema.String })
const ToolCallBlock = Schema.Struct({
  type: Schema.Literal("toolCall"),
  id: Schema.NonEmptyString,
  name: Schema.NonEmptyString,
  arguments: JsonRecord
})

/** A part of a message that this runtime understands. */
export const KnownBlock = Schema.Union(TextBlock, ImageBlock, ThinkingBlock, ToolCallBlock)
export type KnownBlock = typeof KnownBlock.Type

const knownBlocks = new Set<string>(["text", "image", "thinking", "toolCall"])
const OtherBlock = Schema.Struct({ type: Schema.String.pipe(Schema.filter((type) => !knownBlocks.has(type))) })

const Block = Schema.Union(KnownBlock, OtherBlock)
type Block = typeof Block.Type

export const BlockContent = Schema.Union(Schema.String, Schema.Array(Block))
export type BlockContent = typeof BlockContent.Type

const isKnown = (block: Block): block is KnownBlock => knownBlocks.has(block.type)

/** The blocks that this runtime understands, in order. */
export const blocksOf = (content: BlockContent | null | undefined): ReadonlyArray<KnownBlock> =>
  typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []).filter(isKnown)

const tokens = optionalOrNull(Schema.Finite)

/** Tokens and US dollars. `input` excludes tokens of the cache. */
export const AgentUsage = Schema.Struct({
  input: tokens,
  output: tokens,
  cacheRead: tokens,
  cacheWrite: tokens,
  totalTokens: tokens,
  /** xcsh and omp; pi writes `reasoning`, which its output includes. */
  reasoningTokens: tokens,
  reasoning: tokens,
  cost: optionalOrNull(
    Schema.Struct({ input: tokens, output: tokens, cacheRead: tokens, cacheWrite: tokens, total: tokens })
  )
})
export type AgentUsage = typeof AgentUsage.Type

const text = optionalOrNull(Schema.String)
const flag = optionalOrNull(Schema.Boolean)
/** Milliseconds since the epoch. */
const timestamp = optionalOrNull(Schema.Union(Schema.Finite, Schema.String))

/** Old versions and other writers leave an empty content out, as pi allows. */
const content = optionalOrNull(BlockContent)

const spoken = { content, attribution: text, timestamp }

const Tool = Schema.Struct({ name: Schema.NonEmptyString, description: text, parameters: Schema.optional(JsonValue) })

/**
 * The system prompt of pi from version 0.99 on, and later changes of it: `content` adds a text, a section with a text
 * replaces the one of that name, and null removes it.
 */
export const System = Schema.Struct({
  role: Schema.Literal("system"),
  content: optionalOrNull(BlockContent),
  sections: optionalOrNull(Schema.Record({ key: Schema.String, value: Schema.NullOr(Schema.String) })),
  toolsAdded: optionalOrNull(Schema.Array(Tool)),
  toolsRemoved: optionalOrNull(Schema.Array(Schema.Struct({ name: Schema.NonEmptyString }))),
  timestamp
})

const User = Schema.Struct({ role: Schema.Literal("user"), ...spoken })
const Developer = Schema.Struct({ role: Schema.Literal("developer"), ...spoken })

const Assistant = Schema.Struct({
  role: Schema.Literal("assistant"),
  content,
  provider: text,
  model: text,
  usage: optionalOrNull(AgentUsage),
  stopReason: text,
  errorMessage: text,
  timestamp
})

const ToolResult = Schema.Struct({
  role: Schema.Literal("toolResult"),
  toolCallId: Schema.NonEmptyString,
  toolName: text,
  content,
  details: Schema.optional(JsonValue),
  usage: optionalOrNull(AgentUsage),
  isError: flag,
  prunedAt: optionalOrNull(Schema.Finite),
  timestamp
})

const execution = {
  output: text,
  exitCode: optionalOrNull(Schema.Int),
  cancelled: flag,
  truncated: flag,
  fullOutputPath: text,
  excludeFromContext: flag,
  timestamp
}
const BashExecution = Schema.Struct({ role: Schema.Literal("bashExecution"), command: Schema.String, ...execution })
const PythonExecution = Schema.Struct({ role: Schema.Literal("pythonExecution"), code: Schema.String, ...execution })

/** `hookMessage` is the name that versions before 3 used for `custom`. */
const Custom = Schema.Struct({
  role: Schema.Literal("custom", "hookMessage"),
  customType: text,
  content: BlockContent,
  display: flag,
  details: Schema.optional(JsonValue),
  attribution: text,
  timestamp
})

const BranchSummary = Schema.Struct({
  role: Schema.Literal("branchSummary"),
  summary: Schema.String,
  fromId: text,
  timestamp
})

const CompactionSummary = Schema.Struct({
  role: Schema.Literal("compactionSummary"),
  summary: Schema.String,
  shortSummary: text,
  tokensBefore: tokens,
  providerPayload: Schema.optional(JsonValue),
  timestamp
})

const FileMention = Schema.Struct({
  role: Schema.Literal("fileMention"),
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      content: Schema.String,
      lineCount: optionalOrNull(Schema.Finite),
      byteSize: optionalOrNull(Schema.Finite),
      skippedReason: text,
      image: optionalOrNull(ImageBlock)
    })
  ),
  timestamp
})

export const AgentMessage = Schema.Union(
  System,
  User,
  Developer,
  Assistant,
  ToolResult,
  BashExecution,
  PythonExecution,
  Custom,
  BranchSummary,
  CompactionSummary,
  FileMention
)
export type AgentMessage = typeof AgentMessage.Type

export type MessageOf<Role extends AgentMessage["role"]> = Extract<AgentMessage, { readonly role: Role }>

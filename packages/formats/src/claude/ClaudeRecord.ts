/**
 * Records of Claude Code's logs, of all versions so far, and what their messages, attachments and figures become. All
 * types share one schema, since versions add fields to all types. Fields that this reader does not use stay in the
 * item's `record`. Spec: FM-132..FM-135, FM-138, FM-140, FM-141 in specs/formats.md.
 */
import { Option, Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import {
  type AnswerPart,
  type Base,
  type Content,
  contentBy,
  type Item,
  shownText,
  type Spending
} from "../conversation/Conversation.ts"
import {
  beyond,
  count,
  flag,
  isNothing,
  larger,
  list,
  nothing,
  plus,
  text,
  tolerant,
  unchecked,
  word
} from "../reading/Tolerant.ts"

/** Tokens of an API message. Cache tokens are not part of `input_tokens`; reasoning is part of `output_tokens`. */
const ApiUsage = Schema.Struct({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count
})
type ApiUsage = typeof ApiUsage.Type

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
type CompactMetadata = typeof CompactMetadata.Type

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

const decodeBlock = Schema.decodeUnknownOption(Block)

// Converts blocks of Claude Code's messages to content, parts of answers and results.

const shownSource = ({ source }: Block): Content => {
  if (source?.data !== undefined && source.type === "text") return shownText(source.data)
  if (source?.data !== undefined) {
    return [{ type: "media", mime: source.media_type ?? "application/octet-stream", data: source.data }]
  }
  return shownText(source?.url ?? "")
}

/** What a block of a prompt or a result shows. A block of an unknown type is shown as its JSON. */
const shown = (given: unknown): Content => {
  if (typeof given === "string") return shownText(given)
  const block = Option.getOrUndefined(decodeBlock(given))
  if (block === undefined) return shownText(JSON.stringify(given))
  if ((block.type === "image" || block.type === "document") && block.source !== undefined) return shownSource(block)
  return shownText(block.text ?? JSON.stringify(given))
}

/** Content as logs write it: a text, blocks, or nothing. */
export const contentOf = contentBy(shown)

export interface ToolResult {
  readonly callID: string
  readonly content: Content
  readonly failed: boolean
}

export interface Blocks {
  readonly parts: ReadonlyArray<AnswerPart>
  readonly results: ReadonlyArray<ToolResult>
  /** What is neither a part of an answer nor a result. */
  readonly rest: ReadonlyArray<unknown>
}

const inputOf = (input: unknown): JsonRecord =>
  Predicate.isReadonlyRecord(input) ? input : input === undefined ? {} : { input }

/** Results of tools that the provider ran have types such as `web_search_tool_result`, and no `is_error`. */
const isFailure = ({ content, is_error }: Block): boolean =>
  is_error ?? (Predicate.isReadonlyRecord(content) && String(content["type"]).endsWith("_error"))

const resultOf = (block: Block): ReadonlyArray<ToolResult> =>
  block.tool_use_id !== undefined && block.type.endsWith("tool_result")
    ? [{ callID: block.tool_use_id, content: contentOf(block.content), failed: isFailure(block) }]
    : []

const partOf = (block: Block): ReadonlyArray<AnswerPart> => {
  if (block.type === "text") return block.text ? [{ type: "text", text: block.text }] : []
  if (block.type === "thinking") return block.thinking ? [{ type: "reasoning", text: block.thinking }] : []
  return block.type.endsWith("tool_use") && block.id !== undefined && block.name !== undefined
    ? [{ type: "call", id: block.id, name: block.name, input: inputOf(block.input) }]
    : []
}

/** The blocks of a content. `answer`: a model wrote it. */
export const blocksOf = (content: string | ReadonlyArray<unknown>, answer: boolean): Blocks => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content
  const parts: Array<AnswerPart> = []
  const results: Array<ToolResult> = []
  const rest: Array<unknown> = []
  for (const given of blocks) {
    const block = Option.getOrUndefined(decodeBlock(given))
    const result = block === undefined ? [] : resultOf(block)
    results.push(...result)
    if (result.length > 0) continue
    if (answer) parts.push(...(block === undefined ? [] : partOf(block)))
    else rest.push(given)
  }
  return { parts, results, rest }
}

// Says what an attachment of Claude Code showed the model, if a log keeps it.

export interface Attached {
  /** A person wrote it while the model worked. */
  readonly person: boolean
  readonly content: Content
}

const note = (text: string): Attached => ({ person: false, content: [{ type: "text", text }] })

const textOfAttachment = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

const field = (value: unknown, name: string): unknown =>
  Predicate.isReadonlyRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined

/** Undefined: the attachment shows the model nothing, or the log does not say what. */
export const attachedOf = (given: Attachment): Attached | undefined => {
  const { commandMode, content, filename, path, prompt, snippet, type } = given
  switch (type) {
    case "queued_command":
      return { person: commandMode === undefined || commandMode === "prompt", content: contentOf(prompt) }
    case "edited_text_file": {
      const changed = textOfAttachment(snippet)
      return changed === undefined ? undefined : note(`${filename ?? "A file"} was changed:\n${changed}`)
    }
    case "file":
    case "nested_memory": {
      const text =
        textOfAttachment(field(field(content, "file"), "content")) ?? textOfAttachment(field(content, "content"))
      return text === undefined ? undefined : note(`${filename ?? path ?? "A file"}:\n${text}`)
    }
    case "hook_additional_context":
    case "critical_system_reminder":
      return { person: false, content: contentOf(content) }
    default:
      return undefined
  }
}

// Counts usage once for each message: several lines and copies repeat it, and only the last line has the final output.

/** Reasoning is part of the output and not counted apart. Only versions of 2025 say what a message cost. */
const spentOf = (usage: ApiUsage, cost: number): Spending => ({
  ...nothing,
  cost,
  input: usage.input_tokens ?? 0,
  output: usage.output_tokens ?? 0,
  cacheRead: usage.cache_read_input_tokens ?? 0,
  cacheWrite: usage.cache_creation_input_tokens ?? 0
})

export const makeUsage = () => {
  const counted = new Map<string, Spending>()
  return {
    /** What a line adds to what earlier lines of its message counted. */
    count: (messageID: string, usage: ApiUsage | undefined, cost = 0): Spending => {
      if (usage === undefined) return nothing
      const before = counted.get(messageID) ?? nothing
      const now = larger(before, spentOf(usage, cost))
      counted.set(messageID, now)
      return beyond(now, before)
    }
  }
}

// Assembles one answer from the lines of an API message, which has one block on each line.

export interface Draft {
  readonly base: Base
  readonly messageID: string | undefined
  readonly model: string
  readonly parts: Array<AnswerPart>
  /** Where a part is, by what makes it the same as a part of another line. */
  readonly known: Map<string, number>
  /** The parts of the same message that an earlier answer has. */
  readonly earlier: ReadonlySet<string>
  readonly error: string | undefined
  finish: string | undefined
  aborted: boolean
  spent: Spending
}

/** Claude Code wrote the message itself: an error of the API, or a filler. No tokens were spent. */
export const isSynthetic = ({ isApiErrorMessage, message }: ClaudeRecord): boolean =>
  isApiErrorMessage === true || message?.model === "<synthetic>"

const textOfParts = (parts: ReadonlyArray<AnswerPart>): string =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const identityOf = (part: AnswerPart): string =>
  part.type === "call" ? `call ${part.id}` : `${part.type} ${part.text}`

/** Adds parts; one that is there already replaces that one. */
const addParts = ({ earlier, known, parts }: Draft, added: ReadonlyArray<AnswerPart>): void => {
  for (const part of added) {
    const identity = identityOf(part)
    if (earlier.has(identity)) continue
    const at = known.get(identity) ?? parts.length
    known.set(identity, at)
    parts[at] = part
  }
}

/** An answer with the blocks of a line. `before` is an answer of the same message that has ended. */
export const draftOf = (
  base: Base,
  fields: ClaudeRecord,
  parts: ReadonlyArray<AnswerPart>,
  spent: Spending,
  before?: Draft
): Draft => {
  const failed = fields.isApiErrorMessage === true
  const draft: Draft = {
    base,
    messageID: fields.message?.id,
    model: fields.message?.model ?? "unknown",
    parts: [],
    known: new Map(),
    earlier: new Set(before === undefined ? [] : [...before.earlier, ...before.known.keys()]),
    error: failed ? textOfParts(parts) || "The request failed." : undefined,
    finish: fields.message?.stop_reason,
    aborted: false,
    spent
  }
  if (!failed) addParts(draft, parts)
  return draft
}

/** Whether the answer says and spends nothing. */
export const isEmpty = ({ error, parts, spent }: Draft): boolean =>
  parts.length === 0 && error === undefined && isNothing(spent)

/** Adds the blocks of a further line. */
export const grow = (
  draft: Draft,
  parts: ReadonlyArray<AnswerPart>,
  finish: string | undefined,
  spent: Spending
): void => {
  addParts(draft, parts)
  draft.finish = finish ?? draft.finish
  draft.spent = plus(draft.spent, spent)
}

export const complete = ({ aborted, base, error, finish, model, parts, spent }: Draft): Item => ({
  _tag: "Answer",
  ...base,
  provider: "anthropic",
  model,
  parts,
  ...(finish === undefined ? {} : { finish }),
  ...(error === undefined ? {} : { error }),
  ...(aborted ? { aborted: true as const } : {}),
  ...(isNothing(spent) ? {} : { spent })
})

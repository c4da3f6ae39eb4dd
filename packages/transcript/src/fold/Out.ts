/**
 * The mutable output of folding one event: the state after it, and its rows and blobs. Each call of the fold has one,
 * and only that call changes it. Spec: FI-23, FI-24, FI-28, FI-34 in specs/files.md (FR-5, FL-4, PK-5, DC-15).
 */
import { createHash } from "node:crypto"
import { Either } from "effect"
import { attachmentIndex, dataBytes } from "@daybook/log/domain/DataUri"
import type { ExpandedPart, Prompt, ToolContent } from "@daybook/log/domain/Values"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Block, type ContentBlock, type ErrorCode, type EventRow, type MessageRow, timeText } from "../row/Rows.ts"
import type { State, StoredText } from "./State.ts"

// Converts the content of prompts and tool results to row blocks: text unchanged, bytes as the hash of their content.

type TextBlock = Extract<ContentBlock, { readonly type: "text" }>

/** Bytes that a row names. */
export interface Blob {
  /** The name of its file: `sha256-` and 64 lowercase hex digits. */
  readonly hash: string
  readonly mediaType: string
  readonly size: number
  readonly bytes: () => Uint8Array
}

/** Blocks, and the blobs that they name, in order. */
export interface Content {
  readonly blocks: ReadonlyArray<ContentBlock>
  readonly blobs: ReadonlyArray<Blob>
}

type File = { readonly uri: string; readonly mime: string; readonly name?: string | undefined }

const join = (contents: ReadonlyArray<Content>): Content => ({
  blocks: contents.flatMap(({ blocks }) => blocks),
  blobs: contents.flatMap(({ blobs }) => blobs)
})

const text = (block: Omit<TextBlock, "type">): Content => ({ blocks: [{ type: "text", ...block }], blobs: [] })

/** A file as its blob if it has data, else as its URI. Data that cannot be decoded has neither. */
const file = ({ mime, name, uri }: File): Content => {
  const block = { type: "media", media_type: mime, ...(name === undefined ? {} : { name }) } as const
  if (!/^data:/i.test(uri)) return { blocks: [{ ...block, uri }], blobs: [] }
  const decoded = dataBytes(uri)
  if (Either.isLeft(decoded)) return { blocks: [block], blobs: [] }
  const hash = `sha256-${createHash("sha256").update(decoded.right).digest("hex")}`
  const size = decoded.right.length
  return {
    blocks: [{ ...block, blob: hash, bytes: size }],
    // Decodes again on demand, so that a pending blob holds no second copy of its bytes.
    blobs: [{ hash, mediaType: mime, size, bytes: () => Either.getOrElse(dataBytes(uri), () => new Uint8Array()) }]
  }
}

const expandedPart = ({ files = [] }: Prompt, { content, kind, name }: ExpandedPart): Content => {
  if (content.type === "text") return text({ text: content.text, from: kind, name })
  const index = attachmentIndex(content.uri)
  const uri = index === undefined ? content.uri : (files[index]?.uri ?? content.uri)
  return file({ uri, mime: content.mime, name: content.name ?? name })
}

/** A prompt's text, then its expansion: a template's text, and the attached content as it was at admission. */
export const promptContent = (prompt: Prompt): Content => {
  const { expansion, files = [] } = prompt
  const came =
    expansion === undefined
      ? files.map(file)
      : [
          ...(expansion.text === undefined ? [] : [text({ text: expansion.text, from: "template" })]),
          ...expansion.parts.map((part) => expandedPart(prompt, part))
        ]
  return join(prompt.text === "" && came.length > 0 ? came : [text({ text: prompt.text }), ...came])
}

/** The content that the model was shown; without any, the value as JSON. */
export const toolContent = (content: ReadonlyArray<ToolContent>, value: unknown): Content =>
  content.length === 0
    ? text({ text: JSON.stringify(value) ?? "null" })
    : join(content.map((part) => (part.type === "text" ? text({ text: part.text }) : file(part))))

// Maps the types of stored errors, an open set, to the errno names that clients act on.

const codes: Readonly<Record<string, ErrorCode>> = {
  // The working process ended.
  "process.ended": "EHOSTDOWN",
  // Forbidden, or declined by a person.
  "permission.denied": "EACCES",
  "path.outside": "EACCES",
  declined: "EACCES",
  "task.declined": "EACCES",
  BudgetExceeded: "EACCES",
  PriceUnknown: "EACCES",
  "task.depth": "EACCES",
  // Not found.
  "file.missing": "ENOENT",
  "agent.missing": "ENOENT",
  "reference.missing": "ENOENT",
  "tool.unknown": "ENOENT",
  AgentNotFound: "ENOENT",
  SessionNotFound: "ENOENT",
  ModelResolutionError: "ENOENT",
  // Invalid input.
  "tool.input": "EINVAL",
  "tool.name": "EINVAL",
  "tool.call": "EINVAL",
  "path.invalid": "EINVAL",
  "file.invalid": "EINVAL",
  "file.binary": "EINVAL",
  "file.remote": "EINVAL",
  "file.special": "EINVAL",
  "edit.refused": "EINVAL",
  "patch.invalid": "EINVAL",
  "output.schema": "EINVAL",
  "output.invalid": "EINVAL",
  StructuredOutputFailed: "EINVAL",
  "not-compactable": "EINVAL",
  // Exceeds the model's context.
  "context-overflow": "EMSGSIZE",
  // Busy, or changed by another writer.
  SessionBusy: "EBUSY",
  OwnerLost: "EBUSY",
  SeqConflict: "EBUSY",
  "tool.stale": "EBUSY"
}

/** The code of a stored error's type; `EIO` for a type without a code. */
export const codeOf = (type: string): ErrorCode => (Object.hasOwn(codes, type) ? (codes[type] ?? "EIO") : "EIO")

// Limits the text of a row. Pure. Spec: FI-104 in specs/files.md.

/** UTF-8 bytes of text in one row, at most. */
export const textLimit = 256 * 1024

/** The longest beginning of the text that fits the limit, cut between code points. */
export const clip = (text: string, limit: number = textLimit): string => {
  // A code unit takes at most three bytes.
  if (text.length * 3 <= limit) return text
  let bytes = 0
  let end = 0
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
    if (bytes > limit) return text.slice(0, end)
    end += character.length
  }
  return text
}

/** A block whose text is too long to be held in memory. */
export interface LongBlock {
  readonly type: "text"
  readonly text: StoredText
}
type AssistantRow = Extract<MessageRow, { readonly role: "assistant" }>
/** A row of `messages.jsonl`, with references to its long texts. */
export type FoldedRow =
  | Exclude<MessageRow, AssistantRow>
  | (Omit<AssistantRow, "content"> & { readonly content: ReadonlyArray<Block | LongBlock> })

export interface Out {
  readonly event: SessionEvent
  /** A private copy until the fold returns. */
  readonly state: State
  readonly messages: Array<FoldedRow>
  readonly events: Array<EventRow>
  readonly blobs: Array<Blob>
}

/** The maximum number of rows per event; row sequence numbers reserve that many for each. */
export const rowsPerEvent = 4

export const set = (out: Out, change: Partial<State>): void => {
  Object.assign(out.state, change)
}

/** The id and sequence number of the event's next row; they depend on the event alone. */
export const place = ({ event, events }: Out) => ({
  id: events.length === 0 ? event.id : `${event.id}.${events.length}`,
  seq: rowsPerEvent * event.seq + events.length,
  time: timeText(event.created)
})

/** The open run as a field of a row. */
export const ofRun = ({ state: { run } }: Out) => (run === undefined ? {} : { run: run.id })

/** Returns the blocks and adds their blobs to the output. */
export const blocksOf = (out: Out, { blobs, blocks }: Content): Content["blocks"] => {
  out.blobs.push(...blobs)
  return blocks
}

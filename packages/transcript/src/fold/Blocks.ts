/**
 * Converts the content of prompts and tool results to row blocks: text unchanged, bytes as the hash of their content.
 * Pure. Spec: FI-23, FI-24, FI-28 in specs/files.md (FL-4, PK-5, DC-15).
 */
import { createHash } from "node:crypto"
import { Either } from "effect"
import { attachmentIndex, dataBytes } from "@daybook/log/domain/DataUri"
import type { ExpandedPart, Prompt, ToolContent } from "@daybook/log/domain/Values"
import type { ContentBlock } from "../row/Rows.ts"

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

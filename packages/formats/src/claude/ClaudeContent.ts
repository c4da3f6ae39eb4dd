/** Converts blocks of Claude Code's messages to content, parts of answers and results. Pure. Spec: FM-134, FM-135. */
import { Option, Predicate } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { AnswerPart, Content } from "../conversation/Conversation.ts"
import { type Block, decodeBlock } from "./ClaudeRecord.ts"

type Shown = Content[number]

const shownText = (text: string): ReadonlyArray<Shown> => (text === "" ? [] : [{ type: "text", text }])

const shownSource = ({ source }: Block): ReadonlyArray<Shown> => {
  if (source?.data !== undefined && source.type === "text") return shownText(source.data)
  if (source?.data !== undefined) {
    return [{ type: "media", mime: source.media_type ?? "application/octet-stream", data: source.data }]
  }
  return shownText(source?.url ?? "")
}

/** What a block of a prompt or a result shows. A block of an unknown type is shown as its JSON. */
const shown = (given: unknown): ReadonlyArray<Shown> => {
  if (typeof given === "string") return shownText(given)
  const block = Option.getOrUndefined(decodeBlock(given))
  if (block === undefined) return shownText(JSON.stringify(given))
  if ((block.type === "image" || block.type === "document") && block.source !== undefined) return shownSource(block)
  return shownText(block.text ?? JSON.stringify(given))
}

/** Content as logs write it: a text, blocks, or nothing. */
export const contentOf = (content: unknown): Content => {
  if (content === undefined || content === null) return []
  return Array.isArray(content) ? content.flatMap(shown) : shown(content)
}

/** The texts of a content without the pictures. */
export const textOf = (content: Content): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

/** The result of a call. */
export interface ToolResult {
  readonly callID: string
  readonly content: Content
  readonly failed: boolean
}

/** The blocks of a message by what they become. */
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

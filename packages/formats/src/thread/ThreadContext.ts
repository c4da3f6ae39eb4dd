/**
 * What a thread's records show the model: all messages, or the summary of the latest compaction and the messages that it
 * keeps. Pure. Spec: FM-106, FM-107 (seed 003, 7.4; TH-6..TH-8).
 */
import {
  type CompactionRecord,
  type ContentBlock,
  type MessageRecord,
  type ThreadMessage,
  type ThreadRecord
} from "./ThreadRecord.ts"

/** Seed 003, 7.4. */
const wrapped = (summary: string): string =>
  `The conversation history before this point was compacted into the following summary:\n<summary>\n${summary}\n</summary>`

/** The latest compaction, if there is one, and the messages that are shown after its summary. */
export interface Shown {
  readonly compaction: CompactionRecord | undefined
  readonly messages: ReadonlyArray<MessageRecord>
}

/** Applies the latest compaction. Each message is shown once, also one that its two rules name. */
export const shownOf = (records: ReadonlyArray<ThreadRecord>): Shown => {
  const at = records.findLastIndex(({ recordType }) => recordType === "compaction")
  const last = records[at]
  const compaction = last?.recordType === "compaction" ? last : undefined
  const messages = records.flatMap((record, position) => {
    if (record.recordType === "compaction") return []
    const isKept = compaction === undefined || position > at || record.seq >= compaction.firstKeptSeq
    return isKept ? [record] : []
  })
  return { compaction, messages }
}

const messageOf = ({ content, isError, role, toolCallId, toolName }: MessageRecord): ThreadMessage => ({
  role,
  content,
  ...(toolCallId === undefined ? {} : { toolCallId }),
  ...(toolName === undefined ? {} : { toolName }),
  ...(isError === undefined ? {} : { isError })
})

/** The messages for the model. */
export const contextOf = (records: ReadonlyArray<ThreadRecord>): ReadonlyArray<ThreadMessage> => {
  const { compaction, messages } = shownOf(records)
  const summary: ReadonlyArray<ThreadMessage> =
    compaction === undefined ? [] : [{ role: "user", content: [{ type: "text", text: wrapped(compaction.summary) }] }]
  return [...summary, ...messages.map(messageOf)]
}

const charsOf = (block: ContentBlock): number =>
  block.type === "text" ? block.text.length : block.name.length + JSON.stringify(block.arguments).length

/** A quarter of the message's characters, rounded up. */
export const tokensOf = ({ content }: Pick<ThreadMessage, "content">): number =>
  Math.ceil(content.reduce((chars, block) => chars + charsOf(block), 0) / 4)

/** The estimated tokens of messages. */
export const totalTokens = (messages: ReadonlyArray<Pick<ThreadMessage, "content">>): number =>
  messages.reduce((total, message) => total + tokensOf(message), 0)

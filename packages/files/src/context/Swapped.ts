/**
 * Lists what is outside the window: ranges of `messages.jsonl` that a compaction swapped out, results shown as
 * placeholders, and the files that the summaries name. It only refers to lines, which stay in `messages.jsonl`, and
 * copies nothing. Pure. Spec: FI-53..FI-55, FI-109, FI-110 in specs/files.md (PK-3, PK-4).
 */
import { isPruned } from "@daybook/core/request/Prune"
import type { Sent } from "@daybook/core/request/Recorded"
import type { Message } from "@daybook/log/domain/Message"
import { hashOf } from "./Blobs.ts"
import { messagesSource, type Pack, type ShownMessage } from "./Pack.ts"
import type { Swap } from "./PackState.ts"

/** A swap with the hash of its lines. */
export type ReadSwap = Swap & { readonly sha256: string }

type AssistantMessage = Extract<Message, { readonly type: "assistant" }>
type ToolPart = Extract<AssistantMessage["content"][number], { readonly type: "tool" }>

const textOf = ({ content, structured }: ToolPart): string => {
  const texts = (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(structured ?? {})
}

/** A line of `swap/index.jsonl`. */
export interface SwapRow {
  readonly id: string
  readonly kind: "message_range" | "tool_output"
  readonly source: string
  readonly range?: string
  readonly tool_call_id?: string
  /** The sequence number of the event that swapped it out. */
  readonly event?: number
  readonly summary: string
  readonly tokens: number
}

const rangeRow = ({ bytes, from, seq, sha256, summary, to }: ReadSwap): SwapRow => ({
  id: `sha256-${sha256}`,
  kind: "message_range",
  source: messagesSource,
  range: `${from}-${to}`,
  event: seq,
  summary,
  tokens: Math.round(bytes / 4)
})

const outputRows =
  ({ prunedSeq }: Sent) =>
  ({ lines, message }: ShownMessage): ReadonlyArray<SwapRow> =>
    message.type !== "assistant"
      ? []
      : message.content.flatMap((part) => {
          if (part.type !== "tool" || !isPruned(message, part, prunedSeq)) return []
          const line = lines.find(({ call }) => call === part.id)
          const text = textOf(part)
          return [
            {
              id: hashOf(text),
              kind: "tool_output",
              source: messagesSource,
              ...(line === undefined ? {} : { range: `${line.line}-${line.line}` }),
              tool_call_id: part.id,
              summary: `${part.name}: ${text.length} characters`,
              tokens: Math.round(text.length / 4)
            } satisfies SwapRow
          ]
        })

/** The rows of `swap/index.jsonl`: ranges, then results. */
export const swapRows = (swaps: ReadonlyArray<ReadSwap>, { messages, sent }: Pack): ReadonlyArray<SwapRow> => [
  ...swaps.map(rangeRow),
  ...messages.flatMap(outputRows(sent))
]

/** The checkpoint in force. */
export const checkpointOf = ({ messages }: Pack) =>
  messages.flatMap(({ message }) => (message.type === "compaction" ? [message] : []))[0]

/** The rows of `refs.jsonl`: where to find what the summary only mentions. */
export const refRows = (swaps: ReadonlyArray<ReadSwap>, pack: Pack) => {
  const checkpoint = checkpointOf(pack)
  const file = (summary: string) => (path: string) => ({ id: hashOf(path), path, kind: "file" as const, summary })
  return [
    ...swaps.map(({ from, sha256, summary, to }) => ({
      id: `sha256-${sha256}`,
      path: `${messagesSource}:${from}-${to}`,
      kind: "swap" as const,
      summary
    })),
    ...(checkpoint?.modifiedFiles ?? []).map(file("modified")),
    ...(checkpoint?.readFiles ?? []).map(file("read"))
  ]
}

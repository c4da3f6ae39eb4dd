/**
 * Writes a conversation as a thread: the lines of `session.jsonl` and the metadata. The format is linear and lossy: the
 * report says what was dropped. Pure. Spec: FM-122..FM-124 (TH-17).
 */
import { Schema } from "effect"
import type { Content, Head, Item } from "../conversation/Conversation.ts"
import type {
  CompactionRecord,
  ContentBlock,
  ThreadID,
  ThreadMessage,
  ThreadMetadata,
  ThreadRecord
} from "./ThreadRecord.ts"

export const Dropped = Schema.Record({ key: Schema.String, value: Schema.NonNegativeInt })
export type Dropped = typeof Dropped.Type

/** Pass the items of one path, from root to leaf; then call `end`. */
export interface ThreadWriter {
  /** The lines of an item, without newlines. */
  readonly add: (item: Item) => ReadonlyArray<string>
  readonly end: () => { readonly metadata: ThreadMetadata; readonly dropped: Dropped }
}

const iso = (time: number): string => new Date(time).toISOString()

const fence = (text: string): string =>
  "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))

const commandText = ({ command, exitCode, output }: Extract<Item, { readonly _tag: "Command" }>): string => {
  const mark = fence(output)
  const shown = output === "" ? "(no output)" : `${mark}\n${output}\n${mark}`
  return `Ran \`${command}\`\n${shown}${exitCode === undefined || exitCode === 0 ? "" : `\nExit code ${exitCode}`}`
}

/** What a thread cannot hold, by the item. */
const unwritten = {
  Edit: "edit of the context",
  Withheld: "withheld part",
  Usage: "usage",
  ModelChange: "model change",
  Label: "label",
  Opaque: "other record"
} as const

export const make = (id: ThreadID, head: Head): ThreadWriter => {
  const dropped = new Map<string, number>()
  const drop = (kind: string, count = 1) => void (count > 0 && dropped.set(kind, (dropped.get(kind) ?? 0) + count))
  /** The `seq` of each message, and of what follows an item without one. */
  const seqs = new Map<string, number>()
  let [seq, messageCount, last, model, name] = [1, 0, head.createdAt, "", head.title]

  const record = (
    item: Item,
    fields: ThreadMessage | Omit<CompactionRecord, "recordType" | "schemaVersion" | "seq" | "timestamp">
  ) => {
    const timestamp = iso(item.time)
    const base = { schemaVersion: 1 as const, seq: seq++ }
    last = Math.max(last, item.time)
    const written: ThreadRecord =
      "role" in fields
        ? { recordType: "message", ...base, ...fields, timestamp }
        : { recordType: "compaction", ...base, ...fields, timestamp }
    if ("role" in fields) messageCount += 1
    return [JSON.stringify(written)]
  }
  const blocks = (content: Content): ReadonlyArray<ContentBlock> =>
    content.flatMap((part): ReadonlyArray<ContentBlock> => {
      if (part.type === "text") return [{ type: "text", text: part.text }]
      drop("media")
      return []
    })
  const user = (item: Item, text: string) => record(item, { role: "user", content: [{ type: "text", text }] })
  const answer = (item: Extract<Item, { readonly _tag: "Answer" }>) => {
    const content = item.parts.flatMap((part): ReadonlyArray<ContentBlock> => {
      if (part.type === "text") return [{ type: "text", text: part.text }]
      if (part.type === "call") return [{ type: "toolCall", id: part.id, name: part.name, arguments: part.input }]
      drop("reasoning")
      return []
    })
    if (item.spent !== undefined) drop("usage")
    if (item.finish !== undefined) drop("finish reason")
    if (item.error !== undefined || item.aborted === true) drop("error of an answer")
    const name = item.provider === "unknown" ? item.model : `${item.provider}/${item.model}`
    if (model !== "" && model !== name) drop("model of an answer")
    model = name
    return record(item, { role: "assistant", content })
  }
  const lines = (item: Item): ReadonlyArray<string> => {
    switch (item._tag) {
      case "User":
      case "Note":
        return record(item, { role: "user", content: blocks(item.content) })
      case "Answer":
        return answer(item)
      case "Result": {
        if (item.spent !== undefined) drop("usage")
        const { callID, content, failed, tool } = item
        const named = tool === "" ? {} : { toolName: tool }
        return record(item, {
          role: "toolResult",
          content: blocks(content),
          toolCallId: callID,
          ...named,
          isError: failed
        })
      }
      case "Command":
        if (!item.hidden) return user(item, commandText(item))
        drop("hidden command")
        return []
      case "Compaction": {
        const { modifiedFiles, readFiles, summary, tokensBefore } = item
        const firstKeptSeq = item.firstKept === null ? seq : (seqs.get(item.firstKept) ?? seq)
        return record(item, { firstKeptSeq, summary, tokensBefore: tokensBefore ?? 0, readFiles, modifiedFiles })
      }
      case "BranchSummary":
        return user(
          item,
          `A branch of this conversation was left. Its summary:\n<summary>\n${item.summary}\n</summary>`
        )
      case "Title":
        name = item.title
        return []
      default:
        drop(unwritten[item._tag])
        return []
    }
  }

  return {
    add: (item) => {
      seqs.set(item.key, seq)
      return lines(item)
    },
    end: () => ({
      metadata: {
        id,
        ...(name === undefined ? {} : { name }),
        createdAt: iso(head.createdAt),
        lastMessageAt: iso(last),
        model: model === "" ? "unknown" : model,
        messageCount,
        source: "interactive",
        nextSeq: seq
      },
      dropped: Object.fromEntries([...dropped].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    })
  }
}

/**
 * Decides when a thread is compacted, where it is cut, and which files its compacted part touched. Pure. `ThreadSummary.ts`
 * phrases the summary. Spec: FM-108..FM-111 (seed 003, 7.5; TH-8..TH-10, TH-13).
 */
import { Predicate, Schema } from "effect"
import { shownOf, tokensOf, totalTokens } from "./ThreadContext.ts"
import { callsOf, type CompactionRecord, type MessageRecord, type ThreadRecord } from "./ThreadRecord.ts"

/** Settings of compaction; `reserve_tokens` and `keep_recent_tokens` in a configuration file. */
export const CompactionSettings = Schema.Struct({
  enabled: Schema.Boolean,
  /** Tokens of the window reserved for the answer. */
  reserveTokens: Schema.NonNegativeInt,
  /** Tokens of recent messages that are kept. */
  keepRecentTokens: Schema.NonNegativeInt
})
export type CompactionSettings = typeof CompactionSettings.Type

export const defaultSettings: CompactionSettings = { enabled: true, reserveTokens: 16_384, keepRecentTokens: 20_000 }

/** Whether a context of so many tokens is compacted: above the window less the reserve, not at it. */
export const isDue = (contextTokens: number, contextWindow: number, settings: CompactionSettings): boolean =>
  settings.enabled && contextTokens > contextWindow - settings.reserveTokens

/** The files that tool calls read and modified; a modified file is not listed as read. Sorted by code unit. */
export interface Files {
  readonly readFiles: ReadonlyArray<string>
  readonly modifiedFiles: ReadonlyArray<string>
}

/** The names of tools, and those that older logs use for them. */
const aliases: Readonly<Record<string, string>> = { read_file: "read", write_file: "write", list_directory: "ls" }

/** Files are listed one per line between tags: a path with a line break or a bracket cannot be listed. */
const isListable = (path: unknown): path is string => Predicate.isString(path) && path !== "" && !/[\n\r<>]/.test(path)

/** The files of these messages, added to those of the compaction before them. */
export const filesOf = (messages: ReadonlyArray<MessageRecord>, previous?: Files): Files => {
  const [read, modified] = [new Set(previous?.readFiles), new Set(previous?.modifiedFiles)]
  for (const call of messages.flatMap(({ content }) => callsOf(content))) {
    const { path } = call.arguments
    if (!isListable(path)) continue
    const tool = aliases[call.name] ?? call.name
    if (tool === "read") read.add(path)
    else if (tool === "write" || tool === "edit") modified.add(path)
  }
  return {
    readFiles: [...read].filter((path) => !modified.has(path)).toSorted(),
    modifiedFiles: [...modified].toSorted()
  }
}

/** For each position, whether a cut before it leaves every call and its results on one side. */
const boundaries = (messages: ReadonlyArray<MessageRecord>): ReadonlyArray<boolean> => {
  /** The calls without a result so far, and those that never get one. */
  const results = new Set(messages.flatMap(({ toolCallId }) => toolCallId ?? []))
  const open = new Set<string>()
  return messages.map(({ content, role, toolCallId }) => {
    const calls = role === "assistant" ? callsOf(content) : []
    const isBoundary = role !== "toolResult" && open.size === 0 && calls.every(({ id }) => results.has(id))
    for (const { id } of calls) if (results.has(id)) open.add(id)
    if (toolCallId !== undefined) open.delete(toolCallId)
    return isBoundary
  })
}

/** The position of the first message that is kept; undefined if nothing can be summarized. */
const cutOf = (messages: ReadonlyArray<MessageRecord>, keepRecentTokens: number): number | undefined => {
  let [at, tokens] = [messages.length, 0]
  while (at > 0 && tokens < keepRecentTokens) tokens += tokensOf(messages[--at] ?? { content: [] })
  if (tokens < keepRecentTokens) return undefined
  const isBoundary = boundaries(messages)
  const after = isBoundary.findIndex((is, position) => is && position >= at)
  // Without a boundary behind it, more is kept.
  const cut = after >= 0 ? after : isBoundary.lastIndexOf(true, at)
  return cut > 0 ? cut : undefined
}

/** A compaction, decided before its summary is written. */
export interface Plan {
  /** The messages to summarize: from the first that the previous compaction kept to the cut. */
  readonly summarized: ReadonlyArray<MessageRecord>
  readonly previous: CompactionRecord | undefined
  readonly firstKeptSeq: number
  /** Estimated tokens of `summarized`. */
  readonly tokensBefore: number
  readonly files: Files
}

/** Plans a compaction; undefined if there is nothing to summarize. */
export const planOf = (records: ReadonlyArray<ThreadRecord>, settings: CompactionSettings): Plan | undefined => {
  const { compaction, messages } = shownOf(records)
  const cut = cutOf(messages, settings.keepRecentTokens)
  const firstKept = cut === undefined ? undefined : messages[cut]
  if (firstKept === undefined) return undefined
  const summarized = messages.slice(0, cut)
  return {
    summarized,
    previous: compaction,
    firstKeptSeq: firstKept.seq,
    tokensBefore: totalTokens(summarized),
    files: filesOf(summarized, compaction)
  }
}

/**
 * Decides when a thread is compacted, where the thread is cut, and which files the compacted part touched; and phrases
 * the summary. Pure. Spec: FM-106..FM-114 in specs/formats.md (seed 003, 7.5, 7.4, 7.5.4, 7.5.5, TH-6..TH-13).
 */
import { Effect, Predicate, Schema } from "effect"
import { present } from "@daybook/log/support/Optional"
import {
  callsOf,
  type CompactionRecord,
  type ContentBlock,
  type MessageRecord,
  textOf,
  type ThreadMessage,
  type ThreadRecord,
  type ToolCall
} from "./ThreadRecord.ts"

// What a thread's records show the model: all messages, or the summary of the latest compaction and the messages that
// it keeps.

/** Seed 003, 7.4. */
const wrapped = (summary: string): string =>
  `The conversation history before this point was compacted into the following summary:\n<summary>\n${summary}\n</summary>`

/** Applies the latest compaction. Each message is shown once, also one that its two rules name. */
export const shownOf = (records: ReadonlyArray<ThreadRecord>) => {
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
  ...present({ toolCallId, toolName, isError })
})

export const contextOf = (records: ReadonlyArray<ThreadRecord>): ReadonlyArray<ThreadMessage> => {
  const { compaction, messages } = shownOf(records)
  const summary: ReadonlyArray<ThreadMessage> =
    compaction === undefined ? [] : [{ role: "user", content: [{ type: "text", text: wrapped(compaction.summary) }] }]
  return [...summary, ...messages.map(messageOf)]
}

const charsOf = (block: ContentBlock): number =>
  block.type === "text" ? block.text.length : block.name.length + JSON.stringify(block.arguments).length

export const tokensOf = ({ content }: Pick<ThreadMessage, "content">): number =>
  Math.ceil(content.reduce((chars, block) => chars + charsOf(block), 0) / 4)

export const totalTokens = (messages: ReadonlyArray<Pick<ThreadMessage, "content">>): number =>
  messages.reduce((total, message) => total + tokensOf(message), 0)

// The texts that ask a model for a summary, word for word from seed 003, 7.5.4.

const system = `You are a context summarization assistant. Your task is to read a conversation between
a user and an AI agent, then produce a structured summary following the exact format
specified. Do NOT continue the conversation. Do NOT respond to any questions in the
conversation. ONLY output the structured summary.`

const format = `Use this EXACT format:

## Goal
[What is the user trying to accomplish? Can be multiple items.]

## Constraints & Preferences
- [Any constraints, preferences, or requirements mentioned by user]

## Progress
### Done
- [x] [Completed tasks/changes]

### In Progress
- [ ] [Current work]

### Blocked
- [Issues preventing progress, if any]

## Key Decisions
- **[Decision]**: [Brief rationale]

## Next Steps
1. [Ordered list of what should happen next]

## Critical Context
- [Any data, examples, or references needed to continue]

Keep each section concise. Preserve exact file paths, function names, and error messages.`

const initial = `The messages above are a conversation to summarize. Create a structured context
checkpoint summary that another LLM will use to continue the work.

${format}`

/** For a later compaction. The format stands where the seed refers to it. */
const update = `The messages above are NEW conversation messages to incorporate into the existing
summary provided in <previous-summary> tags.

Update the existing structured summary with new information. RULES:
- PRESERVE all existing information from the previous summary
- ADD new progress, decisions, and context from the new messages
- UPDATE the Progress section: move items from "In Progress" to "Done" when completed
- UPDATE "Next Steps" based on what was accomplished
- PRESERVE exact file paths, function names, and error messages
- If something is no longer relevant, you may remove it

${format}`

/** The sections that a summary must have. */
const sections = ["Goal", "Progress", "Key Decisions", "Next Steps", "Critical Context"] as const

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

/** The names of tools, and their names in older logs. */
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

// Phrases the request for a summary, and turns the answer into the summary of a compaction.

export interface SummaryRequest {
  readonly system: string
  readonly prompt: string
}

/** Asks a model. A host passes a function over its `LanguageModel`. */
export type Summarize<E, R> = (request: SummaryRequest) => Effect.Effect<string, E, R>

/** The model wrote no summary in the format. Nothing was appended; try again, or with another model. */
export class SummaryUnusable extends Schema.TaggedError<SummaryUnusable>("@daybook/formats/SummaryUnusable")(
  "SummaryUnusable",
  { missing: Schema.Array(Schema.String) }
) {
  override get message() {
    return `the model's summary lacks the sections ${this.missing.join(", ")}; the thread was not compacted`
  }
}

/** Characters of a tool's result that a summary is made from. */
const resultChars = 2_000

/** The start of a closing tag that surrounds the text, so that content cannot end it. */
const withoutOwnTags = (text: string): string =>
  text.replace(/<\/(?=(?:conversation|previous-summary|summary)>)/g, "< /")

const clipped = (text: string): string =>
  text.length <= resultChars
    ? text
    : `${text.slice(0, resultChars)}\n[... ${text.length - resultChars} more characters truncated]`

const callText = ({ arguments: input, name }: ToolCall): string => {
  const fields = Object.entries(input).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
  return `${name}(${fields.join(", ")})`
}

const linesOf = ({ content, role }: MessageRecord): ReadonlyArray<string> => {
  const text = textOf(content)
  const labelled = (label: string, text: string) => (text === "" ? [] : [`[${label}]: ${text}`])
  switch (role) {
    case "user":
      return labelled("User", text)
    case "assistant":
      return [
        ...labelled("Assistant", text),
        ...labelled("Assistant tool calls", callsOf(content).map(callText).join("; "))
      ]
    case "toolResult":
      return labelled("Tool result", clipped(text))
  }
}

/** Messages as flat, labelled text, so that a model does not continue the conversation. */
export const serialize = (messages: ReadonlyArray<MessageRecord>): string => messages.flatMap(linesOf).join("\n")

const tagged = (tag: string, paths: ReadonlyArray<string>): string =>
  paths.length === 0 ? "" : `\n\n<${tag}>\n${paths.join("\n")}\n</${tag}>`

/** The summary with the lists of files behind it. */
export const withFiles = (summary: string, { modifiedFiles, readFiles }: Files): string =>
  summary + tagged("read-files", readFiles) + tagged("modified-files", modifiedFiles)

const withoutFiles = (summary: string): string =>
  summary.replace(/\s*<(read-files|modified-files)>\n[\s\S]*?\n?<\/\1>/g, "").trim()

const block = (tag: string, text: string): string => `<${tag}>\n${withoutOwnTags(text)}\n</${tag}>\n\n`

/** The request for the summary of a plan: with an earlier compaction, the one that updates its summary. */
export const requestOf = ({ previous, summarized }: Plan): SummaryRequest => ({
  system: system,
  prompt:
    block("conversation", serialize(summarized)) +
    (previous === undefined ? initial : block("previous-summary", withoutFiles(previous.summary)) + update)
})

export const missingSections = (summary: string): ReadonlyArray<string> => {
  const titles = new Set(
    [...summary.matchAll(/^\s{0,3}#{1,6}\s+(.*)$/gm)].map(([, title]) =>
      (title ?? "")
        .replace(/[*:\s]+$/, "")
        .trim()
        .toLowerCase()
    )
  )
  return sections.filter((title) => !titles.has(title.toLowerCase()))
}

/** Asks for a plan's summary, once more for missing sections. Without them the compaction fails. */
export const summaryOf = <E, R>(
  plan: Plan,
  summarize: Summarize<E, R>
): Effect.Effect<string, E | SummaryUnusable, R> =>
  Effect.gen(function* () {
    const request = requestOf(plan)
    const first = withoutFiles(yield* summarize(request))
    const lacking = missingSections(first)
    if (lacking.length === 0) return withFiles(first, plan.files)
    const again = `${request.prompt}\n\nYour last answer lacks the sections ${lacking.join(", ")}. Write all sections.`
    const second = withoutFiles(yield* summarize({ ...request, prompt: again }))
    const missing = missingSections(second)
    return missing.length === 0 ? withFiles(second, plan.files) : yield* new SummaryUnusable({ missing })
  })

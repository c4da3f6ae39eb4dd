/**
 * Phrases the request for a summary, and turns the answer into the summary of a compaction. Pure, but for
 * `summarize`, which a caller gives. Spec: FM-112..FM-114 (seed 003, 7.5.4, 7.5.5; TH-11..TH-13).
 */
import { Effect, Schema } from "effect"
import type { Files, Plan } from "./ThreadCompaction.ts"
import * as ThreadPrompts from "./ThreadPrompts.ts"
import { callsOf, type MessageRecord, textOf, type ToolCall } from "./ThreadRecord.ts"

/** What a model is asked. */
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

/** The summary without lists of files. */
export const withoutFiles = (summary: string): string =>
  summary.replace(/\s*<(read-files|modified-files)>\n[\s\S]*?\n?<\/\1>/g, "").trim()

const block = (tag: string, text: string): string => `<${tag}>\n${withoutOwnTags(text)}\n</${tag}>\n\n`

/** The request for the summary of a plan: with an earlier compaction, the one that updates its summary. */
export const requestOf = ({ previous, summarized }: Plan): SummaryRequest => ({
  system: ThreadPrompts.system,
  prompt:
    block("conversation", serialize(summarized)) +
    (previous === undefined
      ? ThreadPrompts.initial
      : block("previous-summary", withoutFiles(previous.summary)) + ThreadPrompts.update)
})

/** The sections that a summary lacks. */
export const missingSections = (summary: string): ReadonlyArray<string> => {
  const titles = new Set(
    [...summary.matchAll(/^\s{0,3}#{1,6}\s+(.*)$/gm)].map(([, title]) =>
      (title ?? "")
        .replace(/[*:\s]+$/, "")
        .trim()
        .toLowerCase()
    )
  )
  return ThreadPrompts.sections.filter((title) => !titles.has(title.toLowerCase()))
}

/**
 * Asks for the summary of a plan, once more if sections are missing. An answer without them is no summary: the
 * compaction fails, and the thread stays as it is.
 */
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

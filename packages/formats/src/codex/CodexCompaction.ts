/** Reads what a compaction of Codex left visible. Pure. Spec: FM-158 in specs/formats.md. */
import { Predicate } from "effect"
import { contentOf, textOf } from "./CodexContent.ts"
import { userMessageOf } from "./CodexPrompt.ts"
import { decode, type Payload } from "./CodexRecord.ts"

export interface Left {
  readonly summary: string
  /** The model read a summary that only its provider can decrypt. */
  readonly encrypted: boolean
}

/** Prompts and summaries of the new history; texts that Codex added are sent anew with each turn. */
const readable = ({ content, role, type }: Payload): ReadonlyArray<string> => {
  if (type !== "message" || (role !== "user" && role !== "assistant")) return []
  const text = textOf(contentOf(content))
  return text === "" || userMessageOf(text).is === "note" ? [] : [text]
}

export const leftBy = ({ message, replacement_history = [] }: Payload): Left => {
  const items = replacement_history.filter(Predicate.isReadonlyRecord).map((item) => decode(item).payload)
  const texts = items.flatMap(readable)
  const own = message === undefined || message === "" || texts.some((text) => text.includes(message)) ? [] : [message]
  return {
    summary: [...texts, ...own].join("\n\n"),
    encrypted: items.some(({ type }) => type?.includes("compaction") === true)
  }
}

/**
 * A conversation as flat, labelled text: what a summary is made from, and what a checkpoint keeps of the recent past.
 * Nothing in it is a provider's own, and nothing in it looks like a conversation that wants to be continued. Pure.
 * Spec: CP-10 to CP-13 (CM-3, CM-8).
 */
import { Predicate } from "effect"
import type { AssistantMessage, Message, Part, ToolPart, UserMessage } from "../session/Message.ts"
import type { ToolContent } from "../session/Schemas.ts"

/** Characters shown of a tool's input or output, of an attachment, reasoning, a shell's output and system text. */
export const clipChars = 2_000
/** How much of them is shown, where more would not fit: results that are left out of what is shown add up over time. */
export const tighterClips: ReadonlyArray<number> = [clipChars, 500, 100]
const nameChars = 200

/** The start of a text, never half a character, and how much is missing. */
export const clip = (text: string, limit = clipChars): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit
  return `${text.slice(0, end)}[... ${text.length - end} more characters]`
}

/** A text that holds one of the tags around it must not end them: their closing form is broken up. */
const ownTag =
  /<\/(?=(?:conversation|conversation-checkpoint|recent-context|running-task|previous-summary|previous-recent)>)/g
export const withoutOwnTags = (text: string): string => text.replace(ownTag, "< /")

const line = (label: string, text: string): string => `[${label}]: ${withoutOwnTags(text)}`

const fileName = (file: { readonly name?: string; readonly uri?: string; readonly mime: string }): string => {
  const place = file.uri === undefined || file.uri.startsWith("data:") ? "unnamed" : file.uri
  return `${clip(file.name ?? place, nameChars)} (${clip(file.mime, nameChars)})`
}

const contentText = (content: ReadonlyArray<ToolContent>): string =>
  content.map((part) => (part.type === "text" ? part.text : `[file: ${fileName(part)}]`)).join("\n")

/** What a person's message says to the model: a template's text stands in place of the words. */
export const userText = ({ expansion, text }: UserMessage): string => expansion?.text ?? text

/** A prompt's own system text and words, and what it points at. */
export const promptLines = (message: UserMessage, limit: number) => {
  const files = message.files ?? []
  const expanded = message.expansion?.parts ?? []
  const text = userText(message)
  return {
    words: [
      ...(message.system === undefined ? [] : [line("System update", clip(message.system, limit))]),
      ...(text === "" && files.length + expanded.length > 0 ? [] : [line("User", text)])
    ],
    beside: [
      ...(files.length === 0 ? [] : [line("Attached", files.map(fileName).join(", "))]),
      ...expanded.map(({ content, name }) =>
        line("Attached", `${clip(name, nameChars)}: ${clip(contentText([content]), limit)}`)
      )
    ]
  }
}

const userLines = (message: UserMessage, limit: number): ReadonlyArray<string> => {
  const { beside, words } = promptLines(message, limit)
  return [...words, ...beside]
}

/** A result in words: its text, else its facts. A provider's own raw result is left out. */
const resultText = (part: ToolPart): string => {
  const text = contentText(part.content ?? [])
  if (text !== "") return text
  if (part.structured !== undefined) return JSON.stringify(part.structured)
  return part.provider?.executed === true ? "(kept by the provider)" : "(nothing)"
}

const toolLines = (part: ToolPart, limit: number): ReadonlyArray<string> => {
  const input = part.input === undefined ? (part.raw ?? "") : JSON.stringify(part.input)
  const call = line("Assistant tool call", `${clip(part.name, nameChars)} ${clip(input, limit)}`)
  switch (part.state) {
    case "completed":
      return [call, line("Tool result", clip(resultText(part), limit))]
    case "error":
      return [call, line("Tool error", clip(part.error?.message ?? "the tool failed", limit))]
    case "pending":
    case "running":
      return [call, line("Tool error", "there is no result")]
  }
}

const partLines = (part: Part, limit: number): ReadonlyArray<string> => {
  if (part.type === "tool") return toolLines(part, limit)
  const text = (part.text ?? "").trim()
  if (text === "") return []
  return [part.type === "text" ? line("Assistant", text) : line("Assistant reasoning", clip(text, limit))]
}

const assistantLines = ({ content, error }: AssistantMessage, limit: number): ReadonlyArray<string> => [
  ...content.flatMap((part) => partLines(part, limit)),
  ...(error === undefined || content.length === 0 ? [] : [line("Assistant error", clip(error.message, limit))])
]

const serializeNew = (message: Message, limit: number): string => {
  switch (message.type) {
    case "user":
      return userLines(message, limit).join("\n")
    case "assistant":
      return assistantLines(message, limit).join("\n")
    case "system":
      return line("System update", clip(message.text, limit))
    case "synthetic":
      return line("Synthetic context", message.text)
    case "shell":
      return line("Shell", `$ ${clip(message.command, limit)}\n${clip(message.output ?? "", limit)}`)
    case "agent-switched":
    case "model-switched":
    // A checkpoint is handed on as what it holds, not as one more message.
    case "compaction":
      return ""
  }
}

/** Histories hold the same objects from turn to turn. */
const known = new WeakMap<Message, string>()

/** One message as text; empty when the model is shown nothing of it. */
export const serializeMessage = (message: Message, limit = clipChars): string => {
  if (limit !== clipChars) return serializeNew(message, limit)
  const before = known.get(message)
  if (Predicate.isNotUndefined(before)) return before
  const text = serializeNew(message, limit)
  known.set(message, text)
  return text
}

/** Messages as text, in their order. */
export const serialize = (messages: ReadonlyArray<Message>, limit = clipChars): string =>
  messages
    .map((message) => serializeMessage(message, limit))
    .filter((text) => text !== "")
    .join("\n\n")

/**
 * Serializes a conversation to flat, labelled text: the input of a summary, and the recent past in a checkpoint. The
 * text holds no provider-native data and does not look like a conversation to continue. Pure.
 * Spec: CP-10 to CP-13 (CM-3, CM-8).
 */
import { Predicate } from "effect"
import type { AssistantMessage, Message, Part, ToolPart, UserMessage } from "@daybook/log/domain/Message"
import type { ToolContent } from "@daybook/log/domain/Values"

/** Maximum characters of a tool's input or output, an attachment, reasoning, a shell's output and system text. */
export const clipChars = 2_000
/** Clip limits to try in order when the text does not fit: pruned results add up over time. */
export const tighterClips: ReadonlyArray<number> = [clipChars, 500, 100]
const nameChars = 200

/** Truncates a text without splitting a character, and notes how much is missing. */
export const clip = (text: string, limit = clipChars): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit
  return `${text.slice(0, end)}[... ${text.length - end} more characters]`
}

/** Breaks up closing tags in the content, so that it cannot close the tags around it. */
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

/** A user message as the model reads it: the expanded template, if any, instead of the text. */
const userText = ({ expansion, text }: UserMessage): string => expansion?.text ?? text

/** A prompt's own system text and words, and its attachments. */
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

/** A result as text: its text, else its structured data. A provider's raw result is omitted. */
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
    case "branch-summary":
      return line("Summary of a branch that was left", message.summary)
    case "agent-switched":
    case "model-switched":
    // A checkpoint's content is passed on separately.
    case "compaction":
      return ""
  }
}

/** Cache by message object: histories keep their objects between turns. */
const known = new WeakMap<Message, string>()

/** Serializes one message; empty if the model sees nothing of it. */
export const serializeMessage = (message: Message, limit = clipChars): string => {
  if (limit !== clipChars) return serializeNew(message, limit)
  const before = known.get(message)
  if (Predicate.isNotUndefined(before)) return before
  const text = serializeNew(message, limit)
  known.set(message, text)
  return text
}

export const serialize = (messages: ReadonlyArray<Message>, limit = clipChars): string =>
  messages
    .map((message) => serializeMessage(message, limit))
    .filter((text) => text !== "")
    .join("\n\n")

/**
 * Renders a message as a transcript, as a line, and as JSON. Pure; with `terminal`, control characters are shown as signs.
 * Spec: CL-15, CL-16 in specs/cli.md.
 */
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import {
  type AssistantMessage,
  type Message,
  type ToolPart,
  type UserMessage,
  withheldText
} from "@daybook/log/domain/Message"
import { type Expansion, modelText } from "@daybook/log/domain/Values"
import { bytes, dateTime, indent, jsonLine, oneLine } from "./Plain.ts"
import { visible } from "./Visible.ts"

/** One message as JSON, as the facade returns it. */
export const messageJson = (message: Message, terminal = false): string => jsonLine(message, terminal)

/** Sequence number, time, kind, id and the first words. */
export const messageLine = (message: Message): string =>
  `${String(message.seq).padStart(6)}  ${dateTime(message.createdAt)}  ${message.type.padEnd(14)}  ${message.id}  ${oneLine(words(message), 72)}\n`

const words = (message: Message): string => {
  switch (message.type) {
    case "user":
    case "system":
    case "synthetic":
      return message.text
    case "assistant": {
      const text = message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join(" ")
      const tools = message.content.flatMap((part) => (part.type === "tool" ? [`[${part.name}]`] : []))
      return [text, ...tools, trouble(message)?.message ?? ""].filter((part) => part !== "").join(" ")
    }
    case "shell":
      return `$ ${message.command}`
    case "agent-switched":
      return message.agent
    case "model-switched":
      return modelText(message.model)
    case "compaction":
    case "branch-summary":
      return message.summary
  }
}

/** Why the request failed, or what the answer lacks (CL-621). */
const trouble = (message: AssistantMessage) => message.error ?? problemOfMessage(message)

/** Lines of a tool result that a transcript shows; the events have all of them. */
const resultLines = 12

/** One message of a transcript, followed by an empty line (CL-16). */
export const messageText = (message: Message, terminal: boolean): string => {
  const safe = (text: string) => (terminal ? visible(text) : text)
  const block = (title: string, body: string) => {
    const text = safe(
      [body.trimEnd(), ...edits(message), ...withheld(message)].filter((part) => part !== "").join("\n\n")
    )
    return `## ${title}  ${dateTime(message.createdAt)}\n${text === "" ? "" : `\n${text}\n`}\n`
  }
  switch (message.type) {
    case "user":
      return block("user", [message.text, ...asked(message), ...shownWith(message)].join("\n"))
    case "assistant": {
      const parts = message.content.map((part) => {
        if (part.type === "text") return part.text ?? "…"
        if (part.type === "reasoning") return indent((part.text ?? "…").trimEnd(), "  > ")
        return toolText(part)
      })
      const found = trouble(message)
      const error = found === undefined ? [] : [`! ${found.message}`]
      return block(`assistant (${modelText(message.model)})`, [...parts, ...error].filter(Boolean).join("\n\n"))
    }
    case "system":
      return block("system", message.text)
    case "synthetic":
      return block("reminder", message.text)
    case "shell":
      return block("shell", `$ ${message.command}\n${message.output ?? "…"}`)
    case "agent-switched":
      return block(`agent ${oneLine(message.agent)}`, "")
    case "model-switched":
      return block(`model ${oneLine(modelText(message.model))}`, "")
    case "branch-summary":
      return block("summary of a branch", [message.summary.trimEnd(), ...files(message)].join("\n"))
    case "compaction":
      return block(`summary (${message.reason})`, [message.summary.trimEnd(), ...files(message)].join("\n"))
  }
}

/** What the model is shown in place of the message, or of its results (CP-441). */
const edits = (message: Message): ReadonlyArray<string> =>
  (message.edits ?? []).map(({ callID, content }) => {
    const target = callID === undefined ? "this message" : `the result of ${oneLine(callID)}`
    if (content === undefined) return `~ the model is not shown ${target}`
    const texts = content.map((part) => (part.type === "text" ? part.text : `[${part.name ?? part.mime}]`))
    return `~ in place of ${target} the model is shown: ${oneLine(texts.join(" "), 400)}`
  })

/** The parts that a model is not shown, because its server refused them. */
const withheld = (message: Message): ReadonlyArray<string> =>
  (message.withheld ?? []).map((part) => `~ ${oneLine(withheldText(part), 400)}`)

/** How many files the summarised part read and changed. */
const files = ({
  modifiedFiles = [],
  readFiles = []
}: Extract<Message, { readonly type: "compaction" | "branch-summary" }>) => {
  const each = [
    readFiles.length === 0 ? [] : [`${readFiles.length} read`],
    modifiedFiles.length === 0 ? [] : [`${modifiedFiles.length} modified`]
  ].flat()
  return each.length === 0 ? [] : ["", `[files] ${each.join(", ")}`]
}

/** The prompt's system text, tools and schema, a line each. */
const asked = ({ output, system, tools }: UserMessage): ReadonlyArray<string> => [
  ...(system === undefined ? [] : [`[system] ${oneLine(system, 400)}`]),
  ...(tools === undefined
    ? []
    : [
        `[tools] ${oneLine(
          Object.entries(tools)
            .map(([pattern, on]) => `${pattern}=${on ? "on" : "off"}`)
            .join(" "),
          400
        )}`
      ]),
  ...(output === undefined ? [] : [`[answer] JSON of ${JSON.stringify(output.schema).length} characters of schema`])
]

/** The prompt's attachments and mentions, by name and size; JSON and the request contain them in full. */
const shownWith = ({ expansion, files = [] }: UserMessage): ReadonlyArray<string> => {
  if (expansion === undefined) return files.map((file) => `[file] ${oneLine(file.name ?? file.uri)} (${file.mime})`)
  const text = expansion.text === undefined ? [] : [`[template] ${oneLine(expansion.text, 400)}`]
  return [...text, ...expansion.parts.map(partLine)]
}

const partLine = ({ content, kind, name }: Expansion["parts"][number]): string => {
  const title = `[${kind}] ${oneLine(name, 400)}`
  if (content.type === "file") return `${title} (${content.mime})`
  if (kind === "failure") return `${title}: ${oneLine(content.text, 400)}`
  return `${title} (${bytes(Buffer.byteLength(content.text))})`
}

const toolText = (part: ToolPart): string => {
  const input = part.input === undefined ? (part.raw ?? "") : JSON.stringify(part.input)
  const head = `→ ${part.name} ${oneLine(input, 160)}`
  if (part.state === "error") return `${head}\n${indent(`! ${part.error?.message ?? "failed"}`, "  ")}`
  if (part.state !== "completed") return `${head}\n  (${part.state})`
  const lines = (part.content ?? [])
    .map((item) => (item.type === "text" ? item.text : `[file] ${item.name ?? item.uri} (${item.mime})`))
    .join("\n")
    .trimEnd()
    .split("\n")
  const shown = lines.slice(0, resultLines).map((line) => (line.length > 400 ? `${line.slice(0, 399)}…` : line))
  const rest = lines.length > resultLines ? [`… ${lines.length - resultLines} more lines`] : []
  return `${head}\n${indent([...shown, ...rest].join("\n"), "  | ")}`
}

/**
 * Writes messages as Markdown. Headings mark where a message begins. Prompts are quotes and results are fenced; an answer
 * that would swallow what follows it is fenced too. Pure. Spec: FM-172 in specs/formats.md.
 */
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { Message, Part, Session, ToolPart } from "@daybook/log/domain/Message"
import { modelText } from "@daybook/log/domain/Values"
import {
  attachedTo,
  fenced,
  hintOf,
  inputOf,
  isContained,
  minuteText,
  nameOf,
  oneLine,
  plainMarkdown,
  quoted,
  sentences,
  type Totals
} from "./Text.ts"

const line = (text: string, limit = 200) => plainMarkdown(oneLine(text, limit))

const blocks = (...texts: ReadonlyArray<string>): string =>
  texts
    .filter((text) => text !== "")
    .map((text) => `${text}\n\n`)
    .join("")

export const markdownStart = ({ createdAt, id, location, title }: Session): string =>
  blocks(
    `# ${line(title ?? id)}`,
    `- Session: ${line(id)}\n- Created: ${minuteText(createdAt)}\n- Folder: ${line(location.directory)}`
  )

const file = ({ mime, name, uri }: { readonly mime: string; readonly name?: string; readonly uri: string }): string =>
  `*File: ${line(name ?? nameOf(uri))} (${line(mime)})*`

const tool = (part: ToolPart): string => {
  const shown = (part.content ?? []).map((item) =>
    item.type === "text" ? (item.text === "" ? "" : fenced(item.text)) : file(item)
  )
  const error = part.error === undefined ? "" : `**Error:** ${line(part.error.message, 2_000)}`
  const state = part.state === "completed" || part.state === "error" ? "" : ` (${part.state})`
  return blocks(
    `**Tool ${line(part.name, 80)}**: ${line(hintOf(part), 120)}${state}`,
    fenced(inputOf(part), "json"),
    ...shown,
    error
  )
}

const part = (given: Part): string => {
  if (given.type === "tool") return tool(given)
  const text = given.text ?? ""
  if (given.type === "text")
    return text === "" ? "" : blocks(isContained(text) ? text.trimEnd() : fenced(text, "markdown"))
  return text.trim() === "" ? "" : blocks("**Reasoning**", quoted(text.trimEnd()))
}

/** The message; `prompt` is the number of prompts so far. */
export const markdownOf = (message: Message, prompt: number): string => {
  const heading = (words: string) => `## ${words} (${minuteText(message.createdAt)})`
  switch (message.type) {
    case "user": {
      const attached = attachedTo(message).map(({ content, kind, name }) =>
        content?.type === "text"
          ? blocks(`**${line(kind)} ${line(name)}**`, fenced(content.text)).trimEnd()
          : `**${line(kind)} ${line(name)}**`
      )
      return blocks(heading(`Prompt ${prompt}`), quoted(message.text), ...attached)
    }
    case "assistant": {
      const error = message.error === undefined ? "" : `**Error:** ${line(message.error.message, 2_000)}`
      const problem = problemOfMessage(message)
      return (
        blocks(heading(`Answer of ${line(modelText(message.model), 120)}`)) +
        message.content.map(part).join("") +
        blocks(error, problem === undefined ? "" : `*${line(problem.message)}*`)
      )
    }
    case "system":
    case "synthetic":
      return blocks(heading(message.type === "system" ? "Changed context" : "Reminder"), quoted(message.text))
    case "shell":
      return blocks(heading("Command"), fenced(`$ ${message.command}\n${message.output ?? ""}`))
    case "agent-switched":
      return blocks(heading(`Agent ${line(message.agent)}`))
    case "model-switched":
      return blocks(heading(`Model ${line(modelText(message.model))}`))
    case "branch-summary":
      return blocks(heading("Summary of a branch that was left"), quoted(message.summary))
    case "compaction":
      return blocks(heading("Summary of what came before"), quoted(message.summary))
  }
}

export const markdownEnd = (_session: Session, totals: Totals): string =>
  `---\n\n${sentences(totals)
    .map((sentence) => `- ${plainMarkdown(sentence)}\n`)
    .join("")}`

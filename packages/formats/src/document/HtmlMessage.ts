/** Writes messages as parts of a page. All text is escaped or rendered without raw HTML. Pure. Spec: FM-174, FM-176. */
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { Message, Part, ToolPart } from "@daybook/log/domain/Message"
import { modelText, type ToolContent } from "@daybook/log/domain/Values"
import { htmlText, oneLine } from "./Escape.ts"
import { rendered } from "./RenderedMarkdown.ts"
import { attachedTo, hintOf, inputOf, minuteText, nameOf } from "./Shown.ts"

const line = (text: string, limit = 200) => htmlText(oneLine(text, limit))

/** A browser drops the first newline of a `pre`. */
const pre = (text: string, kind = ""): string =>
  text === ""
    ? ""
    : `<pre${kind === "" ? "" : ` class="${kind}"`}>${text.startsWith("\n") ? "\n" : ""}${htmlText(text)}</pre>\n`

const details = (kind: string, summary: string, body: string): string =>
  `<details class="${kind}"><summary>${summary}</summary>\n${body}</details>\n`

/** Pictures that run nothing and load nothing: the kinds that browsers draw from bytes alone. */
const picture = /^data:image\/(?:png|jpe?g|gif|webp|avif);base64,[A-Za-z0-9+/=\s]+$/i

const mime = /^image\/(?:png|jpe?g|gif|webp|avif)$/i

const file = (item: Extract<ToolContent, { readonly type: "file" }>, given?: string): string => {
  const name = line(given ?? item.name ?? nameOf(item.uri))
  return mime.test(item.mime) && picture.test(item.uri)
    ? `<figure><img src="${htmlText(item.uri)}" alt="${name}"><figcaption>${name}</figcaption></figure>\n`
    : `<p class="file">${name} (${line(item.mime)})</p>\n`
}

const states: Readonly<Record<ToolPart["state"], string>> = {
  pending: "not run",
  running: "not finished",
  completed: "",
  error: "failed"
}

const tool = (part: ToolPart): string => {
  const shown = (part.content ?? []).map((item) => (item.type === "text" ? pre(item.text, "result") : file(item)))
  const error = part.error === undefined ? "" : pre(part.error.message, "error")
  const state = states[part.state] === "" ? "" : ` <em>${states[part.state]}</em>`
  const summary = `<b>${line(part.name, 80)}</b> <code>${line(hintOf(part), 120)}</code>${state}`
  return details("tool", summary, pre(inputOf(part), "input") + shown.join("") + error)
}

const part = (given: Part): string => {
  if (given.type === "tool") return tool(given)
  const text = given.text ?? ""
  if (text.trim() === "") return ""
  return given.type === "text"
    ? `<div class="text">${rendered(text)}</div>\n`
    : details("reasoning", "Reasoning", `<div class="text">${rendered(text)}</div>\n`)
}

const section = (message: Message, title: string, body: string): string =>
  `<section class="${message.type}" id="${htmlText(message.id)}">\n<h2>${title} <time>${minuteText(message.createdAt)}</time></h2>\n${body}</section>\n`

/** Cost and tokens of one answer. */
const spent = ({ cost, tokens }: Extract<Message, { readonly type: "assistant" }>): string =>
  tokens === undefined
    ? ""
    : `<p class="spent">${tokens.input} tokens in, ${tokens.output} out${cost === undefined || cost === 0 ? "" : `, $${cost.toFixed(4)}`}</p>\n`

/** The message as a section; `prompt` is the number of prompts so far. */
export const htmlOf = (message: Message, prompt: number): string => {
  switch (message.type) {
    case "user": {
      const attached = attachedTo(message).map(({ content, kind, name }) =>
        content === undefined || content.type === "text"
          ? details("attached", `${line(kind)} <code>${line(name)}</code>`, pre(content?.text ?? ""))
          : file(content, name)
      )
      return section(
        message,
        `Prompt ${prompt}`,
        `<div class="asked">${htmlText(message.text)}</div>\n${attached.join("")}`
      )
    }
    case "assistant": {
      const fault = message.error ?? problemOfMessage(message)
      const error = fault === undefined ? "" : pre(fault.message, "error")
      const body = message.content.map(part).join("") + error + spent(message)
      return section(message, `Answer <code>${line(modelText(message.model), 120)}</code>`, body)
    }
    case "system":
    case "synthetic":
      return section(
        message,
        message.type === "system" ? "Changed context" : "Reminder",
        details("note", line(message.text, 80), pre(message.text))
      )
    case "shell":
      return section(message, "Command", pre(`$ ${message.command}\n${message.output ?? ""}`))
    case "agent-switched":
      return section(message, `Agent <code>${line(message.agent)}</code>`, "")
    case "model-switched":
      return section(message, `Model <code>${line(modelText(message.model))}</code>`, "")
    case "branch-summary":
    case "compaction": {
      const title = message.type === "compaction" ? "Summary of what came before" : "Summary of a branch that was left"
      return section(
        message,
        title,
        details("note", "Summary", `<div class="text">${rendered(message.summary)}</div>\n`)
      )
    }
  }
}

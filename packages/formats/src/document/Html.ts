/**
 * A session as one page of HTML: its policy and styles, its messages, and the list of prompts. The list is last in the
 * file, because the prompts are known only at the end, and first on the screen. Spec: FM-174, FM-176, FM-177 in
 * specs/formats.md.
 */
import { createHash } from "node:crypto"
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { Message, Part, Session, ToolPart } from "@daybook/log/domain/Message"
import { modelText, type ToolContent } from "@daybook/log/domain/Values"
import {
  attachedTo,
  hintOf,
  htmlText,
  inputOf,
  minuteText,
  nameOf,
  oneLine,
  rendered,
  sentences,
  type Totals
} from "./Text.ts"

/** The style of a page: readable widths, both colour schemes, the list of prompts beside the messages or above them. */
const style = `
:root { color-scheme: light dark; --page: #fff; --ink: #1d2127; --dim: #5b6470; --line: #d9dee5; --box: #f5f7f9;
  --asked: #eaf2fd; --accent: #0b5cc0; --bad: #a3241b }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e3e7ec; --dim: #98a2ae; --line: #333a43;
  --box: #1d2228; --asked: #1a2a40; --accent: #79b1f7; --bad: #f28b82 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; display: flex;
  flex-direction: row-reverse; justify-content: flex-end }
main { flex: 1; min-width: 0; max-width: 54rem; padding: 1.5rem 2rem 4rem }
nav { width: 18rem; flex: none; position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); font-size: .875rem }
nav ol { padding-left: 1.8rem } nav li { margin: .35rem 0; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere }
section > h2, nav h2 { font-size: .875rem; color: var(--dim); margin: 1.75rem 0 .5rem }
nav h2 { margin-top: 0 } time { font-weight: normal; float: right }
a { color: var(--accent) }
header p, .spent, .file, figcaption { color: var(--dim); font-size: .8125rem }
footer { margin-top: 3rem; border-top: 1px solid var(--line); color: var(--dim); font-size: .875rem }
code, pre { font: .8125rem/1.45 ui-monospace, monospace }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .5rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 32rem; overflow-y: auto }
.text { overflow-wrap: anywhere } .text :first-child { margin-top: 0 }
.text h1, .text h2, .text h3 { font-size: 1.05rem }
.text blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--dim) }
.text table { border-collapse: collapse; display: block; overflow-x: auto }
.text th, .text td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left }
.text .to-right { text-align: right } .text .to-center { text-align: center }
.asked { background: var(--asked); border-radius: 6px; padding: .7rem .9rem; white-space: pre-wrap;
  overflow-wrap: anywhere }
details { margin: .5rem 0; border-left: 3px solid var(--line); padding-left: .7rem }
summary { cursor: pointer; overflow-wrap: anywhere } summary code { color: var(--dim) }
summary em, pre.error { color: var(--bad) }
figure { margin: .5rem 0 } img { max-width: 100%; border-radius: 6px }
@media (max-width: 60rem) { body { flex-direction: column-reverse } main { padding: 1rem }
  nav { width: auto; position: static; height: auto; max-height: 40vh; border-right: 0;
    border-bottom: 1px solid var(--line) } }
@media print { nav { display: none } pre { max-height: none } }
`

/** Only the page's own style applies; no script runs, and nothing is loaded but pictures that the page contains. */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'"
].join("; ")

export const pageStart = ({ createdAt, id, location, title }: Session): string => {
  const name = htmlText(oneLine(title ?? id, 200))
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${name}</title>`,
    `<style>${style}</style>`,
    "</head>",
    "<body>",
    "<main>",
    `<header><h1>${name}</h1>`,
    `<p><code>${htmlText(id)}</code> in <code>${htmlText(oneLine(location.directory, 400))}</code>, ${minuteText(createdAt)}</p></header>`,
    ""
  ].join("\n")
}

export const pageEnd = (_session: Session, totals: Totals): string => {
  const prompts = totals.prompts.map(
    ({ id, words }) => `<li><a href="#${htmlText(id)}">${htmlText(words === "" ? "(no text)" : words)}</a></li>\n`
  )
  return [
    "<footer>",
    ...sentences(totals).map((sentence) => `<p>${htmlText(sentence)}</p>`),
    "</footer>",
    "</main>",
    `<nav aria-label="Prompts">\n<h2>Prompts</h2>\n<ol>\n${prompts.join("")}</ol>\n</nav>`,
    "</body>",
    "</html>",
    ""
  ].join("\n")
}

// Writes messages as parts of a page. All text is escaped or rendered without raw HTML.

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

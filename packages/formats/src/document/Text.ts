/** What documents share: escaped text, answers as HTML, names, times and sums. Pure. Spec: FM-170, FM-172..FM-174. */
import MarkdownIt from "markdown-it"
import type { Message, ToolPart, UserMessage } from "@daybook/log/domain/Message"
import type { ToolContent } from "@daybook/log/domain/Values"
import { timeText } from "@daybook/transcript/row/Rows"

// Escapes texts for documents.

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

/** Characters that HTML does not allow: a browser would drop them or read them as others. */
const unfit = /(?![\t\n\r])[\p{Cc}\p{Cs}]/gu

/** A text for the content of an element or a quoted attribute. */
export const htmlText = (text: string): string =>
  text.replaceAll(unfit, "\ufffd").replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)

/** A text in one line, cut to a number of characters. */
export const oneLine = (text: string, limit: number): string => {
  const line = text
    .slice(0, limit * 4)
    .replaceAll(/\s+/g, " ")
    .trim()
  return line.length > limit ? `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "")}…` : line
}

/** A text within a line of Markdown, without its markup. */
export const plainMarkdown = (text: string): string =>
  text.replaceAll(/[\\`*[\]<>#~|&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, "\\$&")

/** A fenced block, with a fence that the text does not contain. */
export const fenced = (text: string, language = ""): string => {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2)
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text.endsWith("\n") ? text : `${text}\n`}${fence}`
}

/** A text as a quote: whatever it holds, it ends with the quote. */
export const quoted = (text: string): string =>
  text
    .split(/\r\n|\r|\n/)
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n")

// Renders Markdown as HTML without raw HTML, pictures, styles, or links to other schemes than http, https and mail.

const renderer = new MarkdownIt({ html: false, linkify: false, typographer: false })

const allowed = /^(?:https?:\/\/|mailto:|#)/i

renderer.validateLink = (url) => allowed.test(url.trim())

const { rules } = renderer.renderer

/** A picture elsewhere would be loaded when the page opens: it becomes a link. */
rules["image"] = (tokens, index) => {
  const token = tokens[index]
  const url = token?.attrGet("src") ?? ""
  const words = token?.content === undefined || token.content === "" ? url : token.content
  return allowed.test(url)
    ? `<a href="${htmlText(url)}" rel="noopener noreferrer nofollow">${htmlText(words)}</a>`
    : htmlText(words)
}

rules["link_open"] = (tokens, index, options, _environment, self) => {
  tokens[index]?.attrSet("rel", "noopener noreferrer nofollow")
  return self.renderToken(tokens, index, options)
}

/** Columns are aligned by a class, since the page allows no inline style. */
for (const rule of ["th_open", "td_open"]) {
  rules[rule] = (tokens, index, options, _environment, self) => {
    const token = tokens[index]
    const [, side] = /^text-align:(\w+)$/.exec(token?.attrGet("style") ?? "") ?? []
    if (token !== undefined) token.attrs = side === undefined ? null : [["class", `to-${side}`]]
    return self.renderToken(tokens, index, options)
  }
}

/** Longer texts are shown as they are: their rendering would take seconds and as much memory again. */
const mostCharacters = 100_000

export const rendered = (text: string): string =>
  text.length > mostCharacters ? `<pre>${htmlText(text)}</pre>\n` : renderer.render(text)

const parser = new MarkdownIt("commonmark")

const sentinel = "Where the next message begins"

/** Whether what follows the text in a document is read as it is, not as part of an open fence or HTML block. */
export const isContained = (text: string): boolean => {
  if (text.length > mostCharacters) return false
  const [open, words, close] = parser.parse(`${text}\n\n## ${sentinel}\n`, {}).slice(-3)
  return open?.type === "heading_open" && open.level === 0 && words?.content === sentinel && close !== undefined
}

// What documents of all formats show of prompts and tool calls.

export const minuteText = (ms: number): string => `${timeText(ms).slice(0, 16).replace("T", " ")} UTC`

/** Something that a prompt refers to: a file, a picture, an agent. */
export interface Attached {
  readonly kind: string
  readonly name: string
  /** Absent: the document has only the name. */
  readonly content?: ToolContent
}

/** What a prompt came with. Before its expansion only names are known. */
export const attachedTo = ({ expansion, files = [] }: UserMessage): ReadonlyArray<Attached> =>
  expansion === undefined
    ? files.map(({ mime, name, uri }) => ({
        kind: "file",
        name: name ?? nameOf(uri),
        content: { type: "file" as const, uri, mime }
      }))
    : expansion.parts.map(({ content, kind, name }) => ({ kind, name, content }))

/** A URI without its data. */
export const nameOf = (uri: string): string => (uri.startsWith("data:") ? uri.slice(0, uri.indexOf(",") + 1) : uri)

/** The input of a call as indented JSON, or as the text that it is so far. */
export const inputOf = ({ input, raw }: ToolPart): string =>
  input === undefined ? (raw ?? "") : JSON.stringify(input, null, 2)

/** The first words of a call's input. */
export const hintOf = ({ input, raw }: ToolPart): string => {
  if (input === undefined) return raw ?? ""
  const values = Object.values(input).filter((value) => typeof value === "string")
  return values.length > 0 ? values.join(" ") : JSON.stringify(input)
}

// Adds up what a document says at its end: prompts, answers, cost and tokens.

export interface Totals {
  /** The prompts in order: the message's id and the first words. */
  readonly prompts: ReadonlyArray<{ readonly id: string; readonly words: string }>
  readonly answers: number
  readonly calls: number
  /** US dollars. */
  readonly cost: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** A part of the usage is estimated. */
  readonly estimated: boolean
}

const titleCharacters = 100

/** Adds up messages. The list of prompts grows in place, so that long sessions stay linear. */
export const makeTotals = () => {
  const prompts: Array<Totals["prompts"][number]> = []
  let sum: Omit<Totals, "prompts"> = {
    answers: 0,
    calls: 0,
    cost: 0,
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    estimated: false
  }
  return {
    add: (message: Message): void => {
      if (message.type === "user") prompts.push({ id: message.id, words: oneLine(message.text, titleCharacters) })
      if (message.type !== "assistant") return
      const { tokens } = message
      sum = {
        answers: sum.answers + 1,
        calls: sum.calls + message.content.filter(({ type }) => type === "tool").length,
        cost: sum.cost + (message.cost ?? 0),
        input: sum.input + (tokens?.input ?? 0),
        output: sum.output + (tokens?.output ?? 0),
        cacheRead: sum.cacheRead + (tokens?.cache.read ?? 0),
        cacheWrite: sum.cacheWrite + (tokens?.cache.write ?? 0),
        estimated: sum.estimated || message.estimated === true
      }
    },
    value: (): Totals => ({ ...sum, prompts })
  }
}

const count = (number: number, word: string) => `${number.toLocaleString("en-US")} ${word}${number === 1 ? "" : "s"}`

export const sentences = (totals: Totals): ReadonlyArray<string> => [
  `${count(totals.prompts.length, "prompt")}, ${count(totals.answers, "answer")}, ${count(totals.calls, "tool call")}.`,
  `${count(totals.input, "input token")} (${count(totals.cacheRead, "token")} read from and ` +
    `${count(totals.cacheWrite, "token")} written to the cache), ${count(totals.output, "output token")}.`,
  `Cost: $${totals.cost.toFixed(4)}${totals.estimated ? ", partly estimated" : ""}.`
]

/**
 * Renders Markdown as HTML that shows only text: raw HTML is escaped, links lead only to http, https and mail, pictures are
 * links, and nothing has an inline style. Spec: FM-174 in specs/formats.md.
 */
import MarkdownIt from "markdown-it"
import { htmlText } from "./Escape.ts"

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

/** The text as HTML. */
export const rendered = (text: string): string =>
  text.length > mostCharacters ? `<pre>${htmlText(text)}</pre>\n` : renderer.render(text)

const parser = new MarkdownIt("commonmark")

const sentinel = "Where the next message begins"

/**
 * Whether what follows the text in a document is read as it stands, and not as a part of an open fence or of a block of raw
 * HTML.
 */
export const isContained = (text: string): boolean => {
  if (text.length > mostCharacters) return false
  const [open, words, close] = parser.parse(`${text}\n\n## ${sentinel}\n`, {}).slice(-3)
  return open?.type === "heading_open" && open.level === 0 && words?.content === sentinel && close !== undefined
}

/** Escapes texts for documents. Pure. Spec: FM-172, FM-174 in specs/formats.md. */

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

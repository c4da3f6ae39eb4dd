/**
 * Measures text in terminal cells: a wide character takes two, a combining one none. Pure.
 * Spec: CL-31, CL-45 in specs/cli.md.
 */
import stringWidth from "string-width"
import wrapAnsi from "wrap-ansi"

/** The cells of a text on one line. */
export const width = (text: string): number => stringWidth(text)

// Loading the segmentation rules takes longer than most commands; plain text does not need them.
let segmenter: Intl.Segmenter | undefined

const isPlain = (text: string): boolean => /^[\u0020-\u007e]*$/.test(text)

/** The text in at most `cells` cells; a truncated text ends in an ellipsis. */
export const cut = (text: string, cells: number): string => {
  if (isPlain(text)) return text.length <= cells ? text : `${text.slice(0, Math.max(0, cells - 1))}…`
  if (width(text) <= cells) return text
  let left = cells - 1
  let kept = ""
  for (const { segment } of (segmenter ??= new Intl.Segmenter()).segment(text)) {
    left -= width(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

/** The text as rows of whole characters in at most `cells` cells, broken anywhere. */
export const rowsOf = (text: string, cells: number): ReadonlyArray<string> =>
  wrapAnsi(text, cells, { hard: true, wordWrap: false, trim: false }).split("\n")

/** A line as rows, broken at words. Spaces at the end of a row are dropped; a longer word is broken anywhere. */
export const rowsAtWords = (line: string, cells: number): ReadonlyArray<string> => {
  const words = line.trimEnd()
  if (words === "") return [line.slice(0, cells)]
  const [first = "", ...rest] = wrapAnsi(words, cells, { hard: true, trim: false }).split("\n")
  const wrapped = [first, ...rest.map((row) => row.trimStart()).filter((row) => row !== "")]
  return [...wrapped.slice(0, -1), `${wrapped.at(-1) ?? ""}${line.slice(words.length, words.length + cells)}`]
}

/** Sentences for a terminal: a line that does not fit is broken at words. */
export const sentences = (text: string, cells: number): string =>
  text
    .split("\n")
    .flatMap((line) => (isPlain(line) && line.length <= cells ? [line] : rowsAtWords(line, cells)))
    .map((row) => row.trimEnd())
    .join("\n")

/** The text padded with spaces to `cells` cells. */
export const pad = (text: string, cells: number): string => text + " ".repeat(Math.max(0, cells - width(text)))

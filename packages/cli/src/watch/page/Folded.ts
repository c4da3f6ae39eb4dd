/** Shows both ends of a long text until the reader asks for the whole. No DOM. Spec: SL-225 in specs/shell.md. */

/** The shown ends of a text, and how much is between them. */
export interface Folded {
  readonly head: string
  readonly tail: string
  /** Hidden lines; 0 if only part of a line is hidden. */
  readonly lines: number
  readonly characters: number
}

/** Lines and code units that are shown at each end, and those of a text that is not folded. */
const [endLines, endLength] = [8, 1_500]
const [mostLines, mostLength] = [24, 4_000]

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** The place after this many code units, or one less if it would split a character. */
const between = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at - 1 : at)

/** The place of the nth line break from the start, or from the end. */
const nthBreak = (text: string, n: number, step: 1 | -1): number => {
  let at = step > 0 ? -1 : text.length
  for (let i = 0; i < n; i++) {
    const next = step > 0 ? text.indexOf("\n", at + 1) : at === 0 ? -1 : text.lastIndexOf("\n", at - 1)
    if (next < 0) return step > 0 ? text.length : -1
    at = next
  }
  return at
}

const countLines = (text: string): number => text.split("\n").length

/** Undefined for a text that is shown whole. */
export const fold = (text: string): Folded | undefined => {
  if (text.length <= mostLength && countLines(text) <= mostLines) return undefined
  const from = between(text, Math.min(nthBreak(text, endLines, 1), endLength))
  const to = between(text, Math.max(nthBreak(text, endLines, -1) + 1, text.length - endLength, from))
  const hidden = text.slice(from, to)
  return {
    head: text.slice(0, from),
    tail: text.slice(to),
    lines: countLines(hidden.replace(/^\n/, "").replace(/\n$/, "")) - (hidden.includes("\n") ? 0 : 1),
    characters: hidden.length
  }
}

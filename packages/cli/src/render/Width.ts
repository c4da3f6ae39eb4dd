/**
 * How many cells of a terminal a text takes: a wide character takes two, a combining one none. Pure.
 * Spec: CL-31, CL-45 in specs/cli.md.
 */
import stringWidth from "string-width"

/** The cells of a text on one line. */
export const width = (text: string): number => stringWidth(text)

// Loading the rules of segmentation takes longer than most commands; plain text needs none.
let segmenter: Intl.Segmenter | undefined

const isPlain = (text: string): boolean => /^[\u0020-\u007e]*$/.test(text)

/** The text in at most so many cells; what is cut ends in an ellipsis. */
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

/** The text with spaces behind it, so many cells wide. */
export const pad = (text: string, cells: number): string => text + " ".repeat(Math.max(0, cells - width(text)))

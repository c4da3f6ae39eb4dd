/**
 * Divides Markdown that is being written: pieces that later text cannot change, and the open rest. Pieces are drawn once, the
 * rest is drawn again with each delta, so that the cost of a delta does not grow with the answer. Pure. Spec: SC-505, SC-506.
 */
import { Markdown } from "@mariozechner/pi-tui/dist/components/markdown.js"
import { visible } from "../render/Plain.ts"
import type { Theme } from "./Theme.ts"

/** Markdown that is drawn on its own. */
export interface Piece {
  readonly text: string
  /** It continues the block before it, without an empty line between. */
  readonly glued: boolean
  /** Its code block began in an earlier piece, or goes on in the next one. */
  readonly inside?: { readonly before: boolean; readonly after: boolean }
}

/** The rest that later text may change. */
export interface Open extends Piece {
  /** The line that opened the code block that the rest begins in. */
  readonly fence: string | undefined
}

export const begin: Open = { text: "", glued: true, fence: undefined }

/** An open block of more lines or characters is divided inside. */
const most = { lines: 16, characters: 2_000 }

const fenceOf = (line: string): string | undefined => /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
const closes = (line: string, fence: string): boolean => {
  const marks = fenceOf(line)
  const opened = fenceOf(fence) ?? ""
  return marks !== undefined && marks[0] === opened[0] && marks.length >= opened.length && /^\s*[`~]+\s*$/.test(line)
}

const isItem = (line: string): boolean => /^(?:[-*+]|\d{1,9}[.)])\s/.test(line)
const isTable = (line: string): boolean => /^\s*\|/.test(line)

/** A code block of pieces: each is closed, and the next is opened again. */
const inFence = (text: string, { fence }: Open): string => (fence === undefined ? text : `${fence}\n${text}`)

/** The text before a cut. `fence`: the code block that goes on after it. */
const pieceOf = (open: Open, text: string, fence: string | undefined): Piece => ({
  text: inFence(text, open) + (fence === undefined ? "" : `\n${fenceOf(fence) ?? ""}`),
  glued: open.glued,
  inside: { before: open.fence !== undefined, after: fence !== undefined }
})

interface Boundary {
  /** Where the rest begins. */
  readonly at: number
  /** The code block that the rest is in. */
  readonly fence: string | undefined
  readonly glued: boolean
}

/** Finds the first place at which the open text can be divided. */
const cutOf = (open: Open): Boundary | undefined => {
  let { fence } = open
  let [at, count, before] = [0, 0, ""]
  for (;;) {
    const end = open.text.indexOf("\n", at)
    if (end < 0) break
    const line = open.text.slice(at, end)
    const start = at
    at = end + 1
    count++
    if (fence !== undefined) {
      if (closes(line, fence)) {
        fence = undefined
        return { at, fence, glued: false }
      }
      if (count >= most.lines) return { at, fence, glued: true }
    } else if (fenceOf(line) !== undefined) {
      // A block that follows text without an empty line.
      if (start > 0 && open.text.slice(0, start).trim() !== "") return { at: start, fence, glued: false }
      fence = line
    } else if (line.trim() === "" && before.trim() !== "" && /^\S/.test(open.text.slice(at))) {
      return { at, fence, glued: isItem(open.text.slice(at)) && isItem(before) }
    } else if (count >= most.lines && !isTable(line) && (isItem(open.text.slice(at)) || count >= 4 * most.lines)) {
      return { at, fence, glued: true }
    }
    if (line.trim() !== "") before = line
  }
  if (open.text.length - at <= most.characters || isTable(open.text.slice(at))) return undefined
  const space = open.text.lastIndexOf(" ", at + most.characters)
  return { at: space > at ? space + 1 : at + most.characters, fence, glued: true }
}

/** Adds text, and returns the pieces that it ended. */
export const add = (before: Open, text: string): readonly [Open, ReadonlyArray<Piece>] => {
  let open: Open = { ...before, text: before.text + text }
  const pieces: Array<Piece> = []
  for (let cut = cutOf(open); cut !== undefined; cut = cutOf(open)) {
    const text = open.text.slice(0, cut.at).replace(/\n$/, "")
    if (text.trim() !== "") pieces.push(pieceOf(open, text, cut.fence))
    open = { text: open.text.slice(cut.at), glued: cut.glued, fence: cut.fence }
  }
  return [open, pieces]
}

/** The rest as a piece; undefined if nothing is left. */
export const end = (open: Open): Piece | undefined =>
  open.text.trim() === "" || (open.fence !== undefined && closes(open.text.trim(), open.fence))
    ? undefined
    : {
        text: inFence(open.text.trimEnd(), open),
        glued: open.glued,
        inside: { before: open.fence !== undefined, after: false }
      }

/** Where a style at the end of a line begins. */
const styleAt = (line: string): number => {
  const at = line.lastIndexOf("\u001b[")
  return at >= 0 && /^[\d;]*m$/.test(line.slice(at + 2)) ? at : -1
}

/** Without the spaces up to the terminal's edge; styles after them stay. */
const trimmed = (line: string): string => {
  const text = line.trimEnd()
  const at = styleAt(text)
  return at < 0 ? text : trimmed(text.slice(0, at)) + text.slice(at)
}

/** The piece in lines of at most `cells` cells, after an empty line if it begins a block. */
export const lines = ({ glued, inside, text }: Piece, cells: number, { markdown }: Theme): ReadonlyArray<string> => {
  const drawn = new Markdown(visible(text), 0, 0, markdown).render(Math.max(4, cells)).map(trimmed)
  while (drawn.at(-1) === "") drawn.pop()
  // The borders of a divided code block are those of its first and last piece.
  if (inside?.before === true) drawn.shift()
  else while (drawn[0] === "") drawn.shift()
  if (inside?.after === true) drawn.pop()
  return glued ? drawn : ["", ...drawn]
}

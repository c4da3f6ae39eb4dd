/**
 * Computes the bytes for a terminal whose last rows are redrawn: permanent lines scroll up and are never touched again, the
 * frame below them is. Lines that did not change are not written. Pure. Spec: SC-503, SC-504 in specs/screen.md.
 */
import { visibleWidth } from "@mariozechner/pi-tui/dist/utils.js"

/** The rows below the permanent lines. No line is wider than the terminal. */
export interface Picture {
  readonly lines: ReadonlyArray<string>
  /** Where input methods show their window. */
  readonly cursor: { readonly row: number; readonly column: number }
}

/** What is drawn, and where the cursor is in it. */
export interface Frame extends Picture {
  readonly columns: number
}

export const empty: Frame = { lines: [], cursor: { row: 0, column: 0 }, columns: 0 }

/** A terminal that knows these shows no half picture; others ignore them. */
const [holdBack, showNow] = ["\u001b[?2026h", "\u001b[?2026l"]
const [eraseLine, eraseBelow] = ["\u001b[K", "\u001b[J"]

const up = (rows: number): string => (rows > 0 ? `\u001b[${rows}A` : "")
const right = (cells: number): string => (cells > 0 ? `\u001b[${cells}C` : "")

/** Rows from the frame's first row to the cursor. A terminal that became narrower has wrapped the rows. */
const rowsAbove = ({ columns: before, cursor, lines }: Frame, columns: number): number =>
  columns >= before
    ? cursor.row
    : lines.slice(0, cursor.row).reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleWidth(line) / columns)), 0) +
      Math.floor(cursor.column / columns)

/** From the frame's last row to the picture's cursor. */
const toCursor = ({ cursor, lines }: Picture): string => `${up(lines.length - 1 - cursor.row)}\r${right(cursor.column)}`

const redrawn = (frame: Frame, kept: ReadonlyArray<string>, picture: Picture, columns: number): string => {
  const rows = [...kept, ...picture.lines].join("\r\n")
  // Permanent lines may be wider than the terminal, which wraps them: what was below is erased first.
  return `${up(rowsAbove(frame, columns))}\r${eraseBelow}${rows}`
}

/** Writes only rows that differ, from the first of them on. */
const changed = (frame: Frame, { lines }: Picture): string => {
  const most = Math.max(frame.lines.length, lines.length)
  let first = 0
  while (first < most && frame.lines[first] === lines[first]) first++
  if (first === most) return `${"\r\n".repeat(lines.length - 1 - frame.cursor.row)}`
  const from = Math.max(0, Math.min(first, frame.lines.length - 1, lines.length - 1))
  const move = frame.cursor.row > from ? up(frame.cursor.row - from) : "\r\n".repeat(from - frame.cursor.row)
  const rows = lines.slice(from).map((line, at) => {
    const isSame = frame.lines[from + at] === line
    return isSame ? "" : `${line}${eraseLine}`
  })
  return `${move}\r${rows.join("\r\n")}${frame.lines.length > lines.length ? eraseBelow : ""}`
}

/** Appends permanent lines, and redraws the picture below them. */
export const next = (
  frame: Frame,
  kept: ReadonlyArray<string>,
  picture: Picture,
  columns: number
): readonly [Frame, string] => {
  const drawn = { ...picture, columns }
  const { cursor, lines } = picture
  const same =
    kept.length === 0 &&
    columns === frame.columns &&
    lines.length === frame.lines.length &&
    lines.every((line, at) => line === frame.lines[at])
  if (same && cursor.row === frame.cursor.row && cursor.column === frame.cursor.column) return [drawn, ""]
  const rows =
    kept.length > 0 || columns !== frame.columns ? redrawn(frame, kept, picture, columns) : changed(frame, picture)
  return [drawn, `${holdBack}${rows}${toCursor(picture)}${showNow}`]
}

/** Removes the frame; the cursor is where its first row began. */
export const erased = (frame: Frame, columns: number): string => `${up(rowsAbove(frame, columns))}\r${eraseBelow}`

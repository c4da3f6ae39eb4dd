/** Renders a row as a line of pieces: short texts, and references to long ones. Pure. Spec: FI-98 in specs/files.md. */
import * as Fold from "./Fold.ts"

/** Text of a line, or a reference to a long text, which is a JSON string in the line. */
export type Piece = Fold.Text

/** The row as a line with its newline, equal to `JSON.stringify` of the row with its texts. */
export const lineOf = (row: Fold.FoldedRow): ReadonlyArray<Piece> => {
  const content: ReadonlyArray<(typeof row.content)[number]> = row.content
  const isLong = content.some((block) => block.type === "text" && Fold.isStored(block.text))
  if (!isLong) return [`${JSON.stringify(row)}\n`]
  const empty = JSON.stringify({ ...row, content: [] })
  // A text before it cannot contain this: its quotes would be escaped.
  const at = empty.indexOf('"content":[]') + '"content":['.length
  const pieces: Array<Piece> = []
  for (const block of content) {
    const before = pieces.length === 0 ? empty.slice(0, at) : ","
    if (block.type === "text" && Fold.isStored(block.text))
      pieces.push(`${before}{"type":"text","text":`, block.text, "}")
    else pieces.push(before + JSON.stringify(block))
  }
  return [...pieces, `${empty.slice(at)}\n`]
}

/** The size of the pieces in bytes, within a line. */
export const sizeOf = (pieces: ReadonlyArray<Piece>): number =>
  pieces.reduce((sum, piece) => sum + (Fold.isStored(piece) ? piece.bytes : Buffer.byteLength(piece)), 0)

/**
 * Computes the bytes for a terminal whose last lines change: permanent text, and below it a region that each call redraws.
 * The unfinished row belongs to the region, so the cursor's column is never needed. Pure: state and new text in, bytes out.
 * Spec: CL-45 in specs/cli.md.
 *
 *   permanent text    ┐ scrolls up, is never touched again
 *   ...               ┘
 *   the open row      ┐
 *   running calls     │ the region: erased and redrawn
 *   the status line   ┘
 */
import { rowsAtWords, cut, width } from "./Width.ts"

/** The answer, the model's reasoning, and lines about the run. */
export type Channel = "text" | "reasoning" | "note"

/** Permanent text. */
export interface Piece {
  readonly channel: Channel
  readonly text: string
}

/** The lines below the permanent text. */
export interface Region {
  /** The unfinished row, without its prefix. */
  readonly row: string
  readonly channel: Channel
  /** Its lines as last drawn. */
  readonly drawn: ReadonlyArray<string>
}

/** Prefix and style of a channel's rows. */
export interface Look {
  readonly prefix: string
  readonly paint: (row: string) => string
}

export type Looks = Readonly<Record<Channel, Look>>

/** Nothing is drawn. */
export const empty: Region = { row: "", channel: "text", drawn: [] }

/** The last cell of a row stays empty: terminals disagree about the cursor's position after it. */
const room = (columns: number): number => Math.max(2, columns - 1)

/** Text is wrapped in pieces of this length: a model may write a megabyte without a line break. */
const pieceLength = 4_096

const rowsOnScreen = (lines: ReadonlyArray<string>, columns: number): number =>
  lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(width(line) / columns)), 0)

/** Erases the region from its first cell. The terminal may be narrower than when the region was drawn. */
const erase = (drawn: ReadonlyArray<string>, columns: number): string => {
  if (drawn.length === 0) return ""
  const up = rowsOnScreen(drawn, columns) - 1
  return `\r${up === 0 ? "" : `\u001b[${up}A`}\u001b[J`
}

interface Written {
  readonly row: string
  readonly channel: Channel
  readonly out: string
}

const write = (state: Written, { channel, text }: Piece, columns: number, looks: Looks): Written => {
  let { out, row } = state
  const keep = (line: string, of: Channel) => {
    out += `${looks[of].paint(looks[of].prefix + line)}\n`
  }
  if (row !== "" && channel !== state.channel) {
    keep(row, state.channel)
    row = ""
  }
  const cells = Math.max(2, room(columns) - width(looks[channel].prefix))
  // A tab's width would depend on its column.
  const lines = text.replaceAll("\t", "    ").split("\n")
  for (const [at, line] of lines.entries()) {
    for (let from = 0; from < line.length; from += pieceLength) {
      const wrapped = rowsAtWords(row + line.slice(from, from + pieceLength), cells)
      for (const full of wrapped.slice(0, -1)) keep(full.trimEnd(), channel)
      row = wrapped.at(-1) ?? ""
    }
    if (at < lines.length - 1) {
      keep(row.trimEnd(), channel)
      row = ""
    }
  }
  return { row, channel, out }
}

/** Appends pieces, draws the region's lines below them, and returns the bytes to send. */
export const next = (
  region: Region,
  pieces: ReadonlyArray<Piece>,
  live: ReadonlyArray<string>,
  columns: number,
  looks: Looks
): readonly [Region, string] => {
  const { channel, out, row } = pieces.reduce<Written>((state, piece) => write(state, piece, columns, looks), {
    ...region,
    out: ""
  })
  const open = row === "" ? [] : [looks[channel].paint(looks[channel].prefix + row.trimEnd())]
  const drawn = [...open, ...live]
  const same = drawn.length === region.drawn.length && drawn.every((line, at) => line === region.drawn[at])
  if (out === "" && same) return [{ row, channel, drawn }, ""]
  return [{ row, channel, drawn }, `${erase(region.drawn, columns)}${out}${drawn.join("\n")}`]
}

/** Ends the open row and removes the region. */
export const close = (region: Region, columns: number, looks: Looks): string => {
  const { channel, row } = region
  return `${erase(region.drawn, columns)}${row === "" ? "" : `${looks[channel].paint(looks[channel].prefix + row)}\n`}`
}

/** A line of the region, truncated to the terminal. Styles are added afterwards. */
export const fit = (line: string, columns: number): string => cut(line, room(columns))

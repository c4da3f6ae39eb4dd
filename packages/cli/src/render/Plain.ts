/**
 * Text that is safe and fits: what a model or a tool wrote may hold escape sequences, and a terminal would obey them.
 * Pure. Spec: CL-30..CL-32 in specs/cli.md.
 */

import { cut, pad, width } from "./Width.ts"

/**
 * C0 controls except tab and newline, DEL, C1 controls, and the marks that reorder a line (bidirectional overrides and
 * isolates): a terminal acts on them, a reader does not see them.
 */
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const picture = (character: string): string => {
  const code = character.charCodeAt(0)
  // A carriage return before a newline is only a line ending of another system.
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`
}

/** Every control that a terminal would obey becomes a visible sign; tabs and newlines stay (CL-30). */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replaceAll(unsafe, picture)

/** The text on one line, safe, in at most `cells` cells of a terminal (CL-31). */
export const oneLine = (text: string, cells = 120): string => {
  // Only what can be shown is looked at: the text may be megabytes long.
  const seen = text.slice(0, cells * 8)
  const flat = visible(seen.replaceAll(/\s+/g, " ").trim())
  return cut(seen.length < text.length ? `${flat}…` : flat, cells)
}

/** Indents every line. */
export const indent = (text: string, by: string): string => text.replaceAll(/^(?=.)/gm, by)

/** `2026-11-21 21:15:03`, in UTC. */
export const dateTime = (ms: number): string =>
  Number.isFinite(ms) && Math.abs(ms) <= 8.64e15
    ? new Date(ms).toISOString().slice(0, 19).replace("T", " ")
    : String(ms)

/** Bytes as people write them: `12 kB`. */
export const bytes = (size: number): string =>
  size < 1_000
    ? `${size} B`
    : size < 1_000_000
      ? `${Math.round(size / 1_000)} kB`
      : `${(size / 1_000_000).toFixed(1)} MB`

/** JSON on one line; for a terminal, controls that JSON lets through are escaped as well (CL-32). */
export const jsonLine = (value: unknown, terminal: boolean): string => {
  const json = JSON.stringify(value)
  return terminal ? escaped(json) : json
}

/** JSON for a terminal: controls stand only in its strings, where there is an escape for each (CL-32). */
export const escaped = (json: string): string =>
  json.replaceAll(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Rows as columns, two spaces apart; the last column is not padded. */
export const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths: Array<number> = []
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, width(cell))))
  return rows
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : pad(cell, widths[i] ?? 0))).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("")
}

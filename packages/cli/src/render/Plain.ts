/** Fits text to one line, to columns, or to a number of cells; `Visible.ts` sanitizes it. Pure. Spec: CL-31, CL-32. */
import { escaped, visible } from "./Visible.ts"
import { cut, pad, width } from "./Width.ts"

/** The text on one line, sanitized, in at most `cells` cells of a terminal (CL-31). */
export const oneLine = (text: string, cells = 120): string => {
  // Looks only at the part that can be shown: the text may be megabytes long.
  const seen = text.slice(0, cells * 8)
  const flat = visible(seen).replaceAll(/\s+/g, " ").trim()
  return cut(seen.length < text.length ? `${flat}…` : flat, cells)
}

/** Indents every line. */
export const indent = (text: string, by: string): string => text.replaceAll(/^(?=.)/gm, by)

/** `2026-11-21 21:15:03Z`: in UTC, and says so. */
export const dateTime = (ms: number): string =>
  Number.isFinite(ms) && Math.abs(ms) <= 8.64e15
    ? new Date(ms)
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z")
    : String(ms)

/** Bytes as people write them: `12 kB`. */
export const bytes = (size: number): string =>
  size < 1_000
    ? `${size} B`
    : size < 1_000_000
      ? `${Math.round(size / 1_000)} kB`
      : `${(size / 1_000_000).toFixed(1)} MB`

/** JSON on one line; for a terminal, control and invisible characters are escaped too (CL-32). */
export const jsonLine = (value: unknown, terminal: boolean): string => {
  const json = JSON.stringify(value)
  return terminal ? escaped(json) : json
}

/** Rows as columns, two spaces apart; the last column is not padded. */
export const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths: Array<number> = []
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, width(cell))))
  return rows
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : pad(cell, widths[i] ?? 0))).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("")
}

/**
 * Sanitizes text for terminals and logs, measures it in cells, and fits it to one line, to columns, or to a number of cells.
 * Pure. Spec: CL-31, CL-32, CL-45, CL-150 in specs/cli.md.
 */
import stringWidth from "string-width"
import wrapAnsi from "wrap-ansi"

export const width = (text: string): number => stringWidth(text)

// Loading the segmentation rules takes longer than most commands; plain text does not need them.
let graphemes: Intl.Segmenter | undefined

const isNarrow = (text: string): boolean => /^[\u0020-\u007e]*$/.test(text)

/** The text in at most `cells` cells; a truncated text ends in an ellipsis. */
export const cut = (text: string, cells: number): string => {
  if (isNarrow(text)) return text.length <= cells ? text : `${text.slice(0, Math.max(0, cells - 1))}…`
  if (width(text) <= cells) return text
  let left = cells - 1
  let kept = ""
  for (const { segment } of (graphemes ??= new Intl.Segmenter()).segment(text)) {
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
    .flatMap((line) => (isNarrow(line) && line.length <= cells ? [line] : rowsAtWords(line, cells)))
    .map((row) => row.trimEnd())
    .join("\n")

/** The text padded with spaces to `cells` cells. */
export const pad = (text: string, cells: number): string => text + " ".repeat(Math.max(0, cells - width(text)))

/**
 * Controls, invisible characters (zero-width, soft hyphen, bidirectional controls, tags, variation selectors, fillers, the
 * empty braille cell), line separators, lone surrogates, unassigned code points; and the two shades that border a question,
 * which no other text may draw (CL-152).
 */
const hidden =
  "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800\\u2592\\u2593" +
  "[\\p{Cn}--\\p{Extended_Pictographic}]"

/** An emoji of Unicode's list, with the characters that join its parts. */
const emoji = "(\\p{RGI_Emoji})"

/** Compiled on first use: the emoji tables are too slow for the start of a reading verb. */
const pattern = (source: string) => {
  let compiled: RegExp | undefined
  return () => (compiled ??= new RegExp(source, "gv"))
}

const unsafe = pattern(`[[${hidden}]--[\\n\\t]]`)
const unsafeOrEmoji = pattern(`${emoji}|[[${hidden}]--[\\n\\t]]`)

/**
 * Also unusual in a command: spaces other than the plain one, private-use characters, marks on an ASCII character or more than
 * three on any, the signs of control characters, the beginning of an escape, and a trailing space.
 */
const unusual = pattern(
  `${emoji}|[[${hidden}\\p{Zs}\\p{Co}\\u2400-\\u2421]--[\\u0020]]` +
    "|(?<=[\\u0021-\\u007e])\\p{M}|(?<=\\p{M}{3})\\p{M}|\\\\(?=u\\{)|\\u0020$"
)

/** Characters that join longer emoji: only a text with these needs the tables. */
const joint = /\u200d|\ufe0f|\u{e007f}/u

/** The sign of a character: its control picture, else its code point. */
const sign = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`
}

/** Replaces matches; emoji match as a group and stay. */
const replaced = (text: string, what: RegExp, by: (character: string) => string): string =>
  text.replaceAll(what, (match, picture: unknown) => (typeof picture === "string" ? match : by(match)))

/** Most texts are ASCII and need no tables. */
const isPlain = (text: string): boolean => /^[\n\t\u0020-\u007e]*$/.test(text)

const withSigns = (text: string, by: (character: string) => string): string =>
  isPlain(text) ? text : replaced(text, joint.test(text) ? unsafeOrEmoji() : unsafe(), by)

/** Text for a terminal or a log: control and invisible characters become signs; newlines and tabs stay (CL-30). */
export const visible = (text: string): string => withSigns(text.replaceAll("\r\n", "\n"), sign)

/**
 * Characters that look like an ASCII character, or are invisible: mathematical letters, Roman numerals, small forms, variants
 * of hyphens, slashes, bars, quotation marks and colons, an empty note, joiners of old scripts.
 */
const lookalike = pattern(
  "[\\u{1d400}-\\u{1d7ff}\\u2160-\\u217f\\ufe50-\\ufe6b\\u2010-\\u2012\\u2212\\u02d7\\u2043\\u2044\\u2215\\u2571\\u29f8\\u2216\\u29f5" +
    "\\u01c0\\u01c3\\u2223\\u2758\\u02b9-\\u02bf\\u02c6-\\u02cb\\u2032-\\u2037\\u201a\\u2039\\u203a\\u2236\\ua789\\u02d0\\u2217\\u204e" +
    "\\u2024\\u0589\\u05c3\\ua4f8\\ua4fd\\u{1d159}\\u{16fe4}\\u2d7f\\u{1107f}]"
)

/** A word; letters of other scripts in it may look like ASCII letters. */
const word = pattern("[\\p{L}\\p{M}\\p{N}_]+")
const foreign = pattern(
  "[[\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Armenian}\\p{sc=Cherokee}\\p{sc=Coptic}\\p{sc=Lisu}\\p{sc=Latin}]--[\\u0000-\\u024f]]"
)

/** An emoji, a character with its marks, or the parts of a Hangul syllable. */
const whole = pattern(`${emoji}|[\\u1100-\\u11ff]+|[^\\u0000-\\u007f]\\p{M}*`)

const signs = (text: string): string => Array.from(text, sign).join("")

/** Shows as signs: other compositions of the same characters, lookalikes, and foreign letters in a word with ASCII letters. */
const distinct = (text: string): string =>
  replaced(text, whole(), (each) => (each.normalize("NFC") === each ? each : signs(each)))
    .replaceAll(lookalike(), sign)
    .replaceAll(word(), (each) => (/[A-Za-z]/.test(each) ? each.replaceAll(foreign(), sign) : each))

/** One line that a person decides on: unusual characters and lookalikes are shown as signs (CL-151). */
export const exact = (line: string): string => {
  const shown = replaced(line, unusual(), sign)
  return isPlain(line) ? shown : distinct(shown)
}

/** JSON for a terminal: such characters occur only in strings, where each has an escape (CL-32). */
export const escaped = (json: string): string =>
  withSigns(json, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("")
  )

/** How much of an unfinished text's end is examined: longer than any emoji. */
const longestEnd = 64

/** An end that may be part of a line break or an emoji, or half a surrogate pair. */
const openEnd =
  /(?:\r|[0-9#*]?(?:[\p{Extended_Pictographic}\p{RI}\p{Emoji_Modifier}\u{e0020}-\u{e007f}]|\u200d|\ufe0f)+|[0-9#*]|[\ud800-\udbff])[\ud800-\udbff]?$/u

let segmenter: Intl.Segmenter | undefined

/** How much of an unfinished text can be shown: no half character, and no emoji that may be part of a longer one. */
export const wholeLength = (text: string): number => {
  const end = openEnd.exec(text.slice(-longestEnd))?.[0]
  if (end === undefined) return text.length
  const whole = end.replace(/[\ud800-\udbff]$/, "")
  let last = 0
  for (const { index } of (segmenter ??= new Intl.Segmenter()).segment(whole)) last = index
  // A character longer than the examined end is not waited for.
  return last === 0 && end.length === longestEnd ? text.length : text.length - end.length + last
}

/** The text on one line, sanitized, in at most `cells` cells of a terminal (CL-31). */
export const oneLine = (text: string, cells = 120): string => {
  // Looks only at the part that can be shown: the text may be megabytes long.
  const seen = text.slice(0, cells * 8)
  const flat = visible(seen).replaceAll(/\s+/g, " ").trim()
  return cut(seen.length < text.length ? `${flat}…` : flat, cells)
}

export const indent = (text: string, by: string): string => text.replaceAll(/^(?=.)/gm, by)

/** `2026-11-21 21:15:03Z`: in UTC, and says so. */
export const dateTime = (ms: number): string =>
  Number.isFinite(ms) && Math.abs(ms) <= 8.64e15
    ? new Date(ms)
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z")
    : String(ms)

const spans: ReadonlyArray<readonly [milliseconds: number, name: string]> = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"]
]

/** How long ago a time is, as people say it; the date after a month. */
export const ago = (ms: number, now: number): string => {
  const passed = now - ms
  const [span, name] = spans.find(([length]) => passed >= length) ?? [0, ""]
  if (span === 0) return "just now"
  const count = Math.floor(passed / span)
  return passed > 31 * 86_400_000 ? dateTime(ms).slice(0, 10) : `${count} ${name}${count === 1 ? "" : "s"} ago`
}

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

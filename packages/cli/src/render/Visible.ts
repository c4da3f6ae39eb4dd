/**
 * The one sanitizer of the command: whatever a model, tool, server, file, event or error says passes here on its way to a
 * terminal or a log. A terminal obeys controls, and a reader does not see invisible characters: both are shown as signs.
 * Pure. Spec: CL-30, CL-32, CL-150..CL-152 in specs/cli.md.
 */

/**
 * Controls, invisible characters (zero-width, soft hyphen, bidirectional controls, tags, variation selectors, fillers, the
 * empty braille cell), separators of lines, half surrogate pairs, code points that stand for nothing yet; and the two
 * shades that frame a question, which no other text may draw (CL-152).
 */
const hidden =
  "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800\\u2592\\u2593" +
  "[\\p{Cn}--\\p{Extended_Pictographic}]"

/** An emoji of Unicode's list is one picture, whatever joins its parts. */
const emoji = "(\\p{RGI_Emoji})"

/** Compiled when first needed: the tables of emoji take longer than the start of a reading verb allows. */
const pattern = (source: string) => {
  let compiled: RegExp | undefined
  return () => (compiled ??= new RegExp(source, "gv"))
}

const unsafe = pattern(`[[${hidden}]--[\\n\\t]]`)
const unsafeOrEmoji = pattern(`${emoji}|[[${hidden}]--[\\n\\t]]`)

/**
 * What else is unusual in a command: spaces that are not the plain one, private characters, marks on an ASCII character or
 * more than three on any, the signs that stand for controls, the beginning of an escape, and a space at the end.
 */
const unusual = pattern(
  `${emoji}|[[${hidden}\\p{Zs}\\p{Co}\\u2400-\\u2421]--[\\u0020]]` +
    "|(?<=[\\u0021-\\u007e])\\p{M}|(?<=\\p{M}{3})\\p{M}|\\\\(?=u\\{)|\\u0020$"
)

/** What can be part of a longer emoji: only beside these a text needs the tables. */
const joint = /\u200d|\ufe0f|\u{e007f}/u

/** The sign of a character: a control picture, else its code point. */
const sign = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? "\u2421" : `\\u{${code.toString(16)}}`
}

/** Emoji match as a group, and stay. */
const replaced = (text: string, what: RegExp, by: (character: string) => string): string =>
  text.replaceAll(what, (match, picture: unknown) => (typeof picture === "string" ? match : by(match)))

/** Most texts are ASCII: they need no tables at all. */
const isPlain = (text: string): boolean => /^[\n\t\u0020-\u007e]*$/.test(text)

const withSigns = (text: string, by: (character: string) => string): string =>
  isPlain(text) ? text : replaced(text, joint.test(text) ? unsafeOrEmoji() : unsafe(), by)

/** Text for a terminal or a log: what would be obeyed or is not seen becomes a sign; newlines and tabs stay (CL-30). */
export const visible = (text: string): string => withSigns(text.replaceAll("\r\n", "\n"), sign)

/**
 * Characters that are drawn as an ASCII one, or not at all: letters for mathematics, Roman numerals, small forms, hyphens,
 * slashes, bars, quotation marks and colons of other uses, an empty note, joiners of old scripts.
 */
const lookalike = pattern(
  "[\\u{1d400}-\\u{1d7ff}\\u2160-\\u217f\\ufe50-\\ufe6b\\u2010-\\u2012\\u2212\\u02d7\\u2043\\u2044\\u2215\\u2571\\u29f8\\u2216\\u29f5" +
    "\\u01c0\\u01c3\\u2223\\u2758\\u02b9-\\u02bf\\u02c6-\\u02cb\\u2032-\\u2037\\u201a\\u2039\\u203a\\u2236\\ua789\\u02d0\\u2217\\u204e" +
    "\\u2024\\u0589\\u05c3\\ua4f8\\ua4fd\\u{1d159}\\u{16fe4}\\u2d7f\\u{1107f}]"
)

/** A word of ASCII letters and of scripts whose letters look like them. */
const word = pattern("[\\p{L}\\p{M}\\p{N}_]+")
const foreign = pattern(
  "[[\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Armenian}\\p{sc=Cherokee}\\p{sc=Coptic}\\p{sc=Lisu}\\p{sc=Latin}]--[\\u0000-\\u024f]]"
)

/** A character with its marks, or the parts of a Hangul syllable. */
const whole = pattern("[\\u1100-\\u11ff]+|[^\\u0000-\\u007f]\\p{M}*")

const signs = (text: string): string => Array.from(text, sign).join("")

/** Signs for what looks like another text: another composition of the same characters, and strangers among ASCII. */
const distinct = (text: string): string =>
  text
    .replaceAll(whole(), (each) => (each.normalize("NFC") === each ? each : signs(each)))
    .replaceAll(lookalike(), sign)
    .replaceAll(word(), (each) => (/[A-Za-z]/.test(each) ? each.replaceAll(foreign(), sign) : each))

/** One line of what a person decides on: every unusual character, and what looks like another, is a sign (CL-151). */
export const exact = (line: string): string => {
  const shown = replaced(line, unusual(), sign)
  return isPlain(line) ? shown : distinct(shown)
}

/** JSON for a terminal: such characters stand only in its strings, where there is an escape for each (CL-32). */
export const escaped = (json: string): string =>
  withSigns(json, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("")
  )

/** Of a text that goes on, no more than this is looked at: longer than any emoji. */
const longestEnd = 64

/** A text that ends in what may be part of a line break or an emoji, or in half a surrogate pair. */
const openEnd =
  /(?:\r|[0-9#*]?(?:[\p{Extended_Pictographic}\p{RI}\p{Emoji_Modifier}\u{e0020}-\u{e007f}]|\u200d|\ufe0f)+|[0-9#*]|[\ud800-\udbff])[\ud800-\udbff]?$/u

let segmenter: Intl.Segmenter | undefined

/** How much of a text that goes on can be shown now: not half a character, and no emoji that may be part of a longer one. */
export const wholeLength = (text: string): number => {
  const end = openEnd.exec(text.slice(-longestEnd))?.[0]
  if (end === undefined) return text.length
  const whole = end.replace(/[\ud800-\udbff]$/, "")
  let last = 0
  for (const { index } of (segmenter ??= new Intl.Segmenter()).segment(whole)) last = index
  // A character that is longer than what is looked at is none that is waited for.
  return last === 0 && end.length === longestEnd ? text.length : text.length - end.length + last
}

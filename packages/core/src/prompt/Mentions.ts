/** Finds mentions with `@` in a text; `PromptExpander.ts` decides what they mean. Pure, linear. Spec: PX-1..PX-4. */

// Finds code in Markdown text: fenced blocks, and backtick spans within one paragraph. Pure and linear.

/** UTF-16 offsets; the end is exclusive. */
type Range = readonly [start: number, end: number]

const fence = /^[\s>]*(`{3,}|~{3,})(.*)$/s

/** Spans between two backtick runs of equal length; an unmatched run is text. */
const inlineRanges = (text: string, from: number, to: number): ReadonlyArray<Range> => {
  const block = text.slice(from, to)
  const runs = [...block.matchAll(/`+/g)].filter(({ 0: run, index }) => run.length > 1 || block[index - 1] !== "\\")
  const partner: Array<number | undefined> = []
  const later = new Map<number, number>()
  for (let index = runs.length - 1; index >= 0; index--) {
    const length = runs[index]?.[0].length ?? 0
    partner[index] = later.get(length)
    later.set(length, index)
  }
  const ranges: Array<Range> = []
  for (let index = 0; index < runs.length; index++) {
    const [open, close] = [runs[index], runs[partner[index] ?? -1]]
    if (open === undefined || close === undefined) continue
    ranges.push([from + open.index, from + close.index + close[0].length])
    index = partner[index] ?? index
  }
  return ranges
}

/** The ranges of code in a text, in order; an unclosed fence extends to the end. */
export const codeRanges = (text: string): ReadonlyArray<Range> => {
  const ranges: Array<Range> = []
  let paragraph = 0
  let open: { readonly start: number; readonly mark: string } | undefined
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start)
    const end = newline < 0 ? text.length : newline + 1
    const line = text.slice(start, newline < 0 ? end : newline)
    const [, mark = "", rest = ""] = fence.exec(line) ?? []
    if (open !== undefined) {
      if (mark.startsWith(open.mark) && rest.trim() === "") {
        ranges.push([open.start, end])
        open = undefined
        paragraph = end
      }
    } else if (mark !== "" && !(mark.startsWith("`") && rest.includes("`"))) {
      for (const range of inlineRanges(text, paragraph, start)) ranges.push(range)
      open = { start, mark }
    } else if (line.trim() === "") {
      for (const range of inlineRanges(text, paragraph, start)) ranges.push(range)
      paragraph = end
    }
    start = end
  }
  for (const range of open === undefined
    ? inlineRanges(text, paragraph, text.length)
    : [[open.start, text.length] as const]) {
    ranges.push(range)
  }
  return ranges
}

/** Lines, counted from 1, both included. Not validated. */
export interface LineRange {
  readonly from: number
  readonly to: number
}

export interface Mention {
  /** UTF-16 offsets into the text; the end is exclusive. */
  readonly start: number
  readonly end: number
  /** The text between the offsets, including the sign, the quotes and the lines. */
  readonly text: string
  /** The mentioned name, without sign, quotes and lines. */
  readonly target: string
  readonly lines?: LineRange
  /** The mention read as a resource of a server. */
  readonly resource?: { readonly server: string; readonly uri: string }
}

/** Longer words are not mentions. */
const maximumLength = 4_096

/** Letters of scripts that set no space between words, so that a mention may follow them. */
const spaceless = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`

/** Punctuation of other scripts that ends a name, as a comma does. A quoted name may contain it. */
const stops = "。｡，､、；：！？…‥・«»“”„‟‹›؛،؟।"

/** Characters that may precede a mention: white space, opening or separating ones; not letters, as in an address. */
const precedes = new RegExp(String.raw`[\s([{<"',;:|>*\u2013\u2014\p{Ps}\p{Pe}\p{Pi}\p{Pf}${stops}${spaceless}]$`, "u")

/** Whether a mention may begin at the offset. Two code units are one character of a rare script. */
const mayBegin = (text: string, at: number): boolean => at === 0 || precedes.test(text.slice(Math.max(0, at - 2), at))

/** A path may contain `@` at the start of a folder's name, as in scoped packages. */
const word = new RegExp(String.raw`(?:[^\s\p{Cc}@"\x60<>|,;${stops}]|(?<=\/)@)+`, "uy")
const quotedName = /"([^"\p{Cc}]+)"(?:#L\d{1,9}(?:-L?\d{1,9})?|:\d{1,9}(?:-\d{1,9})?)?/uy
const linesAtEnd = /^(.+?)(?:#L(\d{1,9})(?:-L?(\d{1,9}))?|:(\d{1,9})(?:-(\d{1,9})|:\d{1,9})?)$/su
const serverAndUri = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63}):(.+)$/s

const brackets: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" }

/** Brackets of other scripts, the closing ones by the opening ones. */
const wideBrackets = new Map(
  Array.from(
    ["「」", "『』", "（）", "【】", "《》", "〈〉", "〔〕", "［］", "｛｝", "｢｣"],
    ([open = "", close = ""]) => [close, open]
  )
)
const openingWide = new Set(wideBrackets.values())

/** The name up to the first closing bracket of another script that it did not open: text goes on behind it without a space. */
const withinWide = (text: string): string => {
  const open: Array<string> = []
  for (const [index, character] of Array.from(text).entries()) {
    if (openingWide.has(character)) open.push(character)
    else if (wideBrackets.has(character) && open.pop() !== wideBrackets.get(character)) {
      return Array.from(text).slice(0, index).join("")
    }
  }
  return text
}

/** A possessive of the sentence: `@README.md's`. */
const possessive = /['’]s$/u

const count = (text: string, character: string) => text.split(character).length - 1

/** Trims the punctuation of the surrounding sentence; balanced closing brackets stay. */
const trimmed = (found: string): string => {
  const text = withinWide(found).replace(possessive, "")
  const surplus = new Map(
    Object.entries(brackets).map(([close, open]) => [close, count(text, close) - count(text, open)])
  )
  let end = text.length
  for (; end > 0; end--) {
    const last = text.charAt(end - 1)
    const extra = surplus.get(last)
    if (extra === undefined ? !".,;:!?'’*".includes(last) : extra <= 0) break
    if (extra !== undefined) surplus.set(last, extra - 1)
  }
  return text.slice(0, end)
}

export const splitLines = (name: string): { readonly target: string; readonly lines?: LineRange } => {
  const [, target, hash, hashTo, colon, colonTo] = linesAtEnd.exec(name) ?? []
  const from = hash ?? colon
  if (target === undefined || from === undefined) return { target: name }
  return { target, lines: { from: Number(from), to: Number(hashTo ?? colonTo ?? from) } }
}

const resourceOf = (name: string): Pick<Mention, "resource"> => {
  const [, server, uri] = serverAndUri.exec(name) ?? []
  return server === undefined || uri === undefined || /^\d+(-\d+|:\d+)?$/.test(uri) ? {} : { resource: { server, uri } }
}

const mentionAt = (text: string, at: number): Mention | undefined => {
  quotedName.lastIndex = at + 1
  const [whole, quoted] = quotedName.exec(text) ?? []
  if (whole !== undefined && quoted !== undefined) {
    if (whole.length > maximumLength) return undefined
    const end = at + 1 + whole.length
    // `x` replaces the quoted name, so that only the suffix is parsed.
    const { lines } = splitLines(`x${whole.slice(quoted.length + 2)}`)
    return {
      start: at,
      end,
      text: text.slice(at, end),
      target: quoted,
      ...(lines === undefined ? {} : { lines }),
      ...resourceOf(quoted)
    }
  }
  word.lastIndex = at + 1
  const [found = ""] = word.exec(text) ?? []
  if (found.length > maximumLength) return undefined
  const name = trimmed(found)
  if (name === "") return undefined
  const end = at + 1 + name.length
  return { start: at, end, text: text.slice(at, end), ...splitLines(name), ...resourceOf(name) }
}

/** The mentions of a text, in order, at most `limit`. Excludes code, words, and a sign after a backslash. */
export const findMentions = (text: string, limit = Number.MAX_SAFE_INTEGER): ReadonlyArray<Mention> => {
  const code = codeRanges(text)
  const mentions: Array<Mention> = []
  let block = 0
  for (let at = text.indexOf("@"); at >= 0 && mentions.length < limit; at = text.indexOf("@", at)) {
    while ((code[block]?.[1] ?? Infinity) <= at) block++
    const [start, end] = code[block] ?? [Infinity, Infinity]
    if (start <= at) {
      at = end
      continue
    }
    const mention = mayBegin(text, at) ? mentionAt(text, at) : undefined
    if (mention !== undefined) mentions.push(mention)
    at = mention?.end ?? at + 1
  }
  return mentions
}

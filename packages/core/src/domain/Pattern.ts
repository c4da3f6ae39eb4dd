/**
 * Matches wildcard patterns, and decides whether one covers another and whether two can match the same text. A pattern
 * is compiled once; matching takes time linear in the text. Pure. Spec: PM-1, PM-11.
 */

/** Tokens of a pattern: UTF-16 code units, and two negative numbers for the wildcards. */
const one = -1
const any = -2
type Tokens = ReadonlyArray<number>

/** The tokens between two stars; `fallback` is the Knuth-Morris-Pratt table, for segments without `?`. */
type Segment = { readonly tokens: Tokens; readonly fallback: ReadonlyArray<number> | undefined }

export interface Pattern {
  readonly source: string
  readonly tokens: Tokens
  readonly segments: ReadonlyArray<Segment>
  readonly literal: string | undefined
  /** The common beginning of all texts that it matches. */
  readonly prefix: string
  /** The texts between its wildcards. */
  readonly texts: ReadonlyArray<string>
  /** It matches every text. */
  readonly universal: boolean
}

const tokensOf = (source: string): Tokens => {
  const tokens: Array<number> = []
  for (let at = 0; at < source.length; at++) {
    const unit = source[at]
    const next = source[at + 1]
    if (unit === "\\" && (next === "*" || next === "?" || next === "\\")) tokens.push(source.charCodeAt(++at))
    else if (unit === "?") {
      // `*?` means the same as `?*`. The star is moved last, so that equivalent patterns have equal tokens.
      let last = tokens.length
      while (tokens[last - 1] === any) last--
      tokens.splice(last, 0, one)
    } else if (unit === "*") {
      if (tokens.at(-1) !== any) tokens.push(any)
    } else tokens.push(source.charCodeAt(at))
  }
  return tokens
}

const fallbackOf = (tokens: Tokens): ReadonlyArray<number> | undefined => {
  if (tokens.includes(one)) return undefined
  const table = [0]
  for (let at = 1, length = 0; at < tokens.length; at++) {
    while (length > 0 && tokens[at] !== tokens[length]) length = table[length - 1] ?? 0
    if (tokens[at] === tokens[length]) length++
    table.push(length)
  }
  return table
}

const segmentsOf = (tokens: Tokens): ReadonlyArray<Segment> => {
  const segments: Array<Segment> = []
  for (let from = 0; from <= tokens.length;) {
    const star = tokens.indexOf(any, from)
    const part = tokens.slice(from, star < 0 ? tokens.length : star)
    segments.push({ tokens: part, fallback: fallbackOf(part) })
    if (star < 0) break
    from = star + 1
  }
  return segments
}

const textOf = (tokens: Tokens): string => tokens.map((unit) => String.fromCharCode(unit)).join("")

const textsOf = (tokens: Tokens): ReadonlyArray<string> => {
  const texts = [""]
  for (const token of tokens) {
    if (token < 0) texts.push("")
    else texts.push(`${texts.pop() ?? ""}${String.fromCharCode(token)}`)
  }
  return texts
}

const compiled = (source: string): Pattern => {
  const tokens = tokensOf(source)
  const first = tokens.findIndex((token) => token < 0)
  return {
    source,
    tokens,
    segments: segmentsOf(tokens),
    literal: first < 0 ? textOf(tokens) : undefined,
    prefix: textOf(first < 0 ? tokens : tokens.slice(0, first)),
    texts: textsOf(tokens),
    universal: tokens.length === 1 && tokens[0] === any
  }
}

/** Enough for the rules of all agents of a project. If saved approvals exceed it, patterns are compiled again. */
const cacheSize = 2_000
const cache = new Map<string, Pattern>()

export const compile = (source: string): Pattern => {
  const known = cache.get(source)
  if (known !== undefined) return known
  const pattern = compiled(source)
  if (cache.size >= cacheSize) cache.clear()
  cache.set(source, pattern)
  return pattern
}

type Subject = { readonly length: number; readonly at: (index: number) => number }

const fits = (token: number, unit: number): boolean => token === unit || (token === one && unit !== any)

const fitsAt = ({ tokens }: Segment, subject: Subject, from: number): boolean =>
  tokens.every((token, index) => fits(token, subject.at(from + index)))

/** The end of the segment's first occurrence between `from` and `limit`; negative if there is none. */
const find = (segment: Segment, subject: Subject, from: number, limit: number): number => {
  const { fallback, tokens } = segment
  if (tokens.length === 0) return from
  if (fallback === undefined) {
    for (let at = from; at + tokens.length <= limit; at++) {
      if (fitsAt(segment, subject, at)) return at + tokens.length
    }
    return -1
  }
  for (let at = from, length = 0; at < limit; at++) {
    const unit = subject.at(at)
    while (length > 0 && tokens[length] !== unit) length = fallback[length - 1] ?? 0
    if (tokens[length] === unit) length++
    if (length === tokens.length) return at + 1
  }
  return -1
}

const matchesSubject = ({ segments }: Pattern, subject: Subject): boolean => {
  const [first] = segments
  const last = segments.at(-1)
  if (first === undefined || last === undefined) return subject.length === 0
  if (segments.length === 1) return first.tokens.length === subject.length && fitsAt(first, subject, 0)
  const limit = subject.length - last.tokens.length
  if (first.tokens.length > limit || !fitsAt(first, subject, 0)) return false
  let from = first.tokens.length
  for (let index = 1; index < segments.length - 1; index++) {
    const segment = segments[index]
    if (segment === undefined) break
    from = find(segment, subject, from, limit)
    if (from < 0) return false
  }
  return fitsAt(last, subject, limit)
}

/** Whether the whole text matches. */
export const test = (pattern: Pattern, text: string): boolean => {
  if (pattern.universal) return true
  if (pattern.literal !== undefined) return pattern.literal === text
  if (!text.startsWith(pattern.prefix)) return false
  return matchesSubject(pattern, { length: text.length, at: (index) => text.charCodeAt(index) })
}

/** Whether the first pattern matches every text that the second one matches. False if it cannot tell. */
export const covers = (outer: Pattern, inner: Pattern): boolean =>
  outer.universal ||
  (inner.prefix.startsWith(outer.prefix) &&
    matchesSubject(outer, { length: inner.tokens.length, at: (index) => inner.tokens[index] ?? any }))

/** Beyond this many steps `meet` returns true: its callers then ask a question. */
const maximumSteps = 1_000_000

/** Whether some text matches both patterns. True if deciding takes too long. */
export const meet = (left: Pattern, right: Pattern): boolean => {
  if (left.universal || right.universal) return true
  if (!left.prefix.startsWith(right.prefix) && !right.prefix.startsWith(left.prefix)) return false
  const [a, b] = [left.tokens, right.tokens]
  if (a.length * b.length > maximumSteps) return true
  // `row[j]`: the first `i` tokens of one pattern and the first `j` of the other can match the same text.
  let row = new Uint8Array(b.length + 1)
  row[0] = 1
  for (let i = 0; i <= a.length; i++) {
    const next = new Uint8Array(b.length + 1)
    for (let j = 0; j <= b.length; j++) {
      if (row[j] === 0) continue
      const [x, y] = [a[i], b[j]]
      if (y === any || (x === any && j < b.length)) row[j + 1] = 1
      if (x === any || (y === any && i < a.length)) next[j] = 1
      if (x !== undefined && y !== undefined && (fits(x, y) || fits(y, x))) next[j + 1] = 1
    }
    if (i === a.length) return row[b.length] === 1
    row = next
  }
  return false
}

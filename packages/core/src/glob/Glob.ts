/**
 * Compiles and matches globs: `*` and `?` within a name, `**` for any folders, `[a-z]`, `{a,b}`, and a backslash that
 * escapes a character. No pattern becomes a regular expression: matching backtracks only to the last star, so time is
 * at most proportional to the product of both lengths. Pure. Spec: LM-20.
 */
import { maxGlobAlternatives, maxGlobLength, maxGlobStars } from "../support/Limits.ts"

const star = -1
const one = -2
type Range = readonly [from: number, to: number]
/** A UTF-16 code unit, one of the two wildcards, or a set of characters. */
type Token = number | { readonly negated: boolean; readonly ranges: ReadonlyArray<Range> }

/** One name of a path; `literal` is its text if it has no wildcards. */
type Name = { readonly tokens: ReadonlyArray<Token>; readonly literal: string | undefined }
/** `**` between slashes: any number of names, including none. */
const folders = Symbol("folders")
type Segment = Name | typeof folders

/** A pattern without braces. */
export type Path = ReadonlyArray<Segment>

const sets: Readonly<Record<string, ReadonlyArray<Range>>> = {
  alpha: [
    [0x41, 0x5a],
    [0x61, 0x7a]
  ],
  digit: [[0x30, 0x39]],
  alnum: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x61, 0x7a]
  ],
  upper: [[0x41, 0x5a]],
  lower: [[0x61, 0x7a]],
  xdigit: [
    [0x30, 0x39],
    [0x41, 0x46],
    [0x61, 0x66]
  ],
  space: [
    [0x09, 0x0d],
    [0x20, 0x20]
  ],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e]
  ]
}

/** The set that begins at the bracket, and its end; undefined if the bracket is not closed. */
const readSet = (text: string, open: number): readonly [Token, number] | undefined => {
  let at = open + 1
  const negated = text[at] === "!" || text[at] === "^"
  if (negated) at++
  const ranges: Array<Range> = []
  for (const first = at; at < text.length && (text[at] !== "]" || at === first); at++) {
    const named = /^\[:([a-z]+):\]/.exec(text.slice(at, at + 12))
    const known = named?.[1] === undefined ? undefined : sets[named[1]]
    if (named !== null && known !== undefined) {
      ranges.push(...known)
      at += named[0].length - 1
      continue
    }
    if (text[at] === "\\" && at + 1 < text.length) at++
    const from = text.charCodeAt(at)
    if (text[at + 1] === "-" && at + 2 < text.length && text[at + 2] !== "]") {
      at += text[at + 2] === "\\" && at + 3 < text.length ? 3 : 2
      ranges.push([from, text.charCodeAt(at)])
    } else ranges.push([from, from])
  }
  return at < text.length ? [{ negated, ranges }, at] : undefined
}

const readName = (text: string): Name => {
  const tokens: Array<Token> = []
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    const set = sign === "[" ? readSet(text, at) : undefined
    if (set !== undefined) {
      tokens.push(set[0])
      at = set[1]
    } else if (sign === "*") {
      if (tokens.at(-1) !== star) tokens.push(star)
    } else if (sign === "?") tokens.push(one)
    else {
      if (sign === "\\" && at + 1 < text.length) at++
      tokens.push(text.charCodeAt(at))
    }
  }
  const units = tokens.filter((token): token is number => typeof token === "number" && token >= 0)
  return { tokens, literal: units.length === tokens.length ? String.fromCharCode(...units) : undefined }
}

const anyName: Name = { tokens: [star], literal: undefined }

/** Parses a pattern without braces. `**` at the end matches everything in a folder, not the folder. */
export const readPath = (pattern: string): Path => {
  const segments = pattern
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .map((part): Segment => (part === "**" ? folders : readName(part)))
  return segments.at(-1) === folders ? [...segments, anyName] : segments
}

/** Whether a pattern exceeds the limits of length or stars. */
export const isCostly = (pattern: string): boolean =>
  pattern.length > maxGlobLength || (pattern.match(/\*+/g) ?? []).length > maxGlobStars

const fits = (token: Token, unit: number): boolean => {
  if (typeof token === "number") return token === unit || token === one
  return token.ranges.some(([from, to]) => from <= unit && unit <= to) !== token.negated
}

/** Whether the items match the pattern, whose wildcards match any run. Retrying the last wildcard suffices. */
const runs = (
  length: number,
  patternLength: number,
  isWild: (at: number) => boolean,
  pair: (p: number, i: number) => boolean
) => {
  let [p, i, wild, mark] = [0, 0, -1, 0]
  while (i < length) {
    if (p < patternLength && isWild(p)) {
      wild = p++
      mark = i
    } else if (p < patternLength && pair(p, i)) {
      p++
      i++
    } else if (wild >= 0) {
      p = wild + 1
      i = ++mark
    } else return false
  }
  while (p < patternLength && isWild(p)) p++
  return p === patternLength
}

const nameMatches = ({ literal, tokens }: Name, text: string): boolean =>
  literal === undefined
    ? runs(
        text.length,
        tokens.length,
        (p) => tokens[p] === star,
        (p, i) => {
          const token = tokens[p]
          return token !== undefined && fits(token, text.charCodeAt(i))
        }
      )
    : literal === text

const segmentMatches = (segment: Segment | undefined, part: string | undefined): boolean =>
  segment !== undefined && segment !== folders && part !== undefined && nameMatches(segment, part)

/** Whether the names of a path from `from` on match. The last name comes first: most patterns depend on it. */
export const pathMatches = (path: Path, parts: ReadonlyArray<string>, from = 0): boolean =>
  parts.length > from &&
  segmentMatches(path.at(-1), parts.at(-1)) &&
  runs(
    parts.length - from - 1,
    path.length - 1,
    (p) => path[p] === folders,
    (p, i) => segmentMatches(path[p], parts[from + i])
  )

/** Whether something in the folder may match. */
const mayHold = (path: Path, folder: ReadonlyArray<string>): boolean => {
  for (const [at, part] of folder.entries()) {
    if (path[at] === folders) return true
    if (!segmentMatches(path[at], part)) return false
  }
  return path.length > folder.length
}

/** The positions of the brace at `open`, its commas and its closing brace; undefined if it is not closed. */
const readBraces = (pattern: string, open: number): ReadonlyArray<number> | undefined => {
  const edges = [open]
  for (let at = open + 1, depth = 1; at < pattern.length; at++) {
    const sign = pattern[at]
    if (sign === "\\") at++
    else if (sign === "{") depth++
    else if (sign === "," && depth === 1) edges.push(at)
    else if (sign === "}" && --depth === 0) return [...edges, at]
  }
  return undefined
}

const choicesOf = (pattern: string, edges: ReadonlyArray<number>): ReadonlyArray<string> | undefined => {
  const choices = edges.slice(1).map((edge, at) => pattern.slice((edges[at] ?? 0) + 1, edge))
  if (choices.length > 1) return choices
  const [from, to] =
    /^(-?\d{1,9})\.\.(-?\d{1,9})$/
      .exec(choices[0] ?? "")
      ?.slice(1)
      .map(Number) ?? []
  if (from === undefined || to === undefined) return undefined
  const count = Math.min(Math.abs(to - from), maxGlobAlternatives) + 1
  return Array.from({ length: count }, (_, at) => String(from + (to < from ? -at : at)))
}

/** Expands braces, one pattern after the other. */
function* written(pattern: string, from = 0): Generator<string> {
  for (let open = from; open < pattern.length; open++) {
    if (pattern[open] === "\\") open++
    else if (pattern[open] === "{") {
      const edges = readBraces(pattern, open)
      const choices = edges === undefined ? undefined : choicesOf(pattern, edges)
      if (edges === undefined || choices === undefined) continue
      const rest = pattern.slice((edges.at(-1) ?? 0) + 1)
      for (const choice of choices) yield* written(pattern.slice(0, open) + choice + rest, open)
      return
    }
  }
  yield pattern
}

export interface Glob {
  readonly matches: (parts: ReadonlyArray<string>) => boolean
  readonly mayHold: (folder: ReadonlyArray<string>) => boolean
}

/** Compiles a glob; undefined if its braces expand to too many patterns. */
export const compile = (pattern: string): Glob | undefined => {
  const paths: Array<Path> = []
  for (const one of written(pattern)) {
    if (paths.push(readPath(one)) > maxGlobAlternatives) return undefined
  }
  return {
    matches: (parts) => paths.some((path) => pathMatches(path, parts)),
    mayHold: (folder) => paths.some((path) => mayHold(path, folder))
  }
}

/** Whether the text has a wildcard or braces, and so can match more than one file. */
export const isGlob = (text: string): boolean => /[*?[{]/.test(text)

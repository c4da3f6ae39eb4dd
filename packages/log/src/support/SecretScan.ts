/**
 * Finds secrets in one pass: three characters of each form in one table, then the form's check and its rules in place, and
 * long runs that look random. Spec: FM-197, FM-760.
 */
import { RegExp as Expression } from "effect"
import { type CodeUnits, makeCodeUnits } from "./CodeUnits.ts"
import type { SecretForm, SecretKind } from "./SecretForm.ts"
import { openQuote } from "./OpenQuote.ts"
import { blockForms, isHarmless, shortestRun } from "./SecretRules.ts"
import { tokenForms } from "./TokenForms.ts"

// A secret key of AWS has no name: it is 40 characters of base64 beside the id of a key, on a line that speaks of AWS, or alone on
// a line. Hashes of 40 characters have no capital letters.

/** Characters of a secret key of AWS. */
const awsLength = 40
/** Characters of a line that are looked at on each side. */
const beside = 256

const awsShape = /^(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/]+$/
const awsContext = /\b(?:AKIA|ASIA)[A-Z0-9]{16}|\baws|amazon|\bs3\b|secret/i

/** Places where the kind of a letter or digit changes. A word with capital letters and numbers has few. */
const changes = (text: string): number =>
  (text.match(/[a-z](?=[+/]?[A-Z0-9])|[A-Z](?=[+/]?[a-z0-9])|\d(?=[+/]?[A-Za-z])/g) ?? []).length

/** Where the secret key begins that ends a run of characters; undefined if it is none. A run may contain escaped slashes. */
const isAwsSecret = (text: string, start: number, end: number): number | undefined => {
  if (end - start < awsLength) return undefined
  const run = text.slice(start, end)
  const name = run.lastIndexOf("=") + 1
  const key = run.slice(name)
  const bare = key.includes("\\") ? key.replaceAll("\\", "") : key
  if (bare.length !== awsLength || !awsShape.test(bare)) return undefined
  const from = start + name
  const before = text.slice(Math.max(0, from - beside), from)
  const after = text.slice(end, end + beside)
  const line = [before.slice(before.lastIndexOf("\n") + 1), after.split("\n", 1)[0] ?? ""]
  const least = line.some((part) => awsContext.test(part))
    ? 8
    : line.some((part) => /[^\s"',]/.test(part))
      ? Infinity
      : 12
  return changes(bare) >= least ? from : undefined
}

/** Takes a secret. `from` is where the text begins that it was recognised by: its name, its header. */
export type Take = (start: number, end: number, kind: SecretKind, from: number) => void

/** A place where a secret may begin. A known value has its length. */
export interface Hint {
  readonly at: number
  readonly length: number
}

export interface ScanOptions {
  readonly forms: ReadonlyArray<SecretForm>
  /** Values that are secret wherever they are. */
  readonly known?: ReadonlyArray<string>
  /** Random text is a secret too. */
  readonly random?: boolean
}

/** What follows from the lines that a stream has. */
export interface LineReader {
  readonly take: Take
  /**
   * Reads the lines from the one of the hint on in another way: a private key, escapes, or a token that may continue on the
   * next line. Returns where to continue; undefined to stop.
   */
  readonly region: (start: number, hint: Hint) => number | undefined
}

export interface SecretScan {
  /** The first place where a secret may begin, also one that later text completes. */
  readonly hint: (text: string, from: number) => Hint | undefined
  /** Finds the secrets of a whole text. Returns whether it contains what a line break may cut. */
  readonly find: (text: string, take: Take) => boolean
  /** Finds the secrets of whole lines, up to an index. */
  readonly lines: (text: string, to: number, reader: LineReader) => void
}

/** An index of three characters that is equal for both cases of a letter. */
const mask = (1 << 15) - 1
const next = (index: number, code: number): number => ((index << 5) | (code & 31)) & mask
const indexOf = (text: string): number => [0, 1, 2].reduce((index, at) => next(index, text.charCodeAt(at)), 0)

/** Kinds of characters of a run: 1 lower case, 2 upper case, 4 digits, 8 others, 0 none. */
const kindOf = (character: string): number =>
  /[a-z]/.test(character)
    ? 1
    : /[A-Z]/.test(character)
      ? 2
      : /\d/.test(character)
        ? 4
        : /[_+/=-]/.test(character)
          ? 8
          : 0
const kinds = Uint8Array.from({ length: 128 }, (_, code) => kindOf(String.fromCharCode(code)))
const allKinds = 7

const backslash = 0x5c
const slash = 0x2f

/** Whether the escape at the index, of a few backslashes at most, is one of a slash. */
const endsInSlash = (codes: Uint16Array, at: number, to: number): boolean => {
  let end = at
  while (end < to && end - at < 16 && codes[end] === backslash) end++
  return codes[end] === slash
}

/** Whether a run changes between kinds as no word does. A part of a run may be less mixed than the whole. */
const isMixed = (codes: Uint16Array, from: number, to: number, least: number): boolean => {
  let [seen, changes, before] = [0, 0, 0]
  for (let at = from; at < to; at++) {
    const kind = kinds[codes[at] ?? 0] ?? 0
    if (kind === 8 || kind === before || kind === 0) continue
    if (before !== 0) changes++
    before = kind
    seen |= kind
  }
  return seen === allKinds && changes >= (to - from) * least
}

/** A run is random if it changes at this part of its characters; a run with escapes or without its end, earlier. */
const whole = 0.4
const partial = 0.33

interface Entry {
  readonly hint: RegExp
  readonly rules: SecretForm["rules"]
  /** Where the last match of each rule ended: a rule does not match within its own match. Valid for the reading `at`. */
  readonly until: Array<number>
  reading: number
  readonly length: number
  readonly known: string | undefined
  readonly kind: "block" | "broken" | "line"
}

/** A known value up to the first character that JSON, a shell or a line break may write differently. */
const plainStart = (value: string): string => /^[^\s"'\\/]*/.exec(value.slice(0, 4))?.[0] ?? ""

type Entries = ReadonlyArray<Entry>

const entriesOf = ({ forms, known = [] }: ScanOptions): ReadonlyMap<number, Entries> => {
  const entries = new Map<number, Array<Entry>>()
  const put = (starts: ReadonlyArray<string>, entry: Entry) => {
    for (const index of new Set(starts.map(indexOf))) entries.set(index, [...(entries.get(index) ?? []), entry])
  }
  for (const form of forms) {
    const kind = blockForms.includes(form) ? "block" : tokenForms.includes(form) ? "broken" : "line"
    const { hint, rules, starts } = form
    put(starts.split(" "), { hint, rules, until: rules.map(() => 0), reading: 0, length: 0, known: undefined, kind })
  }
  for (const value of known) {
    const start = plainStart(value)
    const hint = new RegExp(Expression.escape(start), "y")
    const sure = start.length >= 3 ? start : value
    const { length } = value
    put([sure.slice(0, 3)], { hint, rules: [], until: [], reading: 0, length, known: value, kind: "broken" })
  }
  return entries
}

const isSpaceOrSlash = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === backslash

/** Where the line's text ends, without spaces and a backslash that continues it. */
const textEnd = (text: string, start: number, end: number): number => {
  let at = end
  while (at > start && isSpaceOrSlash(text.charCodeAt(at - 1))) at--
  return at
}

/** What separates a name from the value after it, and how the value begins. */
const valueAfter = (text: string, hinted: number) => {
  const last = text[hinted - 1]
  const separator = last === ":" || last === "=" ? last : ("none" as const)
  let at = hinted
  if (text[at] === (last === ":" ? "=" : ">")) at++
  while (text[at] === " " || text[at] === "\t") at++
  if (text[at] === "$") at++
  const value = quotes.has(text[at] ?? "") ? ("quoted" as const) : ("bare" as const)
  return { separator, value }
}
const quotes = new Set(['"', "'", "`"])

/** Whether the value after the hint is in quotes that its line does not close. */
const opens = (text: string, hinted: number, start: number, end: number): boolean =>
  valueAfter(text, hinted).value === "quoted" && openQuote(text, start, end) !== undefined

const takeAws = (text: string, start: number, end: number, take: Take): void => {
  const from = isAwsSecret(text, start, end)
  if (from !== undefined) take(from, end, "token", from)
}

const isSpace = /\s/
const nextWord = /[^\S\r\n]*([\w+/=.-]{0,64})/y

// Parts of the lines of a stream are read as whole texts meanwhile.
const [hintUnits, findUnits, lineUnits] = [makeCodeUnits(), makeCodeUnits(), makeCodeUnits()]

export const make = (options: ScanOptions): SecretScan => {
  const entries = entriesOf(options)
  const lists: Array<Entries> = [[], ...entries.values()]
  /** The number of the list for each index; 0 is none. */
  const table = new Uint16Array(mask + 1)
  for (const [number, index] of [...entries.keys()].entries()) table[index] = number + 1
  const withRandom = options.random === true

  /**
   * Calls `place` for each place where three characters of a form begin, and `run` for each long run. Each returns where to
   * continue; undefined to go on, a negative number to stop.
   */
  const walk = (
    units: CodeUnits,
    text: string,
    begin: number,
    to: number,
    place: (at: number, entries: Entries) => number | undefined,
    run: (codes: Uint16Array, start: number, end: number) => number | undefined
  ): void => {
    const codes = units(text)
    let from = begin
    let index = 0
    let start = begin
    for (let at = begin; at < to; at++) {
      const code = codes[at] ?? 0
      index = ((index << 5) | (code & 31)) & mask
      let jump: number | undefined
      const number = table[index] ?? 0
      if (number !== 0 && at >= from + 2) jump = place(at - 2, lists[number] ?? [])
      if (jump === undefined) {
        if (code < 128 && kinds[code] !== 0) continue
        // An escaped slash continues a run of base64.
        if (code === backslash && endsInSlash(codes, at, to)) continue
        if (withRandom && at - start >= shortestRun) jump = run(codes, start, at)
        start = at + 1
      }
      if (jump === undefined) continue
      if (jump < 0) return
      from = jump
      start = jump
      index = 0
      at = jump - 1
    }
    if (withRandom && to - start >= shortestRun) run(codes, start, to)
  }

  /** Where the form's hint ends; 0 if it is not there. */
  const hintEnd = ({ hint }: Entry, text: string, at: number): number => {
    hint.lastIndex = at
    return hint.test(text) ? hint.lastIndex : 0
  }
  const passes = (entry: Entry, text: string, at: number): boolean => hintEnd(entry, text, at) > 0

  /** The number of the text that is read. */
  let reading = 1

  /** Tries the rules of a form; the first that finds a secret decides. Returns the end of the secret, else the place. */
  const apply = (entry: Entry, text: string, at: number, hinted: number, take: Take): number => {
    const { known, rules, until } = entry
    if (known !== undefined) {
      if (!text.startsWith(known, at)) return at
      take(at, at + known.length, "environment value", at)
      return at + known.length
    }
    // What an escape follows is found in the text without escapes.
    if (text.charCodeAt(hinted - 1) === backslash) return at
    if (entry.reading !== reading) {
      until.fill(0)
      entry.reading = reading
    }
    const { separator, value } = valueAfter(text, hinted)
    let reached = at
    for (let number = 0; number < rules.length; number++) {
      const rule = rules[number]
      reached = Math.max(reached, until[number] ?? 0)
      if (rule === undefined || at < (until[number] ?? 0)) continue
      if (rule.separator !== undefined && rule.separator !== separator) continue
      if (rule.value !== undefined && separator !== "none" && rule.value !== value) continue
      const { accepts, kind, pattern } = rule
      pattern.lastIndex = at
      const match = pattern.exec(text)
      if (match === null) continue
      const end = at + match[0].length
      until[number] = end
      const lead = match.groups?.["lead"]
      const secret = lead === undefined ? (match[match.length - 1] ?? match[0]) : lead + match[0]
      if (secret === "" || accepts?.(secret) === false) continue
      take(end - secret.length, end, kind, at - (lead?.length ?? 0))
      return end
    }
    return reached
  }

  const beginsToken = (word: string): boolean =>
    entries.get(indexOf(word))?.some((entry) => entry.kind === "broken" && passes(entry, word, 0)) === true

  const restart = () => void reading++

  const hint: SecretScan["hint"] = (text, from) => {
    let found: Hint | undefined
    walk(
      hintUnits,
      text,
      from,
      text.length,
      (at, list) => {
        const entry = list.find((each) => passes(each, text, at))
        if (entry === undefined) return undefined
        found = { at, length: entry.length }
        return -1
      },
      (codes, start, end) => {
        // A run that continues after this text may still become random.
        const mixed = isMixed(codes, start, end, end === text.length ? 0 : partial) && !isHarmless(text, start)
        if (!mixed && isAwsSecret(text, start, end) === undefined) return undefined
        found = { at: start, length: 0 }
        return -1
      }
    )
    return found
  }

  const find: SecretScan["find"] = (text, take) => {
    restart()
    /** Where a secret ends. What begins in it adds nothing, unless a line break may cut it. */
    let covered = 0
    let breaks = false
    walk(
      findUnits,
      text,
      0,
      text.length,
      (at, list) => {
        for (const entry of list) {
          if (entry.kind === "line" && at < covered) continue
          const hinted = hintEnd(entry, text, at)
          if (hinted === 0) continue
          breaks ||= entry.kind === "broken"
          const reached = apply(entry, text, at, hinted, take)
          if (entry.kind === "line" && reached > at) {
            covered = reached
            break
          }
        }
        return undefined
      },
      (codes, start, end) => {
        if (isMixed(codes, start, end, whole) && !isHarmless(text, start)) take(start, end, "random text", start)
        else takeAws(text, start, end, take)
        return undefined
      }
    )
    return breaks
  }

  const lines: SecretScan["lines"] = (text, to, { region, take }) => {
    restart()
    let [start, end, escape, covered] = [0, 0, -1, 0]
    /** Whether the line contains an escape. */
    const locate = (at: number): boolean => {
      if (at >= end) {
        start = text.lastIndexOf("\n", at - 1) + 1
        const newline = text.indexOf("\n", at)
        end = newline < 0 || newline >= to ? to : newline + 1
      }
      if (escape < start) {
        const found = text.indexOf("\\", start)
        escape = found < 0 ? text.length : found
      }
      return escape < end
    }
    /** Whether a token or a known value that begins in the line may continue on the next one. */
    const mayBreak = ({ known, length }: Entry, at: number, reached: number): boolean => {
      if (at + length > end) return true
      const last = textEnd(text, start, end)
      let word = reached
      while (word < last && !isSpace.test(text[word] ?? "")) word++
      if (word < last) return false
      if (reached === at || known !== undefined) return reached === at
      // A token that is complete on its line is continued only by text like its own.
      nextWord.lastIndex = end
      const next = nextWord.exec(text)?.[1] ?? ""
      return end >= to || (/^(?=.*\d)(?=.*[A-Za-z]).{4}/.test(next) && !beginsToken(next))
    }
    const regionFrom = (found: Hint): number => {
      const at = region(start, found) ?? -1
      restart()
      return at
    }
    walk(
      lineUnits,
      text,
      0,
      to,
      (at, list) => {
        for (const entry of list) {
          if (entry.kind === "line" && at < covered) continue
          const hinted = hintEnd(entry, text, at)
          if (hinted === 0) continue
          const escapes = locate(at)
          if (escapes || entry.kind === "block") return regionFrom({ at, length: entry.length })
          const reached = apply(entry, text, at, hinted, take)
          if (entry.kind === "line") {
            if (reached === at && opens(text, hinted, start, end)) return regionFrom({ at, length: 0 })
            if (reached === at) continue
            covered = reached
            break
          }
          if (mayBreak(entry, at, reached)) return regionFrom({ at, length: entry.length })
        }
        return undefined
      },
      (codes, from, until) => {
        const escapes = locate(from)
        const mixed = isMixed(codes, from, until, escapes ? partial : whole) && !isHarmless(text, from)
        if (escapes && (mixed || isAwsSecret(text, from, until) !== undefined))
          return regionFrom({ at: from, length: 0 })
        if (mixed) take(from, until, "random text", from)
        else takeAws(text, from, until, take)
        return undefined
      }
    )
  }

  return { hint, find, lines }
}

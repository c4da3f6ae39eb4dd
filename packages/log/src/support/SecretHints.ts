/**
 * Finds where a text may contain a secret, many times faster than the rules do: three characters of each rule's literal
 * text in one table, then a check in place, and long runs that look random. Streams apply `SecretRules.ts` only around
 * hints. Each rule needs an entry here; a test generates texts from each rule. Spec: FM-197.
 */

import { RegExp as Expression } from "effect"
import { codeUnits } from "./CodeUnits.ts"

const secretNames =
  "pass(?:word|wd|phrase)|secret|token|(?:api|access|private|secret|signing|account)[_-]?key|credentials?|connection[_-]?string"

/** What a rule's match contains: its first three characters, then the check from there. */
const literals: ReadonlyArray<readonly [starts: string, check: string, flags?: "i"]> = [
  // Tokens.
  ["sk- rk- pk- gsk xai", "(?<![A-Za-z0-9-])(?:[srp]k|gsk|xai)-"],
  ["key", "(?<![A-Za-z0-9_-])key-"],
  [
    "gsk hf_ hf- r8_ r8- npm fw_ fw- ppl tvl csk nva fig jin voy tog glc gls snt lin ntn",
    "(?<![A-Za-z0-9_-])(?:gsk|hf|r8|npm|fw|pplx|tvly|csk|nvapi|figd|jina|voyage|together|glc|glsa|sntryu?s?|lin_api|ntn)[_-]"
  ],
  ["aki asi abi acc aro aid aiz ya2", "AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AIza|ya29"],
  ["goc 1// dop dor doo dap hvs hvb hvr", "GOCSPX-|1//0|do[opr]_v1_|dapi[a-f0-9]|hv[sbr]\\."],
  ["pul sbp sb_ .at dp.", "pul-|sbp_|sb_secret_|\\.atlasv1\\.|dp\\.(?:pt|st|ct|sa)\\."],
  ["gho ghp ghr ghs ghu git", "gh[oprsu][-_]|github_pat_"],
  ["glp gld glr glc glf gls gla glo gli", "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-"],
  ["pyp rub ata xox xap :aa sg.", "pypi-AgE|rubygems_|ATATT3|xox[abeoprs]-|xapp-|:AA|SG\\."],
  [[..."0123456789abcdef"].map((digit) => `sk${digit} ac${digit}`).join(" "), "(?<![A-Za-z0-9_-])(?:SK|AC)[a-f0-9]{2}"],
  ["sk_ rk_", "[rs]k_(?:live|test)_|(?<=_)sk_"],
  ["whs shp sq0 nra age eyj", "whsec_|shp(?:at|ca|pa|ss)_|sq0|NRAK-|AGE-SECRET-KEY-1|eyJ"],
  // Private keys.
  ["beg", "(?<=-----)BEGIN "],
  // Headers.
  ["bea bas", "(?:bearer|basic)(?:[^\\S\\r\\n]|\\\\)", "i"],
  ["aut api sec pri coo", "authorization|api-key|auth-token|security-token|private-token|cookie", "i"],
  // URLs.
  ["://", "://[^\\s/?#\"'<>]{0,770}@"],
  [
    "acc ref id_ tok api key sig sec cli pas aut x-a",
    "(?<=[?&;])(?:(?:access_|refresh_|id_)?token|api_?key|key|sig|signature|(?:client_)?secret|password|auth|x-amz-[a-z-]+)[=\\\\]",
    "i"
  ],
  ["sla /we", "slack\\.com|/webhooks"],
  // Assignments, also with escaped quotes.
  ["pas sec tok api acc pri sig cre con", `(?:${secretNames})(?:\\\\|["'\`]?\\]?[^\\S\\r\\n]{0,8}[:=])`, "i"],
  ["pas pwd", "(?<=--)pass(?:word|wd|phrase)[^\\S\\r\\n]|(?<=[a-z0-9]_)(?:pass|pwd)=", "i"],
  ["key pat pwd pas aut cre", "(?<=[A-Z0-9]_)(?:KEY|PAT|PWD|PASS|AUTH|CREDENTIALS?)[=\\\\]"],
  // Data, and characters written as escapes.
  ["bas", "(?<=;)base64,"],
  ["\\u0", "\\\\u00[2-7]"]
]

/** An index of three characters that is equal for both cases of a letter. */
const mask = (1 << 15) - 1
const next = (index: number, code: number): number => ((index << 5) | (code & 31)) & mask
const indexOf = (text: string): number => [0, 1, 2].reduce((index, at) => next(index, text.charCodeAt(at)), 0)

/** Kinds of characters as `randomRule` sees them: 1 lower case, 2 upper case, 4 digits, 8 others of a run, 0 none. */
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

const backslash = 0x5c
const shortestRun = 24

/** Whether a run changes between kinds as no word does; `open`: whether it may, if it continues. */
const isRandom = (codes: Uint16Array, from: number, to: number, open: boolean): boolean => {
  let [seen, changes, before] = [0, 0, 0]
  for (let at = from; at < to; at++) {
    const kind = kinds[codes[at] ?? 0] ?? 0
    if (kind === 8 || kind === before || kind === 0) continue
    if (before !== 0) changes++
    before = kind
    seen |= kind
  }
  return seen === allKinds && (open || changes * 3 >= to - from)
}
const allKinds = 7

/** A place where a secret may begin. A known value has its length. */
export interface Hint {
  readonly at: number
  readonly length: number
}

interface Check {
  readonly pattern: RegExp
  readonly length: number
}

/** A known value up to the first character that JSON, a shell or a line break may write differently. */
const plainStart = (value: string): string => /^[^\s"'\\/]*/.exec(value.slice(0, 4))?.[0] ?? ""

const checksOf = (known: ReadonlyArray<string>): ReadonlyArray<readonly [starts: ReadonlyArray<string>, Check]> => [
  ...literals.map(
    ([starts, check, flags = ""]) =>
      [starts.split(" "), { pattern: new RegExp(check, `y${flags}`), length: 0 }] as const
  ),
  ...known.map((value) => {
    const start = plainStart(value)
    const sure = start.length >= 3 ? start : value
    return [[sure.slice(0, 3)], { pattern: new RegExp(Expression.escape(start), "y"), length: value.length }] as const
  })
]

/** Finds hints of all rules and of the known values. */
export const make = (known: ReadonlyArray<string> = []): ((text: string, from: number) => Hint | undefined) => {
  const table = new Uint8Array(mask + 1)
  const checks = new Map<number, Array<Check>>()
  for (const [starts, check] of checksOf(known)) {
    for (const index of new Set(starts.map(indexOf))) {
      table[index] = 1
      checks.set(index, [...(checks.get(index) ?? []), check])
    }
  }

  const checked = (text: string, at: number, index: number): Hint | undefined => {
    for (const { length, pattern } of checks.get(index) ?? []) {
      pattern.lastIndex = at
      if (pattern.test(text)) return { at, length }
    }
    return undefined
  }

  return (text, from) => {
    const codes = codeUnits(text)
    const { length } = text
    let index = 0
    let start = from
    for (let at = from; at < length; at++) {
      const code = codes[at] ?? 0
      index = ((index << 5) | (code & 31)) & mask
      if (table[index] === 1 && at >= from + 2) {
        const hint = checked(text, at - 2, index)
        if (hint !== undefined) return hint
      }
      if (code < 128 && kinds[code] !== 0) continue
      // An escaped slash continues a run of base64.
      if (code === backslash && /^\\*\//.test(text.slice(at, at + 16))) continue
      if (at - start >= shortestRun && isRandom(codes, start, at, false)) return { at: start, length: 0 }
      start = at + 1
    }
    // A run that continues after this text may still become random.
    return length - start >= shortestRun && isRandom(codes, start, length, true) ? { at: start, length: 0 } : undefined
  }
}

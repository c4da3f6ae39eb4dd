/**
 * Translates the regular expressions that people and models write for ripgrep and grep into those of JavaScript: POSIX classes,
 * Unicode properties, inline flags and anchors. What has no counterpart is refused with its name. Pure. Spec: TO-544.
 */
import { Either } from "effect"

/** An expression for `RegExp`. */
export interface SearchPattern {
  readonly source: string
  readonly flags: string
  /** It can match a line break: the text is searched as a whole, not line by line. */
  readonly multiline: boolean
}

/** The ASCII classes of POSIX, as ripgrep has them. */
const posix: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`\\{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f"
}

/** Escapes that JavaScript has with the same meaning. */
const sameEscapes = new Set("dDwWsSbBnrtfv0cuxk123456789")
/** Characters that may be escaped in a Unicode expression. */
const syntax = new Set("^$\\.*+?()[]{}|/")

/** Escapes of other dialects, outside a class. */
const anchors: Readonly<Record<string, string>> = {
  A: "(?<![\\s\\S])",
  z: "(?![\\s\\S])",
  Z: "(?![\\s\\S])",
  "<": "\\b(?=\\w)",
  ">": "\\b(?<=\\w)",
  h: "[\\t ]",
  N: "[^\\n]",
  R: "(?:\\r\\n|\\n|\\r)"
}
const controls: Readonly<Record<string, string>> = { a: "\\x07", e: "\\x1B" }

type Part = Either.Either<readonly [source: string, length: number], string>

/** Compiles an expression; returns what is wrong with it. */
export const compile = (source: string, flags: string): Either.Either<RegExp, string> =>
  Either.try({
    try: () => new RegExp(source, flags),
    catch: (cause) => (cause instanceof Error ? cause.message.slice(0, 500) : "")
  })

const valid = (source: string): boolean => Either.isRight(compile(source, "u"))

/** `\p{L}`, `\pL`, `\p{Greek}`, `\p{Script=Greek}`. */
const propertyOf = (pattern: string, at: number): Part => {
  const [whole = "", letter = "", braced, single] =
    /^\\([pP])(?:\{(\^?[\w=: -]+)\}|([A-Za-z]))/.exec(pattern.slice(at, at + 80)) ?? []
  const name = (braced ?? single ?? "").replaceAll(" ", "_")
  for (const form of [name, `Script=${name}`, `General_Category=${name}`]) {
    const source = `\\${letter}{${form}}`
    if (name !== "" && valid(source)) return Either.right([source, whole.length])
  }
  return Either.left(`the Unicode property ${pattern.slice(at, at + Math.max(whole.length, 3))}`)
}

/** An escape at this place, outside or inside a class. */
const escapeOf = (pattern: string, at: number, isInClass: boolean): Part => {
  const next = pattern[at + 1]
  if (next === undefined) return Either.left("a backslash at the end")
  if (next === "p" || next === "P") return propertyOf(pattern, at)
  const [hex, digits = ""] = /^\\[xu]\{([0-9A-Fa-f]{1,6})\}/.exec(pattern.slice(at, at + 12)) ?? []
  if (hex !== undefined) return Either.right([`\\u{${digits}}`, hex.length])
  if (sameEscapes.has(next)) return Either.right([`\\${next}`, 2])
  const control = controls[next]
  if (control !== undefined) return Either.right([control, 2])
  if (isInClass) {
    if (next === "h") return Either.right(["\\t ", 2])
    if (next === "-") return Either.right(["\\-", 2])
  } else {
    const anchor = anchors[next]
    if (anchor !== undefined) return Either.right([anchor, 2])
    if (/[GKXQEC]/.test(next)) return Either.left(`the escape \\${next}`)
  }
  const [character = ""] = Array.from(pattern.slice(at + 1, at + 3))
  return Either.right([syntax.has(character) ? `\\${character}` : character, 1 + character.length])
}

const setNext = /^(?:\\[dDwWsSpP]|\[:)/

/** A class in brackets at this place. */
const classOf = (pattern: string, at: number): Part =>
  Either.gen(function* () {
    let source = "["
    let index = at + 1
    if (pattern[index] === "^") {
      source += "^"
      index++
    }
    // Beside a set, such as `\w`, a hyphen is no range.
    let isAfterSet = false
    for (let isFirst = true; ; isFirst = false) {
      const character = pattern[index]
      if (character === undefined) return yield* Either.left('a "[" without its "]"')
      if (character === "]" && !isFirst) return [`${source}]`, index + 1 - at] as const
      const [name, negated, key = ""] = /^\[:(\^?)(\w+):\]/.exec(pattern.slice(index, index + 14)) ?? []
      const members = posix[key]
      if (name !== undefined) {
        if (members === undefined) return yield* Either.left(`the class ${name}`)
        if (negated === "^") return yield* Either.left(`the negated class ${name} (write [^[:${key}:]])`)
        source += members
        index += name.length
        isAfterSet = true
      } else if (character === "\\") {
        const [escaped, length] = yield* escapeOf(pattern, index, true)
        source += escaped
        index += length
        isAfterSet = /^\\[dDwWsSpP]/.test(escaped)
      } else if (character === "-" && (isAfterSet || setNext.test(pattern.slice(index + 1, index + 3)))) {
        source += "\\-"
        index++
        isAfterSet = false
      } else if (
        pattern.startsWith("&&", index) ||
        pattern.startsWith("--", index) ||
        pattern.startsWith("~~", index)
      ) {
        return yield* Either.left(`the set operation ${pattern.slice(index, index + 2)} in a class`)
      } else {
        source += character === "[" || (character === "]" && isFirst) ? `\\${character}` : character
        index++
        isAfterSet = false
      }
    }
  })

/** A group that begins with `(?` at this place. */
const groupOf = (pattern: string, at: number): Part => {
  const rest = pattern.slice(at, at + 80)
  const [named, name = ""] = /^\(\?P?<([A-Za-z_]\w*)>/.exec(rest) ?? []
  if (named !== undefined) return Either.right([`(?<${name}>`, named.length])
  const [known] = /^\(\?(?:[:=!]|<[=!])/.exec(rest) ?? []
  if (known !== undefined) return Either.right([known, known.length])
  if (rest.startsWith("(?>")) return Either.left("an atomic group (?>")
  const [flags] = /^\(\?[a-zA-Z-]*[:)]?/.exec(rest) ?? ["(?"]
  // Newer engines know `(?i:...)`.
  if (flags.endsWith(":") && valid(`${flags}x)`)) return Either.right([flags, flags.length])
  return Either.left(`${flags} inside the expression; flags may stand at its beginning`)
}

/** Flags at the beginning: `(?i)`, `(?s)`, `(?m)`. */
const leadingFlags = (pattern: string): Either.Either<readonly [flags: string, length: number], string> => {
  const [whole = "", flags = ""] = /^\(\?([a-zA-Z]+)\)/.exec(pattern) ?? []
  const unknown = Array.from(flags).find((flag) => !"ismu".includes(flag))
  return unknown === undefined ? Either.right([flags, whole.length]) : Either.left(`the flag (?${unknown})`)
}

const isRepetition = /^(?:[*+?]|\{\d+(?:,\d*)?\})/

/** Translates an expression; returns what it uses that has no counterpart. */
export const translate = (pattern: string, ignoreCase: boolean): Either.Either<SearchPattern, string> =>
  Either.gen(function* () {
    const [flags, length] = yield* leadingFlags(pattern)
    let source = ""
    let multiline = flags.includes("s")
    for (let at = length; at < pattern.length;) {
      const character = pattern[at] ?? ""
      if (character === "\\") {
        const [escaped, taken] = yield* escapeOf(pattern, at, false)
        if (escaped === "\\n" || pattern[at + 1] === "R") multiline = true
        source += escaped
        at += taken
      } else if (character === "[") {
        const [members, taken] = yield* classOf(pattern, at)
        source += members
        at += taken
      } else if (pattern.startsWith("(?", at)) {
        const [group, taken] = yield* groupOf(pattern, at)
        source += group
        at += taken
      } else if (isRepetition.test(pattern.slice(at, at + 20))) {
        const [repetition = ""] = isRepetition.exec(pattern.slice(at, at + 20)) ?? []
        if (pattern[at + repetition.length] === "+") {
          return yield* Either.left(`the possessive repetition ${repetition}+`)
        }
        source += repetition
        at += repetition.length
      } else {
        if (character === "\n") multiline = true
        source += "{}]".includes(character) ? `\\${character}` : character
        at++
      }
    }
    const all = `u${ignoreCase || flags.includes("i") ? "i" : ""}${flags.includes("s") ? "s" : ""}`
    return { source, flags: multiline ? `${all}gm` : all, multiline }
  })

/**
 * Searches files with a regular expression, line by line unless it can match a line break, in a separate thread: a JavaScript expression can take
 * exponential time on a short line, and only a thread can be stopped during a match. Spec: TO-44..TO-46, TO-544 in
 * specs/tools.md.
 */
import { Worker } from "node:worker_threads"
import { Effect, Either } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"

// Translates expressions for ripgrep and grep into JavaScript's; what has no counterpart is refused by name.

/** An expression for `RegExp`. */
interface SearchPattern {
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
const compile = (source: string, flags: string): Either.Either<RegExp, string> =>
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
const translate = (pattern: string, ignoreCase: boolean): Either.Either<SearchPattern, string> =>
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

export const searchLimits = {
  matches: 500,
  fileBytes: 10 * 1024 * 1024,
  /** Characters shown of a matching line. */
  line: 400,
  millis: 15_000
} as const

export interface Match {
  readonly file: string
  readonly line: number
  readonly text: string
}

interface SearchResult {
  readonly matches: ReadonlyArray<Match>
  /** Numbers of files searched, and of files skipped by reason. */
  readonly searched: number
  readonly binary: number
  readonly large: number
  readonly unreadable: number
  readonly more: boolean
  /** The file in which the time ran out. */
  readonly stoppedIn: string | undefined
}

interface Job {
  readonly folder: string
  readonly files: ReadonlyArray<string>
  readonly source: string
  readonly flags: string
  readonly multiline: boolean
  readonly limits: { readonly matches: number; readonly fileBytes: number; readonly line: number }
}

type Message =
  | { readonly type: "file"; readonly file: string }
  | { readonly type: "matches"; readonly matches: ReadonlyArray<Match> }
  | {
      readonly type: "done"
      readonly searched: number
      readonly binary: number
      readonly large: number
      readonly unreadable: number
      readonly more: boolean
    }

/** The thread's program, passed as text so that a bundle needs no extra file; it uses nothing from outside. */
const program = () => {
  const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads")
  const fs = process.getBuiltinModule("node:fs")
  const path = process.getBuiltinModule("node:path")
  const job: Job = workerData
  const send = (message: Message) => parentPort?.postMessage(message, [])
  const expression = new RegExp(job.source, job.flags)
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
  let [found, searched, binary, large, unreadable] = [0, 0, 0, 0, 0]

  /** The file's bytes, or why the file is not searched. */
  const load = (file: string) => {
    const full = path.join(job.folder, file)
    let descriptor: number | undefined
    try {
      descriptor = fs.openSync(full, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0))
      const stats = fs.fstatSync(descriptor)
      if (!stats.isFile()) return "unreadable" as const
      // A parent folder may have become a symbolic link since the files were listed.
      if (fs.realpathSync(full) !== full) return "unreadable" as const
      return stats.size > job.limits.fileBytes ? ("large" as const) : fs.readFileSync(descriptor)
    } catch {
      return "unreadable" as const
    } finally {
      if (descriptor !== undefined) fs.closeSync(descriptor)
    }
  }

  /** The text: UTF-8, UTF-16 with its mark, else a byte for each character; undefined for what is no text. */
  const decode = (bytes: Buffer): string | undefined => {
    const marked =
      bytes[0] === 0xff && bytes[1] === 0xfe
        ? "utf-16le"
        : bytes[0] === 0xfe && bytes[1] === 0xff
          ? "utf-16be"
          : undefined
    if (marked === undefined && bytes.subarray(0, 8192).includes(0)) return undefined
    try {
      return new TextDecoder(marked ?? "utf-8", { fatal: marked === undefined }).decode(bytes)
    } catch {
      const lenient = bytes.toString("utf8")
      const broken = lenient.split("\uFFFD").length - 1
      const whole = lenient.replaceAll(/[\p{ASCII}\uFFFD]/gu, "").length
      return broken > whole ? new TextDecoder("windows-1252").decode(bytes) : lenient
    }
  }

  /** The matches of an expression that can span lines, each at its first line. */
  const searchWhole = (file: string, content: string) => {
    const text = content.replaceAll("\r\n", "\n")
    const matches: Array<Match> = []
    let [line, counted] = [1, 0]
    for (const match of text.matchAll(expression)) {
      if (found > job.limits.matches) break
      // An expression that matches nothing would match everywhere.
      if (match[0] === "") continue
      found++
      for (let at = text.indexOf("\n", counted); at >= 0 && at < match.index; at = text.indexOf("\n", counted)) {
        line++
        counted = at + 1
      }
      const end = text.indexOf("\n", Math.max(match.index, match.index + match[0].length - 1))
      const shown = text.slice(counted, end < 0 ? text.length : end)
      const cut = shown.length > job.limits.line ? `${shown.slice(0, job.limits.line)}...` : shown
      if (found <= job.limits.matches) matches.push({ file, line, text: cut })
    }
    if (matches.length > 0) send({ type: "matches", matches })
  }

  const searchFile = (file: string, content: string) => {
    const matches: Array<Match> = []
    let number = 0
    for (let from = 0; from < content.length && found < job.limits.matches + 1;) {
      const newline = content.indexOf("\n", from)
      const end = newline < 0 ? content.length : newline
      const line = content.slice(from, content[end - 1] === "\r" && end > from ? end - 1 : end)
      number++
      const at = line.search(expression)
      if (at >= 0) {
        found++
        // A long line is truncated around the match.
        const start = line.length <= job.limits.line ? 0 : Math.max(0, at - 80)
        const part = line.slice(start, start + job.limits.line)
        const text = `${start > 0 ? "..." : ""}${part}${start + part.length < line.length ? "..." : ""}`
        if (found <= job.limits.matches) matches.push({ file, line: number, text })
      }
      from = end + 1
    }
    if (matches.length > 0) send({ type: "matches", matches })
  }

  for (const file of job.files) {
    if (found > job.limits.matches) break
    send({ type: "file", file })
    const loaded = load(file)
    if (loaded === "large") large++
    else if (loaded === "unreadable") unreadable++
    else {
      const content = decode(loaded)
      if (content === undefined) binary++
      else {
        searched++
        if (job.multiline) searchWhole(file, content)
        else searchFile(file, content)
      }
    }
  }
  send({ type: "done", searched, binary, large, unreadable, more: found > job.limits.matches })
}

/** The expression for the search; refuses one that is invalid, or that the search does not support. */
export const readExpression = (pattern: string, ignoreCase: boolean): Effect.Effect<SearchPattern, ToolFailure> =>
  Effect.gen(function* () {
    const translated = yield* Either.mapLeft(
      translate(pattern, ignoreCase),
      (what) => `"pattern" uses ${what}, which grep does not support`
    )
    yield* Either.mapLeft(
      compile(translated.source, translated.flags),
      (why) => `"pattern" is not a regular expression: ${why}`
    )
    return translated
  }).pipe(Effect.mapError((message) => new ToolFailure({ type: "tool.input", message })))

/** Searches the files, relative to a canonical folder, in order. */
export const searchLines = Effect.fn("LineSearch.search")(function* (options: {
  readonly folder: string
  readonly files: ReadonlyArray<string>
  readonly pattern: SearchPattern
  /** For tests; 15 seconds by default. */
  readonly millis?: number
}) {
  const { files, folder, pattern } = options
  const { fileBytes, line, matches: maximum } = searchLimits
  const workerData: Job = { folder, files, ...pattern, limits: { fileBytes, line, matches: maximum } }
  return yield* Effect.async<SearchResult, ToolFailure>((resume) => {
    const matches: Array<Match> = []
    let current: string | undefined
    let searched = 0
    const broken = new ToolFailure({ type: "tool.execution", message: "the search broke; try a smaller folder" })
    const worker = new Worker(`(${program.toString()})()`, {
      eval: true,
      workerData,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 512 }
    })
    const stop = () => {
      clearTimeout(timer)
      void worker.terminate()
    }
    const finish = (result: Effect.Effect<SearchResult, ToolFailure>) => {
      stop()
      resume(result)
    }
    // A system timer, not the Effect clock, because it bounds processor time.
    const timer = setTimeout(() => {
      const rest = { binary: 0, large: 0, unreadable: 0, more: true, stoppedIn: current }
      finish(Effect.succeed({ matches, searched: Math.max(0, searched - 1), ...rest }))
    }, options.millis ?? searchLimits.millis)
    worker.on("message", (message: Message) => {
      switch (message.type) {
        case "file":
          current = message.file
          searched++
          return
        case "matches":
          matches.push(...message.matches)
          return
        case "done": {
          const { type: _type, ...counts } = message
          return finish(Effect.succeed({ matches, ...counts, stoppedIn: undefined }))
        }
      }
    })
    worker.on("error", () => finish(broken))
    worker.on("exit", () => finish(broken))
    return Effect.sync(stop)
  })
})

/**
 * Applies a budget to a stream of text: lines that match, of these the first and last, of these so many characters.
 * What is left out is marked and counted. The memory is bounded by the budget. Spec: SL-39..SL-44, SL-52.
 */
import { Either } from "effect"
import { RE2JS } from "re2js"
import { codeUnits } from "@daybook/log/support/CodeUnits"
import { beginningOf, endOf } from "@daybook/log/support/Text"
import { messageOf } from "@daybook/log/support/SystemError"
import { type Budget, defaultCharacters, type Keep, type StreamReport } from "../domain/ExecResult.ts"
import { InvalidOption } from "../domain/ShellError.ts"

// Compiles patterns of callers with RE2's syntax: the time of a match is linear in the text, whatever the pattern is.

/** Whether the pattern matches somewhere in the text. */
export type LinearPattern = (text: string) => boolean

export const longestPattern = 4_096

/** The time of a match is also linear in the size of the pattern's program, which repetitions multiply. */
const largestProgram = 20_000

const special = /[\\^$.|?*+()[\]{}]/

/** Compiles a pattern. `option` names it in the error. */
export const compilePattern = (option: string, pattern: string): Either.Either<LinearPattern, InvalidOption> => {
  const refuse = (details: string) => new InvalidOption({ option, details })
  if (Buffer.byteLength(pattern) > longestPattern) {
    return Either.left(refuse(`the pattern is longer than ${longestPattern} bytes`))
  }
  if (!special.test(pattern)) return Either.right((text) => text.includes(pattern))
  return Either.flatMap(
    Either.try({
      try: () => RE2JS.compile(pattern),
      catch: (cause) => refuse(messageOf(cause))
    }),
    (compiled) =>
      compiled.programSize() > largestProgram
        ? Either.left(refuse("the pattern is too large: it repeats too much"))
        : Either.right((text: string) => compiled.test(text))
  )
}

// Keeps the beginning and the end of a long text in bounded memory, and counts the rest.

/** A copy, so that a slice does not keep its whole text in memory. */
const detached = (text: string): string => (text.length < 16 ? text : ` ${text}`.slice(1))

/** A tail of up to this length is not shortened: shortening copies it. */
const shortTail = 32_768

export class HeadTail {
  private readonly limit: number
  private readonly headLength: number
  private readonly tailLength: number
  private head = ""
  private tail = ""
  /** Characters of the whole text. */
  length = 0

  /** Keeps at most `limit` characters: a text of up to that length is whole. */
  constructor(limit: number) {
    this.limit = limit
    this.headLength = Math.ceil(limit / 2)
    this.tailLength = limit - this.headLength
  }

  add(text: string): void {
    this.length += text.length
    const room = this.headLength - this.head.length
    if (room > 0) this.head += detached(text.slice(0, room))
    if (room >= text.length) return
    const rest = room > 0 ? text.slice(room) : text
    // One character more shows whether the first is half of a pair.
    if (rest.length > this.tailLength) this.tail = detached(rest.slice(-this.tailLength - 1))
    else this.tail += detached(rest)
    if (this.tail.length > Math.max(2 * this.tailLength, shortTail)) {
      this.tail = detached(this.tail.slice(-this.tailLength - 1))
    }
  }

  /** What is kept now; `omitted` counts the characters between `head` and `tail`. */
  kept() {
    if (this.length <= this.limit) return { head: this.head + this.tail, tail: "", omitted: 0 }
    const head = beginningOf(this.head + this.tail.slice(0, 1), this.headLength)
    const tail = endOf(this.tail, this.tailLength)
    return { head, tail, omitted: this.length - head.length - tail.length }
  }
}

// Limits the characters of the lines that a budget selected, and marks what is left out.

export interface Line {
  readonly number: number
  readonly text: string
  readonly length: number
}

const linesMark = (lines: number): string => `[... ${lines} ${lines === 1 ? "line" : "lines"} left out ...]`
const charactersMark = (characters: number): string =>
  `[... ${characters} ${characters === 1 ? "character" : "characters"} left out ...]`

/** Lines with their newlines, first in, first out. */
class LineQueue {
  private lines: Array<Line> = []
  private start = 0
  /** Stored characters. */
  size = 0

  get count(): number {
    return this.lines.length - this.start
  }

  get first(): Line | undefined {
    return this.lines[this.start]
  }

  push(line: Line): void {
    this.lines.push(line)
    this.size += line.text.length + 1
  }

  shift(): void {
    this.size -= (this.lines[this.start]?.text.length ?? -1) + 1
    this.start++
    if (this.start < 1_024 || this.start < this.lines.length / 2) return
    this.lines = this.lines.slice(this.start)
    this.start = 0
  }

  /** Removes the oldest lines until at most `count` lines of `size` characters remain, but keeps the last. */
  shorten(count: number, size: number): void {
    while (this.count > count || (this.size > size && this.count > 1)) this.shift()
  }

  take(): ReadonlyArray<Line> {
    const lines = this.lines.slice(this.start)
    this.lines = []
    this.start = 0
    this.size = 0
    return lines
  }
}

/** Lines in order; a first or last one may be a part of a line. */
interface Part {
  readonly lines: ReadonlyArray<{ readonly number: number; readonly text: string }>
  readonly text: string
}

class LineCap {
  private readonly limit: number
  private readonly headLength: number
  private readonly head: Array<Line> = []
  private headSize = 0
  private readonly tail = new LineQueue()
  /** Characters of all selected lines, each with a newline. */
  private total = 0

  constructor(limit: number) {
    this.limit = limit
    this.headLength = Math.ceil(limit / 2)
  }

  push(line: Line): void {
    this.total += line.length + 1
    if (this.headSize < this.headLength) {
      this.head.push(line)
      this.headSize += line.text.length + 1
      return
    }
    this.tail.push(line)
    if (this.total - 1 <= this.limit) return
    while (this.tail.size - (this.tail.first?.text.length ?? 0) - 1 > this.limit) this.tail.shift()
  }

  /** The lines with marks. `total` is the number of lines of the whole stream. */
  render(total: number) {
    const all = [...this.head, ...this.tail.take()]
    const cut = this.total - 1 > this.limit
    const first = cut ? headPart(all, this.headLength) : wholePart(all)
    const last = cut ? tailPart(all, this.limit - this.headLength) : wholePart([])
    const omitted = cut ? this.total - 1 - first.text.length - last.text.length : 0
    const shown = [...first.lines, ...last.lines]
    const middle = omitted > 0 ? [charactersMark(omitted)] : []
    const end = shown.at(-1)?.number ?? 0
    const text = [
      ...withMarks(first.lines, 0),
      ...middle,
      ...withMarks(last.lines, (last.lines[0]?.number ?? 1) - 1),
      ...(end < total && (last.lines.length > 0 || !cut) ? [linesMark(total - end)] : [])
    ].join("\n")
    return {
      text,
      linesKept: new Set(shown.map(({ number }) => number)).size,
      charactersKept: first.text.length + last.text.length
    }
  }
}

const wholePart = (lines: ReadonlyArray<Line>): Part => ({ lines, text: lines.map(({ text }) => text).join("\n") })

/** The lines of this length at the beginning, each cut by `cut`, if they do not fit. */
const within = (lines: ReadonlyArray<Line>, length: number, cut: typeof beginningOf): ReadonlyArray<Line> => {
  const kept: Array<Line> = []
  let left = length
  for (const line of lines) {
    if (left <= 0) break
    const text = cut(line.text, left)
    if (text.length === line.text.length || text !== "") kept.push({ ...line, text })
    if (text.length < line.text.length) break
    left -= text.length + 1
  }
  return kept
}

const headPart = (lines: ReadonlyArray<Line>, length: number): Part => wholePart(within(lines, length, beginningOf))

const tailPart = (lines: ReadonlyArray<Line>, length: number): Part =>
  wholePart(within(lines.toReversed(), length, endOf).toReversed())

/** The texts of lines, with marks where lines are missing after the line `previous`. */
const withMarks = (lines: Part["lines"], previous: number): ReadonlyArray<string> =>
  lines.flatMap(({ number, text }, index) => {
    const missing = number - (lines[index - 1]?.number ?? previous) - 1
    return missing > 0 ? [linesMark(missing), text] : [text]
  })

export interface CompiledBudget {
  readonly matches: LinearPattern | undefined
  /** Lines shown before and after a match. */
  readonly context: number
  readonly keep: Keep
  readonly characters: number
}

/** What a budget leaves of a stream. */
export interface ShapedOutput {
  readonly text: string
  readonly truncated: boolean
  readonly report: StreamReport
}

export interface LineBudget {
  readonly add: (text: string) => void
  readonly end: () => ShapedOutput
}

/** Compiles a budget before the command runs. */
export const compile = ({ grep, keep, max_chars }: Budget): Either.Either<CompiledBudget, InvalidOption> => {
  const pattern: Either.Either<LinearPattern | undefined, InvalidOption> =
    grep === undefined ? Either.right(undefined) : compilePattern("budget.grep.pattern", grep.pattern)
  return Either.map(pattern, (matches) => ({
    matches,
    context: grep?.context ?? 0,
    keep: keep ?? { mode: "all" },
    characters: max_chars ?? defaultCharacters
  }))
}

/** The stages after the one that removes trailing newlines. */
interface Stage {
  readonly add: (text: string) => void
  readonly end: (total: { readonly lines: number; readonly characters: number }) => {
    readonly text: string
    readonly linesKept: number
    readonly charactersKept: number
  }
}

const newlinesIn = (text: string): number => {
  const units = codeUnits(text)
  const { length } = text
  let count = 0
  for (let at = 0; at < length; at++) if (units[at] === 10) count++
  return count
}

/** Characters of a stream whose lines are all selected. */
const makeCharacters = (limit: number): Stage => {
  const kept = new HeadTail(limit)
  return {
    add: (text) => kept.add(text),
    end: ({ lines }) => {
      const { head, omitted, tail } = kept.kept()
      const charactersKept = head.length + tail.length
      if (omitted === 0) return { text: head, linesKept: lines, charactersKept }
      const [above, below] = [newlinesIn(head), newlinesIn(tail)]
      // The cut is within one line if every newline is in a part.
      const isOneLine = above + below === lines - 1
      const parts = (head === "" || head.endsWith("\n") ? 0 : 1) + (tail === "" || tail.startsWith("\n") ? 0 : 1)
      return {
        text: [head, charactersMark(omitted), tail].filter((part) => part !== "").join("\n"),
        linesKept: Math.min(lines, above + below + parts - (isOneLine && parts === 2 ? 1 : 0)),
        charactersKept
      }
    }
  }
}

/** Which lines pass, given the lines before. */
const makeGrep = (matches: LinearPattern, context: number, memory: number, pass: (line: Line) => void) => {
  const before = new LineQueue()
  let after = 0
  return (line: Line): void => {
    if (matches(line.text)) {
      for (const each of before.take()) pass(each)
      pass(line)
      after = context
    } else if (after > 0) {
      after--
      pass(line)
    } else if (context > 0) {
      before.push(line)
      before.shorten(context, memory)
    }
  }
}

/** The first and last of the lines. */
const makeKeep = (keep: Keep, memory: number, cap: LineCap) => {
  const first =
    keep.mode === "all" ? Infinity : keep.mode === "head" ? keep.n : keep.mode === "head_tail" ? keep.head : 0
  const last = keep.mode === "tail" ? keep.n : keep.mode === "head_tail" ? keep.tail : 0
  const end = new LineQueue()
  let count = 0
  return {
    pass: (line: Line): void => {
      if (count++ < first) return cap.push(line)
      if (last === 0) return
      end.push(line)
      end.shorten(last, memory)
    },
    end: () => {
      for (const line of end.take()) cap.push(line)
    }
  }
}

/** Selected lines. A line longer than `memory` is matched by its first and last characters. */
const makeLines = ({ characters, context, keep, matches }: CompiledBudget): Stage => {
  const memory = Math.max(2 * characters, 65_536)
  const cap = new LineCap(characters)
  const kept = makeKeep(keep, memory, cap)
  const select = matches === undefined ? kept.pass : makeGrep(matches, context, memory, kept.pass)
  let number = 0
  /** The beginning of the current line. */
  let open: HeadTail | undefined
  const line = (text: string): void => {
    number++
    if (open === undefined && text.length <= memory)
      return select({ number, text: detached(text), length: text.length })
    const whole = open ?? new HeadTail(memory)
    whole.add(text)
    const { head, tail } = whole.kept()
    select({ number, text: tail === "" ? head : `${head}\n${tail}`, length: whole.length })
    open = undefined
  }
  return {
    add: (text) => {
      let from = 0
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
        line(text.slice(from, end))
        from = end + 1
      }
      if (from === text.length) return
      open ??= new HeadTail(memory)
      open.add(text.slice(from))
    },
    end: ({ lines }) => {
      if (number < lines) line("")
      kept.end()
      return cap.render(lines)
    }
  }
}

const newlineBlock = "\n".repeat(4_096)

/** Trailing newlines of the stream are not part of its text (SL-39). */
export const make = (budget: CompiledBudget): LineBudget => {
  const stage =
    budget.matches === undefined && budget.keep.mode === "all" ? makeCharacters(budget.characters) : makeLines(budget)
  let characters = 0
  let newlines = 0
  /** Newlines that are trailing unless more text comes. */
  let trailing = 0
  const pass = (text: string) => {
    characters += text.length
    stage.add(text)
  }
  return {
    add: (text) => {
      let end = text.length
      while (end > 0 && text.charCodeAt(end - 1) === 10) end--
      if (end > 0) {
        newlines += trailing
        for (; trailing > 0; trailing -= newlineBlock.length) pass(newlineBlock.slice(0, trailing))
        const inner = text.slice(0, end)
        newlines += newlinesIn(inner)
        pass(inner)
        trailing = 0
      }
      trailing += text.length - end
    },
    end: () => {
      const lines = characters === 0 ? 0 : newlines + 1
      const { charactersKept, linesKept, text } = stage.end({ lines, characters })
      return {
        text,
        truncated: linesKept < lines || charactersKept < characters,
        report: {
          lines_total: lines,
          lines_kept: linesKept,
          characters_total: characters,
          characters_kept: charactersKept
        }
      }
    }
  }
}

/**
 * Limits the characters of the lines that a budget selected: half from the beginning, half from the end, in bounded
 * memory. Renders them with marks for lines and characters that are left out. Pure; a mutable accumulator.
 * Spec: SL-41..SL-44.
 */
import { firstOf, lastOf } from "./HeadTail.ts"

/** A line of the stream, counted from 1. `text` is shorter than `length` only in a line that no cap can show whole. */
export interface Line {
  readonly number: number
  readonly text: string
  readonly length: number
}

export const linesMark = (lines: number): string => `[... ${lines} ${lines === 1 ? "line" : "lines"} left out ...]`
export const charactersMark = (characters: number): string =>
  `[... ${characters} ${characters === 1 ? "character" : "characters"} left out ...]`

/** Lines with their newlines, first in, first out. */
export class LineQueue {
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

export interface CappedLines {
  readonly text: string
  readonly linesKept: number
  readonly charactersKept: number
}

export class LineCap {
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
  render(total: number): CappedLines {
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

const headPart = (lines: ReadonlyArray<Line>, length: number): Part => {
  const kept: Array<Line> = []
  let left = length
  for (const line of lines) {
    if (left <= 0) break
    const text = firstOf(line.text, left)
    if (text.length === line.text.length || text !== "") kept.push({ ...line, text })
    if (text.length < line.text.length) break
    left -= text.length + 1
  }
  return wholePart(kept)
}

const tailPart = (lines: ReadonlyArray<Line>, length: number): Part => {
  const kept: Array<Line> = []
  let left = length
  for (const line of lines.toReversed()) {
    if (left <= 0) break
    const text = lastOf(line.text, left)
    if (text.length === line.text.length || text !== "") kept.push({ ...line, text })
    if (text.length < line.text.length) break
    left -= text.length + 1
  }
  return wholePart(kept.toReversed())
}

/** The texts of lines, with marks where lines are missing after the line `previous`. */
const withMarks = (lines: Part["lines"], previous: number): ReadonlyArray<string> =>
  lines.flatMap(({ number, text }, index) => {
    const missing = number - (lines[index - 1]?.number ?? previous) - 1
    return missing > 0 ? [linesMark(missing), text] : [text]
  })

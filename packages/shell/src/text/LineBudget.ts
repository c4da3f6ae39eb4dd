/**
 * Applies a budget to a stream of text: lines that match, of these the first and last, of these so many characters. What
 * is left out is marked and counted. The memory is bounded by the budget. Spec: SL-39..SL-44.
 */
import { Either } from "effect"
import { codeUnits } from "@daybook/log/support/Text"
import { type Budget, defaultCharacters, type Keep } from "../domain/Budget.ts"
import type { StreamReport } from "../domain/ExecResult.ts"
import type { InvalidOption } from "../domain/ShellError.ts"
import { detached, HeadTail } from "./HeadTail.ts"
import { compile as compilePattern, type LinearPattern } from "./LinearPattern.ts"
import { charactersMark, LineCap, LineQueue, type Line } from "./LineCap.ts"

/** A budget whose pattern is compiled. */
export interface CompiledBudget {
  readonly matches: LinearPattern | undefined
  /** Lines shown before and after a match. */
  readonly context: number
  readonly keep: Keep
  readonly characters: number
}

/** What a budget leaves of a stream. */
export interface Shaped {
  readonly text: string
  readonly truncated: boolean
  readonly report: StreamReport
}

export interface LineBudget {
  readonly add: (text: string) => void
  readonly end: () => Shaped
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

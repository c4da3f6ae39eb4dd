/** Tests budgets of streams. Spec: SL-39..SL-44 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import * as LineBudget from "../../../packages/shell/src/output/LineBudget.ts"
import { forAll } from "../../support/Cases.ts"
import type { Budget } from "../../../packages/shell/src/domain/ExecResult.ts"
import { cut, sizes } from "../support/Chunks.ts"

const shaped = (budget: Budget, chunks: ReadonlyArray<string>) => {
  const lines = LineBudget.make(Either.getOrThrow(LineBudget.compile(budget)))
  for (const chunk of chunks) lines.add(chunk)
  return lines.end()
}
const textOf = (budget: Budget, ...chunks: ReadonlyArray<string>) => shaped(budget, chunks).text

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n")

const text = fc
  .array(fc.oneof(fc.constant(""), fc.constantFrom("a", "b", "ERROR x", "😀😀", "long ".repeat(8))), { maxLength: 30 })
  .map((lines) => lines.join("\n"))
const count = fc.integer({ min: 1, max: 8 })
const budget: fc.Arbitrary<Budget> = fc.record(
  {
    grep: fc.record({ pattern: fc.constantFrom("ERROR", "^a$", "b|x"), context: fc.integer({ min: 0, max: 3 }) }),
    keep: fc.oneof(
      fc.constant({ mode: "all" as const }),
      fc.record({ mode: fc.constantFrom("head" as const, "tail" as const), n: count }),
      fc.record({ mode: fc.constant("head_tail" as const), head: count, tail: count })
    ),
    max_chars: fc.integer({ min: 1, max: 120 })
  },
  { requiredKeys: [] }
)

/** The lines that a budget selects, by definition. */
const selected = ({ grep, keep = { mode: "all" } }: Budget, lines: ReadonlyArray<string>): ReadonlyArray<number> => {
  const { context = 0, pattern } = grep ?? { pattern: "" }
  const matching = lines.flatMap((line, index) => (new RegExp(pattern).test(line) ? [index] : []))
  const near = lines.flatMap((_, index) => (matching.some((at) => Math.abs(at - index) <= context) ? [index] : []))
  switch (keep.mode) {
    case "all":
      return near
    case "head":
      return near.slice(0, keep.n)
    case "tail":
      return near.slice(-keep.n)
    case "head_tail":
      return near.filter((_, index) => index < keep.head || index >= near.length - keep.tail)
  }
}

describe("LineBudget", () => {
  it("SL-39: newlines at the end are removed, other newlines stay", () => {
    assert.strictEqual(textOf({}, "\n\na\n\nb\n\n\n"), "\n\na\n\nb")
    assert.strictEqual(textOf({}, "a\n", "\n", "\n", "b", "\n"), "a\n\n\nb")
    assert.strictEqual(textOf({}, "\n\n"), "")
    assert.deepStrictEqual(shaped({}, ["\n"]).report.lines_total, 0)
    assert.strictEqual(textOf({ keep: { mode: "tail", n: 2 } }, "a\nb\nc\n\n\n"), "[... 1 line left out ...]\nb\nc")
  })

  it("SL-40: a pattern that RE2 does not support, or too large, is refused before the run", () => {
    for (const pattern of ["(", "(?=a)", "\\1", "a".repeat(4_097), "((a{100}){100}){100}", "(?:a{1000}b{1000}){10}"]) {
      const refused = LineBudget.compile({ grep: { pattern } })
      assert.isTrue(Either.isLeft(refused), pattern)
      if (Either.isLeft(refused)) assert.strictEqual(refused.left.option, "budget.grep.pattern")
    }
  })

  it("SL-41: matching lines with context, gaps named by their number of lines", () => {
    const budget: Budget = { grep: { pattern: "line (3|9)$", context: 1 } }
    assert.strictEqual(
      textOf(budget, numbered(10)),
      "[... 1 line left out ...]\nline 2\nline 3\nline 4\n[... 3 lines left out ...]\nline 8\nline 9\nline 10"
    )
    assert.strictEqual(textOf({ grep: { pattern: "none" } }, numbered(10)), "[... 10 lines left out ...]")
    assert.strictEqual(textOf({ grep: { pattern: "(a+)+$" } }, `${"a".repeat(50_000)}b`), "[... 1 line left out ...]")
  })

  it("SL-41: head, tail and both", () => {
    const mark = (lines: number) => `[... ${lines} lines left out ...]`
    assert.strictEqual(textOf({ keep: { mode: "head", n: 2 } }, numbered(9)), `line 1\nline 2\n${mark(7)}`)
    assert.strictEqual(textOf({ keep: { mode: "tail", n: 2 } }, numbered(9)), `${mark(7)}\nline 8\nline 9`)
    assert.strictEqual(
      textOf({ keep: { mode: "head_tail", head: 1, tail: 1 } }, numbered(9)),
      `line 1\n${mark(7)}\nline 9`
    )
    assert.strictEqual(textOf({ keep: { mode: "head_tail", head: 5, tail: 5 } }, numbered(9)), numbered(9))
  })

  it("SL-42: the character cap keeps half from each end and never cuts a surrogate pair", () => {
    assert.strictEqual(textOf({ max_chars: 10 }, "0123456789"), "0123456789")
    assert.strictEqual(textOf({ max_chars: 10 }, "0123456789a"), "01234\n[... 1 character left out ...]\n6789a")
    assert.strictEqual(textOf({ max_chars: 4 }, "a😀😀😀b"), "a\n[... 6 characters left out ...]\nb")
    const lines = { keep: { mode: "head", n: 9 }, max_chars: 4 } as const
    assert.strictEqual(textOf(lines, "a😀😀😀b"), "a\n[... 6 characters left out ...]\nb")
  })

  it("SL-43: the lines of the definition are kept, in any chunks, and the counts are true", () => {
    forAll([text, budget, sizes], 300, (whole, given, lengths) => {
      const trimmed = whole.replace(/\n+$/, "")
      const lines = trimmed === "" ? [] : trimmed.split("\n")
      const kept = selected(given, lines)
      const chosen = kept.map((index) => lines[index] ?? "").join("\n")
      const result = shaped(given, cut(whole, lengths))
      assert.deepStrictEqual(result, shaped(given, [whole]))
      const { report, text } = result
      assert.strictEqual(report.lines_total, lines.length)
      assert.strictEqual(report.characters_total, trimmed.length)
      assert.strictEqual(result.truncated, report.lines_kept < lines.length || report.characters_kept < trimmed.length)
      const visible = text
        .split("\n")
        .filter((line) => !/^\[\.\.\. \d+ lines? left out/.test(line))
        .join("\n")
      if (chosen.length <= (given.max_chars ?? 100_000)) {
        assert.strictEqual(visible, chosen)
        assert.strictEqual(report.lines_kept, kept.length)
        assert.strictEqual(report.characters_kept, chosen.length)
      } else {
        const [head = "", tail = ""] = visible.split(/(?:^|\n)\[\.\.\. \d+ characters? left out \.\.\.\](?:\n|$)/)
        assert.isTrue(chosen.startsWith(head))
        assert.isTrue(chosen.endsWith(tail))
        assert.strictEqual(report.characters_kept, head.length + tail.length)
        assert.isAtMost(report.characters_kept, given.max_chars ?? 0)
      }
      assert.notMatch(text, /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/)
    })
  })

  it("SL-44: an endless line is bounded, with and without lines to select", () => {
    for (const given of [{ max_chars: 100 }, { max_chars: 100, keep: { mode: "tail", n: 1_000_000 } }] as const) {
      const block = "x".repeat(65_536)
      const { report, text } = shaped(given, [...Array.from({ length: 300 }, () => block), "end"])
      assert.strictEqual(report.characters_total, 300 * 65_536 + 3)
      assert.strictEqual(report.characters_kept, 100)
      assert.strictEqual(report.lines_total, 1)
      assert.strictEqual(report.lines_kept, 1)
      assert.match(text, /^x{50}\n\[\.\.\. 19660703 characters left out \.\.\.\]\nx{47}end$/)
    }
  })

  it("SL-44: of many last lines, or lines before a match, the last 64 Ki characters are held", () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `${index + 1}`.padStart(9, "0"))
    const whole = `${lines.join("\n")}\nend`
    const first = 20_001 - Math.floor(65_536 / 10)
    const start = `[... ${first - 1} lines left out ...]\n${lines[first - 1]}\n`
    const budgets: ReadonlyArray<Budget> = [
      { keep: { mode: "tail", n: 1_000_000 }, max_chars: 1_000 },
      { grep: { pattern: "end", context: 10_000 }, max_chars: 1_000 }
    ]
    for (const given of budgets) assert.strictEqual(textOf(given, whole).slice(0, start.length), start)
  })
})

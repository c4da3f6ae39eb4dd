import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { compile, covers, meet, test } from "../../packages/core/src/domain/Pattern.ts"

/** Few letters, so that patterns and texts meet often. */
const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "\\*", "\\?", "\\\\"), maxLength: 7 })
const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "\\"), maxLength: 7 })

/** The same by backtracking: one rule a token. */
const plainly = (source: string, subject: string): boolean => {
  const tokens = [...source.matchAll(/\\([*?\\])|([*?])|([^])/g)]
  const from = (token: number, at: number): boolean => {
    const [, escaped, wildcard, character] = tokens[token] ?? []
    if (tokens[token] === undefined) return at === subject.length
    if (wildcard === "*") return from(token + 1, at) || (at < subject.length && from(token, at + 1))
    return (
      at < subject.length && (wildcard === "?" || subject[at] === (escaped ?? character)) && from(token + 1, at + 1)
    )
  }
  return from(0, 0)
}

it.prop("PM-1: a compiled pattern matches what its tokens say one by one", [pattern, text], ([source, subject]) => {
  assert.strictEqual(test(compile(source), subject), plainly(source, subject))
})

it.prop("PM-11: what a covered pattern matches, the covering one matches", [pattern, pattern, text], (given) => {
  const [outer, inner, subject] = given
  if (covers(compile(outer), compile(inner)) && plainly(inner, subject)) assert.isTrue(plainly(outer, subject))
})

it.prop("PM-11: a pattern covers itself, and `*` covers all", [pattern], ([source]) => {
  assert.isTrue(covers(compile(source), compile(source)))
  assert.isTrue(covers(compile("*"), compile(source)))
})

it.prop("PM-11: two patterns that match one text meet", [pattern, pattern, text], ([left, right, subject]) => {
  if (plainly(left, subject) && plainly(right, subject)) assert.isTrue(meet(compile(left), compile(right)))
})

it.each([
  ["git diff *", "rm *", false],
  ["*.ts", "src/*", true],
  ["a*b", "a*c", false],
  ["a?c", "ab*", true],
  ["a?c", "abd*", false],
  ["*a", "b", false]
])("PM-11: %j and %j meet: %j", (left, right, expected) => {
  assert.strictEqual(meet(compile(left), compile(right)), expected)
})

it.each([
  ["*a".repeat(2_000) + "b", "a".repeat(100_000)],
  [`*${"a".repeat(20_000)}b*`, "a".repeat(200_000)],
  [`*${"ab".repeat(5_000)}c`, "ab".repeat(100_000)]
])("PM-11: hostile pattern %#, of thousands of characters, is answered", (source, subject) => {
  assert.isFalse(test(compile(source), subject))
})

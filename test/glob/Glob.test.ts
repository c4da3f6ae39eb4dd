import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { compile, isCostly } from "../../packages/core/src/glob/Glob.ts"
import { forAll } from "../support/Cases.ts"

const matches = (pattern: string, path: string): boolean => {
  const glob = compile(pattern)
  assert.isDefined(glob, pattern)
  return glob?.matches(path.split("/")) === true
}

const table: ReadonlyArray<readonly [pattern: string, yes: ReadonlyArray<string>, no: ReadonlyArray<string>]> = [
  ["*.ts", ["a.ts", ".ts", ".hidden.ts"], ["a.tsx", "src/a.ts", "a.TS"]],
  ["**/*.ts", ["a.ts", "src/a.ts", "src/deep/a.ts"], ["a.js", "a.ts/b"]],
  ["src/**", ["src/a", "src/a/b"], ["src", "other/src/a"]],
  ["src/**/b", ["src/b", "src/a/b", "src/a/a/b"], ["src/a/b/c", "b"]],
  ["**/a/**/b", ["a/b", "x/a/y/z/b", "a/a/b"], ["a", "b", "x/b/a"]],
  ["**", ["a", "a/b"], []],
  ["./a/./b", ["a/b"], ["a"]],
  ["a//b", ["a/b"], []],
  ["a?c", ["abc", "a.c"], ["ac", "abbc"]],
  ["[a-c]x[!0-9]", ["axb", "cx!"], ["dxb", "ax1"]],
  ["[]a]", ["]", "a"], ["b"]],
  ["[^a-]", ["b"], ["a", "-"]],
  ["[[:digit:]x]", ["1", "x"], ["y"]],
  ["[a", ["[a"], ["a"]],
  ["*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.js", "a.{ts,tsx}"]],
  ["{a,b/{c,d}}/e", ["a/e", "b/c/e", "b/d/e"], ["b/e"]],
  ["f{1..3}", ["f1", "f2", "f3"], ["f4", "f{1..3}"]],
  ["f{-1..1}", ["f-1", "f0", "f1"], ["f2"]],
  ["{a}", ["{a}"], ["a"]],
  ["{a,b", ["{a,b"], ["a"]],
  [String.raw`\*\{a,b\}`, ["*{a,b}"], ["xa"]],
  [String.raw`[\]]`, ["]"], ["\\"]],
  ["a**b", ["ab", "axxb"], ["a/b"]],
  ["ü?*", ["üa"], ["ü"]]
]

describe("a glob", () => {
  for (const [pattern, yes, no] of table) {
    it(`TO-43: ${pattern} matches what it should, and no more`, () => {
      for (const path of yes) assert.isTrue(matches(pattern, path), path)
      for (const path of no) assert.isFalse(matches(pattern, path), path)
    })
  }

  it("LM-20: stars before names that almost match cost no more than the product of the lengths", () => {
    const names = Array.from({ length: 50 }, (_, at) => `${"a".repeat(254 - at)}b${"c".repeat(at)}`)
    for (const pattern of [
      "*a".repeat(20),
      `${"*a".repeat(16)}x`,
      "*".repeat(1_000),
      "*?a".repeat(16),
      "*[ab]a".repeat(16)
    ]) {
      for (const name of names) matches(pattern, name)
    }
    const deep = Array(500).fill("a").join("/")
    for (const name of ["b", "**/*a"]) assert.isFalse(matches(`${"**/a/".repeat(16)}${name}x`, deep))
    assert.isTrue(matches("*a".repeat(16), "a".repeat(255)))
    assert.isFalse(matches(`${"*a".repeat(16)}b`, "a".repeat(255)))
  })

  it("LM-20: braces that stand for more than a hundred patterns are refused, however they are written", () => {
    for (const pattern of [
      "{a,b}".repeat(7),
      "{,}".repeat(300),
      "{1..101}",
      "{0..999999999}",
      `{${"a,".repeat(100)}}`
    ]) {
      assert.isUndefined(compile(pattern), pattern)
    }
    assert.isDefined(compile("{a,b}".repeat(6)))
    assert.isDefined(compile("{1..100}"))
    assert.isDefined(compile("{".repeat(1_000)))
  })

  it("LM-20: a pattern is costly with more than 1,000 characters or 20 runs of stars", () => {
    assert.isFalse(isCostly("*a".repeat(20)))
    assert.isTrue(isCostly("*a".repeat(21)))
    assert.isFalse(isCostly("a".repeat(1_000)))
    assert.isTrue(isCostly("a".repeat(1_001)))
  })

  it("TO-43: it matches what the slow definition of its wildcards matches", () => {
    const slow = (pattern: string, text: string): boolean => {
      if (pattern === "") return text === ""
      if (pattern[0] === "*") {
        return slow(pattern.slice(1), text) || (text !== "" && slow(pattern, text.slice(1)))
      }
      return text !== "" && (pattern[0] === "?" || pattern[0] === text[0]) && slow(pattern.slice(1), text.slice(1))
    }
    const text = (signs: string, minLength: number) =>
      FastCheck.array(FastCheck.constantFrom(...signs), { minLength, maxLength: 7 }).map((each) => each.join(""))
    forAll([text("ab*?", 1), text("ab", 1)], 120, (pattern, name) => {
      // A name of two stars is that of any folders.
      FastCheck.pre(pattern !== "**")
      assert.strictEqual(matches(pattern, name), slow(pattern, name))
    })
  })
})

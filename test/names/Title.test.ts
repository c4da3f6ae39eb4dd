/** Titles from prompts and from answers of models. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { titleOfAnswer, titleRequest } from "../../packages/core/src/session/Naming.ts"
import { titleOfPrompt } from "../../packages/log/src/domain/Title.ts"
import { forAll } from "../support/Cases.ts"

const words = fc.array(
  fc.oneof(fc.string({ minLength: 1, maxLength: 80 }), fc.constant("schön"), fc.constant("日本")),
  {
    maxLength: 30
  }
)

it("NM-3: the beginning of a prompt is at most 60 characters of it on one line, cut at a word", () => {
  forAll([words], 200, (parts) => {
    const text = parts.join(" ")
    const title = titleOfPrompt(text)
    if (title === undefined) return
    assert.isAtMost(Array.from(title).length, 60)
    assert.notMatch(title, /^\s|\s$|[\r\n\t]/)
    // What follows the title in the prompt begins a new word, unless the first word alone is too long.
    const line = text.replaceAll(/[\s\p{Z}\p{Cc}\p{Cf}\p{Surrogate}]+/gu, " ").trim()
    assert.isTrue(line.startsWith(title))
    const rest = line.slice(title.length)
    assert.isTrue(rest === "" || rest.startsWith(" ") || !title.includes(" "), JSON.stringify([title, rest]))
  })
  assert.strictEqual(titleOfPrompt("  Fix\n\tthe   login page "), "Fix the login page")
  assert.strictEqual(
    titleOfPrompt("Rename every function of the storage package so that its name says what it does"),
    "Rename every function of the storage package so that its"
  )
  assert.strictEqual(titleOfPrompt("x".repeat(100)), "x".repeat(60))
  assert.strictEqual(titleOfPrompt(" \n "), undefined)
})

it("NM-1: a model's title has at most six words, without what models write around it", () => {
  for (const [answer, title] of [
    ["Fix the login page", "Fix the login page"],
    ['"Fix the login page."\n\nI chose it because', "Fix the login page"],
    ["Title: **Fix the login page**", "Fix the login page"],
    ["## Fix the `login` page", "Fix the `login` page"],
    ["one two three four five six", "one two three four five six"],
    ["one two three four five six seven", undefined],
    ["", undefined],
    ["...", undefined]
  ] as const) {
    assert.strictEqual(titleOfAnswer(answer), title, answer)
  }
})

it("NM-1: the request shows the beginning of the first prompt and of its answer, and asks for nothing but a title", () => {
  const [request] = titleRequest({ prompt: `Fix it. ${"a".repeat(5_000)}`, answer: "Done." })
  const text = String(request?.content)
  assert.include(text, "[User]: Fix it.")
  assert.include(text, "[Assistant]: Done.")
  assert.isBelow(text.length, 3_000)
})

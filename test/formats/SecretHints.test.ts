/** Tests that hints of secrets miss none. Spec: FM-197 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Redaction from "../../packages/log/src/support/Redaction.ts"
import * as SecretHints from "../../packages/log/src/support/SecretHints.ts"
import { randomRule, shapeRules, tokenRule } from "../../packages/log/src/support/SecretRules.ts"
import { cases } from "../support/Cases.ts"
import { harmless, inPlace, secrets } from "./support/Secrets.ts"

const nextHint = SecretHints.make()

/** Each character of a pattern with its depth in groups. Escapes and characters of classes have the kind `other`. */
const scan = (source: string) => {
  let [depth, inClass] = [0, false]
  return [...source.matchAll(/\\?[^]/g)].map(({ 0: text, index }) => {
    const isSyntax = text.length === 1 && !inClass
    if (text === "[") inClass = true
    else if (text === "]") inClass = false
    else if (isSyntax && text === "(") depth++
    else if (isSyntax && text === ")") depth--
    return { text, index, depth, kind: isSyntax && "()|".includes(text) ? text : "other" }
  })
}

/** The alternatives of a pattern outside any group. */
const alternatives = (source: string): ReadonlyArray<string> => {
  const bars = scan(source).flatMap(({ depth, index, kind }) => (kind === "|" && depth === 0 ? [index] : []))
  return [-1, ...bars].map((from, at) => source.slice(from + 1, bars[at]))
}

/** The pattern without assertions, which the generator does not know. */
const withoutAssertions = (source: string): string => {
  const characters = scan(source)
  const opening = characters.find(({ index, kind }) => kind === "(" && /^\(\?<?[!=]/.test(source.slice(index)))
  if (opening === undefined) return source.replaceAll("\\b", "")
  const closing = characters.find(
    ({ depth, index, kind }) => kind === ")" && index > opening.index && depth === opening.depth - 1
  )
  return withoutAssertions(source.slice(0, opening.index) + source.slice((closing?.index ?? source.length) + 1))
}

/** Generates texts of a pattern's form; the rule itself decides what of them it finds. */
const textsOf = (source: string) => fc.stringMatching(new RegExp(withoutAssertions(source)), { size: "small" })

/** The alternatives of the group that begins and ends the pattern of tokens. */
const tokenForms = alternatives(tokenRule.pattern.source).flatMap((source) => {
  const group = /^\(\?<![^)]*\)\(\?:([^]*)\)$/.exec(source)
  return alternatives(group?.[1] ?? source)
})

const forms = [
  ...tokenForms.map((source) => [source, tokenRule] as const),
  ...[...shapeRules, randomRule].flatMap((rule) => (rule === tokenRule ? [] : [[rule.pattern.source, rule] as const]))
]

describe("SecretHints", () => {
  it("FM-197: every text that a rule replaces has a hint, for texts generated from each rule", () => {
    let checked = 0
    for (const [source, rule] of forms) {
      fc.assert(
        fc.property(textsOf(source), fc.constantFrom("", "x ", '"', "_", "?", "-----"), (text, before) => {
          const line = `${before}${text} after`
          if (![...line.matchAll(rule.pattern)].some((match) => rule.accepts?.(match[1] ?? match[0]) !== false)) return
          checked++
          assert.isDefined(nextHint(line, 0), line)
        }),
        { numRuns: cases(20) }
      )
    }
    assert.isAbove(checked, 400)
  })

  it("FM-197: planted secrets have hints, also behind escapes and in place", () => {
    const planted = [...Object.values(secrets).flat(), ...inPlace.map((parts) => parts.slice(1).join(""))]
    for (const text of planted) {
      const escaped = [...text].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
      const json = JSON.stringify(JSON.stringify({ text, slashes: text.replaceAll("/", "\\/") }))
      for (const form of [text, json, escaped]) assert.isDefined(nextHint(form, 0), form)
    }
  })

  it("FM-197: a known value has a hint at its beginning", () => {
    const known = 'corr"ect-horse'
    const hint = SecretHints.make([known])(`x ${known}`, 0)
    assert.deepStrictEqual(hint, { at: 2, length: known.length })
  })

  it("FM-197: text without secrets has no hints, or few", () => {
    const none = harmless.filter((text) => nextHint(text, 0) === undefined)
    assert.isAtLeast(none.length, 3)
    for (const text of [
      "key value pairs of a disk-like task",
      "the author's monkey",
      "src/token/password.ts",
      "a-b-c"
    ]) {
      assert.isUndefined(nextHint(text, 0), text)
    }
    assert.deepStrictEqual(Redaction.find("", []), [])
  })
})

/** Tests that the scan for secrets misses none. Spec: FM-197 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Redaction from "../../packages/log/src/support/Redaction.ts"
import { shapeForms } from "../../packages/log/src/support/SecretRules.ts"
import * as SecretScan from "../../packages/log/src/support/SecretScan.ts"
import { forAll } from "../support/Cases.ts"
import { harmless, inPlace, secrets } from "./support/Secrets.ts"

const known = 'corr"ect-horse'
const { find, hint } = SecretScan.make({ forms: shapeForms, known: [known], random: true })

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
const textsOf = (source: string) =>
  fc.stringMatching(new RegExp(withoutAssertions(source).replaceAll(/\\1/g, "")), { size: "small" })

const rules = shapeForms.flatMap((form) => form.rules)

describe("SecretScan", () => {
  it("FM-197: what a rule finds anywhere in a text, the scan finds, for texts generated from each rule", () => {
    let checked = 0
    for (const { accepts, pattern } of rules) {
      const anywhere = new RegExp(pattern.source, pattern.flags.replace("y", "g"))
      forAll(
        [
          textsOf(pattern.source),
          fc.constantFrom("", "x ", '"', "_", "?", "-----", "export ", "--", "DB_", "\n", "docker login ", ";", " "),
          fc.constantFrom(" after", '" after', "' after", "", "@host/", "\n", " | sudo -S x", "</password>")
        ],
        30,
        (text, before, after) => {
          const line = `${before}${text}${after}`
          const secrets = [...line.matchAll(anywhere)].filter(
            (match) => match.at(-1) !== "" && accepts?.(match.at(-1) ?? match[0]) !== false
          )
          if (secrets.length === 0) return
          checked++
          assert.isDefined(hint(line, 0), line)
          const found: Array<readonly [start: number, end: number]> = []
          find(line, (start, end) => void found.push([start, end]))
          for (const { 0: whole, index } of secrets) {
            const end = index + whole.length
            assert.isTrue(
              found.some(([start, last]) => start < end && last > index),
              line
            )
          }
        }
      )
    }
    assert.isAbove(checked, 300)
  })

  it("FM-197: planted secrets have hints, also behind escapes and in place", () => {
    const planted = [...Object.values(secrets).flat(), ...inPlace.map((parts) => parts.slice(1).join(""))]
    for (const text of planted) {
      const json = JSON.stringify(JSON.stringify({ text, slashes: text.replaceAll("/", "\\/") }))
      for (const form of [text, json]) assert.isDefined(hint(form, 0), form)
    }
  })

  it("FM-197: a known value has a hint at its beginning", () => {
    assert.deepStrictEqual(hint(`x ${known}`, 0), { at: 2, length: known.length })
  })

  it("FM-197: text without secrets has no hints, or few", () => {
    const none = harmless.filter((text) => hint(text, 0) === undefined)
    assert.isAtLeast(none.length, 3)
    for (const text of [
      "key value pairs of a disk-like task",
      "the author's monkey",
      "src/token/password.ts",
      "a-b-c",
      "golang.org/x/net v0.17.0 h1:pVaXccu2ozPjCXewfr1S7xza/zcXTity9cCdXQYSjIM="
    ]) {
      assert.isUndefined(hint(text, 0), text)
    }
    assert.deepStrictEqual(Redaction.find("", []), [])
  })
})

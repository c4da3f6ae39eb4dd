import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import { expandTemplate, splitWords } from "../../packages/core/src/prompt/Templates.ts"

const expand = (body: string, typed: string) => Either.getOrThrow(expandTemplate(body, typed))

/** As a careful person types a word. */
const quoted = (word: string) => `"${word.replaceAll(/["\\]/g, "\\$&")}"`

describe("words", () => {
  it.each([
    [`a  b\tc\n`, ["a", "b", "c"]],
    [`'a b' "c d"`, ["a b", "c d"]],
    [`a'b c'd`, ["ab cd"]],
    [`"a \\" b" c\\ d`, ['a " b', "c d"]],
    [`'a\\b' "a\\b"`, ["a\\b", "a\\b"]],
    [`"" ''`, ["", ""]],
    [`"not closed at all`, ["not closed at all"]],
    ["end\\", ["end\\"]],
    ["   ", []]
  ])("CF-18: %s is split as a shell splits it", (text, words) => {
    assert.deepStrictEqual([...splitWords(text)], words)
  })

  it.prop(
    "CF-18: words that were quoted come back as they are",
    [fc.array(fc.string({ unit: "grapheme" }))],
    ([words]) => {
      assert.deepStrictEqual([...splitWords(words.map(quoted).join(" "))], words)
    }
  )
})

describe("places", () => {
  it.each([
    ["$1 and $2", "a 'b c'", "a and b c"],
    ["[$3]", "a b", "[]"],
    ["<$ARGUMENTS>", "  a 'b'  ", "<a 'b'>"],
    ["$10 $ARGUMENTSX $0 $x", "a", "$10 $ARGUMENTSX $0 $x\n\na"],
    ["$$1 $$ARGUMENTS $1", "a", "$1 $ARGUMENTS a"],
    ["No place.", "a b", "No place.\n\na b"],
    ["No place.", "  ", "No place."],
    ["$1", "", ""]
  ])("CF-18: %s with %s", (body, typed, expected) => {
    assert.strictEqual(expand(body, typed), expected)
  })

  it.prop("CF-18: what is put in is not looked at again", [fc.string()], ([word]) => {
    const hostile = `$1 $2 $ARGUMENTS $$1 $& $' ${word}`
    assert.strictEqual(expand("a $1 b", quoted(hostile)), `a ${hostile} b`)
    assert.strictEqual(expand("a $ARGUMENTS b", hostile), `a ${hostile.trim()} b`)
  })

  it.prop(
    "CF-48, CF-18: a text without dollar signs stays, with what was typed after it",
    [fc.string(), fc.string()],
    ([body, typed]) => {
      const plain = body.replaceAll("$", "")
      assert.strictEqual(expand(plain, typed), typed.trim() === "" ? plain : `${plain}\n\n${typed.trim()}`)
    }
  )

  it("CF-48, CF-18: a result that would be too long is refused", () => {
    const refused = expandTemplate("$ARGUMENTS".repeat(6_000), "x".repeat(1_000_000))
    assert.isTrue(Either.isLeft(refused) && refused.left._tag === "TemplateTooLong")
    assert.isTrue(Either.isLeft(expandTemplate("none", "x".repeat(1_100_000))))
    assert.strictEqual(expand("$1".repeat(10), "x".repeat(100_000)).length, 1_000_000)
  })
})

/** What an entry keeps in its file. Spec: FM-78..FM-80 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  maxPersistChars,
  truncate,
  truncateText,
  truncationNotice
} from "../../../packages/formats/src/blob/Truncation.ts"
import { forAll } from "../../support/Cases.ts"

const long = "x".repeat(maxPersistChars + 1)

it("FM-78: a string of 500,000 characters stays; a longer one ends in the notice, with 500,000 in all", () => {
  const longest = "y".repeat(500_000)
  assert.strictEqual(truncateText(longest), longest)
  const cut = truncateText(`${longest}y`)
  assert.strictEqual(cut.length, 500_000)
  assert.isTrue(cut.endsWith("y\n\n[Session persistence truncated large content]"))
})

it("FM-78: a cut never leaves half of a character", () => {
  for (const before of ["", "z"]) {
    const cut = truncateText(before + "😀".repeat(250_001))
    assert.isAtMost(cut.length, 500_000)
    assert.isAtLeast(cut.length, 499_999)
    assert.strictEqual(Buffer.from(cut).toString(), cut)
    assert.include(cut, truncationNotice)
  }
})

it("FM-79: strings are cut at any depth; each cut says where, and how long the string was", () => {
  const { cuts, value } = truncate({ a: [{ b: long, c: "short" }], d: long })
  assert.deepStrictEqual(value, { a: [{ b: truncateText(long), c: "short" }], d: truncateText(long) })
  assert.deepStrictEqual(cuts, [
    { path: ["a", 0, "b"], length: long.length },
    { path: ["d"], length: long.length }
  ])
})

it("FM-79: the lines of a content that was cut are counted again", () => {
  const content = "line\n".repeat(100_001)
  const { value } = truncate({
    files: [
      { content, lineCount: 100_002 },
      { content: "one\n", lineCount: 7 }
    ]
  })
  const lineCount = truncateText(content).split("\n").length
  assert.deepStrictEqual(value, {
    files: [
      { content: truncateText(content), lineCount },
      { content: "one\n", lineCount: 7 }
    ]
  })
})

it("FM-79: fields of an answer that still arrives are removed at any depth", () => {
  const entry: unknown = { partialJson: "{", message: { content: [{ id: "1", jsonlEvents: [1] }] } }
  const { cuts, value } = truncate(entry)
  assert.deepStrictEqual(value, { message: { content: [{ id: "1" }] } })
  assert.deepStrictEqual(cuts, [])
})

it("FM-80: a long signature is emptied; encrypted content and a picture's data are never cut", () => {
  const block = { type: "thinking", thinkingSignature: long, thoughtSignature: "short", textSignature: long }
  assert.deepStrictEqual(truncate(block).value, { ...block, thinkingSignature: "", textSignature: "" })
  assert.strictEqual(truncate(block).cuts.length, 2)
  const kept = {
    payload: { encrypted_content: long },
    files: [{ image: { type: "image", data: long } }],
    content: [{ type: "redacted_thinking", data: long }]
  }
  assert.strictEqual(truncate(kept).value, kept)
})

it("FM-79: an entry that needs no change is returned as it is, and truncating twice changes nothing more", () => {
  forAll([fc.jsonValue()], 40, (json) => {
    assert.strictEqual(truncate(json).value, json)
  })
  const once = truncate({ a: long, content: `${long}\n`, lineCount: 2, partialJson: "" }).value
  assert.strictEqual(truncate(once).value, once)
})

/** Method: Markdown in any pieces, as a model may write it, against the same text at once. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Markdown from "../../packages/cli/src/screen/Markdown.ts"
import { themeOf } from "../../packages/cli/src/screen/Theme.ts"

const theme = themeOf({ NO_COLOR: "1" }, "dark")

const word = fc.constantFrom("alpha", "你好", "`x`", "**b**", "1.", "-", "|", "#", "end")
const sentence = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "))
const block = fc.oneof(
  sentence,
  fc
    .array(sentence, { minLength: 1, maxLength: 60, size: "max" })
    .map((items) => items.map((item) => `- ${item}`).join("\n")),
  fc.array(sentence, { maxLength: 200, size: "max" }).map((lines) => `\`\`\`ts\n${lines.join("\n")}\n\`\`\``),
  sentence.map((text) => `## ${text}`),
  fc.constant("| a | b |\n|---|---|\n| 1 | 2 |")
)
const text = fc.array(block, { minLength: 1, maxLength: 8 }).map((blocks) => blocks.join("\n\n"))
const cuts = fc.array(fc.nat(), { maxLength: 40 })

/** The pieces of a text that arrives in parts, and the rest. */
const divided = (parts: ReadonlyArray<string>) => {
  let open = Markdown.begin
  const pieces: Array<Markdown.Piece> = []
  for (const part of parts) {
    const [next, more] = Markdown.add(open, part)
    open = next
    pieces.push(...more)
  }
  const end = Markdown.end(open)
  return end === undefined ? pieces : [...pieces, end]
}

const partsOf = (text: string, cuts: ReadonlyArray<number>) => {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort((a, b) => a - b)
  return at.slice(1).map((to, index) => text.slice(at[index], to))
}

/** What is shown, without the layout. */
const shown = (pieces: ReadonlyArray<Markdown.Piece>) =>
  pieces
    .flatMap((piece) => Markdown.lines(piece, 200, theme))
    .map((line) => line.trim())
    .filter((line) => line !== "")

describe("Markdown that is being written", () => {
  it.prop("SC-505: the pieces are the same, however the text arrives", [text, cuts], ([text, cuts]) => {
    assert.deepStrictEqual(divided(partsOf(text, cuts)), divided([text]))
  })

  it.prop("SC-505: the pieces show every word of the text, in its order", [text], ([text]) => {
    const words = (lines: ReadonlyArray<string>) => lines.join(" ").match(/alpha|你好|end/g) ?? []
    assert.deepStrictEqual(words(shown(divided([text]))), words([text]))
  })

  it.prop("SC-505: the open rest is bounded", [text], ([text]) => {
    let open = Markdown.begin
    for (const part of text.match(/[^]{1,7}/g) ?? []) {
      open = Markdown.add(open, part)[0]
      assert.isAtMost(open.text.split("\n").length, 98)
    }
  })

  it("SC-505: a divided code block is one block, with its borders once", () => {
    const code = Array.from({ length: 100 }, (_, at) => `line ${at}`)
    const lines = divided([`\`\`\`sh\n${code.join("\n")}\n\`\`\`\n`]).flatMap((piece) =>
      Markdown.lines(piece, 80, theme)
    )
    assert.deepStrictEqual(
      lines.map((line) => line.trim()),
      ["```sh", ...code, "```"]
    )
  })

  it("SC-506: control characters of a model are shown as signs", () => {
    const [piece] = divided(["a \u001b[2J b \u0007"])
    const text = piece === undefined ? "" : Markdown.lines(piece, 80, theme).join("")
    assert.notInclude(text, "\u001b[2J")
    assert.include(text, "␛[2J")
  })
})

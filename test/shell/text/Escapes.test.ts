/** Tests the removal of terminal sequences. Spec: SL-31..SL-33 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Escapes from "../../../packages/shell/src/output/Escapes.ts"
import { forAll } from "../../support/Cases.ts"
import { cut, sizes, through } from "../support/Chunks.ts"

const clean = (...chunks: ReadonlyArray<string>) => through(Escapes.makeEscapes(), chunks)

const sequences: ReadonlyArray<readonly [name: string, text: string, clean: string]> = [
  ["colour", "a\x1b[1;31mb\x1b[0mc", "abc"],
  ["colon parameters", "a\x1b[38:2::1:2:3mb", "ab"],
  ["private mode and intermediate", "\x1b[?25la\x1b[2 qb", "ab"],
  ["a title ended by BEL", "\x1b]0;title\x07a", "a"],
  ["a link ended by ST", "\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\", "a"],
  ["a title without an end", "\x1b]0;title\nnext", "\nnext"],
  ["DCS with newlines", "\x1bPq#0\n#1\x1b\\a", "a"],
  ["APC, PM, SOS", "\x1b_x\x1b\\a\x1b^y\x1b\\b\x1bXz\x1b\\c", "abc"],
  ["8-bit CSI, OSC, DCS", "\x9b31ma\x9d0;t\x9cb\x90q\x9cc", "abc"],
  ["other 8-bit controls", "a\x85b\x84c", "abc"],
  ["character set, keypad, reset", "\x1b(Ba\x1b=b\x1bcc\x1b7", "abc"],
  ["a string that another sequence cancels", "\x1b]0;t\x1b[1ma", "a"],
  ["CAN", "\x1b[31\x18a", "a"],
  ["controls inside a sequence", "A\x1b[3\x071mB", "AB"],
  ["a newline inside a sequence", "A\x1b[3\n1mB", "A\nB"],
  ["text that breaks a sequence", "\x1b[3\u00e9m", "\u00e9m"],
  ["C0 and DEL", "a\0\x07\x08\x0b\x0c\x7fb\tc\n", "ab\tc\n"],
  ["a sequence that does not end", "a\x1b[3", "a"]
]

describe("Escapes", () => {
  it.each(sequences)("SL-31: %s", (_, text, expected) => {
    assert.strictEqual(clean(text), expected)
    assert.strictEqual(clean(...text), expected)
  })

  it("SL-31: no control character but newline and tab remains, for any text in any chunks", () => {
    const piece = fc.oneof(
      fc.constantFrom("\x1b", "[", "]", "P", "\\", "\x9b", "\x9d", "\x07", "\n", "\r", "0", ";", "m", "é", "😀"),
      fc.string({ unit: "binary", maxLength: 8 })
    )
    forAll([fc.array(piece, { maxLength: 40 }), sizes], 200, (pieces, lengths) => {
      const text = pieces.join("")
      const whole = clean(text)
      assert.notMatch(whole, /[^\P{Cc}\n\t]/u)
      assert.strictEqual(clean(...cut(text, lengths)), whole)
    })
  })

  it("SL-32: a carriage return before text restarts the line, before a newline it does nothing", () => {
    assert.strictEqual(clean("1%\r50%\r100%\ndone"), "100%\ndone")
    assert.strictEqual(clean("a\r\nb\r\r\nc\r"), "a\nb\nc")
    assert.strictEqual(clean("10%\r\x1b[K20%\r\x1b[K\n"), "20%\n")
    assert.strictEqual(clean("a\nb\r\tc"), "a\n\tc")
  })

  it("SL-33: a long line passes before it ends, and a carriage return then ends it", () => {
    const long = "x".repeat(Escapes.longestLine + 1)
    const escapes = Escapes.makeEscapes()
    assert.strictEqual(escapes.add(long), long)
    assert.strictEqual(escapes.add("\ry"), "\n")
    assert.strictEqual(escapes.end(), "y")
    const exact = "x".repeat(Escapes.longestLine)
    assert.strictEqual(clean(exact, "\ry"), "y")
    assert.strictEqual(clean(exact, "x\r", "y"), `${exact}x\ny`)
  })

  it("SL-33: a string without an end ends at a limit, in any chunks", () => {
    const text = `\x1bP${"x".repeat(Escapes.longestString)}after`
    assert.strictEqual(clean(text), "after")
    assert.strictEqual(clean(text.slice(0, 100), text.slice(100)), "after")
    assert.strictEqual(clean(`\x1b[${"1".repeat(1000)}m`).length, 745)
  })
})

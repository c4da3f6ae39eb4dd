import { assert, describe, it } from "@effect/vitest"
import { jsonLine, oneLine, visible } from "../../packages/cli/src/render/Plain.ts"

describe("Plain", () => {
  it("CL-30: an escape sequence is shown and not sent", () => {
    assert.strictEqual(visible("a\u001b[31mred\u0007"), "a␛[31mred␇")
    assert.strictEqual(visible("\u009b31m"), "<U+009B>31m")
    assert.strictEqual(visible("over\u202ewrite"), "over<U+202E>write")
    assert.strictEqual(visible("\u007f"), "␡")
  })

  it("CL-30: tabs, newlines, Windows line ends and every script stay", () => {
    assert.strictEqual(visible("a\tb\nc\r\nd é 你好 👩‍👩‍👧"), "a\tb\nc\nd é 你好 👩‍👩‍👧")
    assert.strictEqual(visible("bar\rfoo"), "bar␍foo")
  })

  it("CL-31: a line is one line, safe, and cut by the cells that it takes, not within a character", () => {
    assert.strictEqual(oneLine("a\n  b\tc "), "a b c")
    assert.strictEqual(oneLine("👍👍👍👍", 5), "👍👍…")
    assert.strictEqual(oneLine("x\u001b]0;title\u0007", 40), "x␛]0;title␇")
    assert.strictEqual(oneLine("abc", 3), "abc")
  })

  it("CL-32: JSON for a terminal holds no control and reads back as the same value", () => {
    const value = { text: "\u001b[2J \u009b \u202e \u007f" }
    const line = jsonLine(value, true)
    // oxlint-disable-next-line no-control-regex
    assert.notMatch(line, /[\u0000-\u001f\u007f-\u009f\u202e]/)
    assert.deepStrictEqual(JSON.parse(line), value)
    assert.strictEqual(jsonLine(value, false), JSON.stringify(value))
  })
})

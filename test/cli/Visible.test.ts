/** What a terminal and a log are sent of texts that others wrote. Method: hostile characters, one by one and at random. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { exact, jsonLine, oneLine, visible, wholeLength } from "../../packages/cli/src/render/Plain.ts"
import { forAll } from "../support/Cases.ts"

const pictures = ["👩‍👩‍👧", "❤️", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪", "👨🏽‍💻", "🏳️‍🌈", "☎"]

/** Nothing of these may be left once emoji are taken out. */
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\u2592\u2593]/u
const emoji = new RegExp("\\p{RGI_Emoji}", "gv")
const withoutEmoji = (text: string) => text.replaceAll(emoji, "")

const attacks = [
  ["a control", "\u0000", "␀"],
  ["an escape", "\u001b[2J", "␛[2J"],
  ["a clipboard write", "\u001b]52;c;cm0gLXJm\u0007", "␛]52;c;cm0gLXJm␇"],
  ["a title", "\u009d0;t\u009c", "\\u{9d}0;t\\u{9c}"],
  ["a device control", "\u0090q\u001b\\", "\\u{90}q␛\\"],
  ["a delete", "\u007f", "␡"],
  ["a backspace", "ab\b\b", "ab␈␈"],
  ["a lone carriage return", "bar\rfoo", "bar␍foo"],
  ["zero-width characters", "r\u200bm\u200c\u200d\u2060\ufeff", "r\\u{200b}m\\u{200c}\\u{200d}\\u{2060}\\u{feff}"],
  ["a soft hyphen", "r\u00adm", "r\\u{ad}m"],
  ["a joiner of graphemes", "a\u034f", "a\\u{34f}"],
  ["bidirectional controls", "\u202etxt\u2066\u200f\u061c", "\\u{202e}txt\\u{2066}\\u{200f}\\u{61c}"],
  ["tags", "\u{e0001}\u{e0041}\u{e007f}", "\\u{e0001}\\u{e0041}\\u{e007f}"],
  ["tags on an emoji", "👍\u{e0041}", "👍\\u{e0041}"],
  ["tags behind a flag that is none", "🏴\u{e0068}\u{e0069}\u{e007f}", "🏴\\u{e0068}\\u{e0069}\\u{e007f}"],
  ["variation selectors", "a\ufe00\u{e0100}", "a\\u{fe00}\\u{e0100}"],
  ["more than one on an emoji", "❤️\ufe0f\ufe01", "❤️\\u{fe0f}\\u{fe01}"],
  ["a joiner that joins no emoji", "👩\u200da", "👩\\u{200d}a"],
  ["separators of lines", "a\u2028b\u2029c\u0085", "a\\u{2028}b\\u{2029}c\\u{85}"],
  ["half surrogate pairs", "\ud83d \ude00", "\\u{d83d} \\u{de00}"],
  ["fillers", "\u3164\u115f\u17b4\uffa0\u180e", "\\u{3164}\\u{115f}\\u{17b4}\\u{ffa0}\\u{180e}"],
  ["an empty braille cell", "\u2800", "\\u{2800}"],
  ["annotations", "\ufff9x\ufffb", "\\u{fff9}x\\u{fffb}"],
  ["code points of nothing", "\uffff\u{e0fff}", "\\u{ffff}\\u{e0fff}"],
  ["what frames a question", "▓▒", "\\u{2593}\\u{2592}"]
] as const

const anyText = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 8 }),
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.constantFrom(...pictures, ...attacks.map(([, text]) => text), "\\u{200b}", "␛", "e\u0301", "\u00a0", "\\")
    ),
    { maxLength: 20 }
  )
  .map((parts) => parts.join(""))

/** What a sign of `exact` stands for. */
const meant = (shown: string): string =>
  shown.replaceAll(/\\u\{([0-9a-f]+)\}|([\u2400-\u2421])/g, (_, code: string | undefined, picture: string) => {
    if (code !== undefined) return String.fromCodePoint(Number.parseInt(code, 16))
    return picture === "\u2421" ? "\u007f" : String.fromCharCode(picture.charCodeAt(0) - 0x2400)
  })

describe("Visible", () => {
  it.each(attacks)("CL-30: %s is shown as signs, in a text, a line and an exact line", (_, text, shown) => {
    assert.strictEqual(visible(text), shown)
    assert.strictEqual(oneLine(text), shown)
    assert.notMatch(withoutEmoji(exact(text)), hidden)
  })

  it.each(pictures)("CL-30: %s stays as it is", (picture) => {
    for (const text of [picture, `a${picture}b`, `${picture}${picture}`]) {
      assert.strictEqual(visible(text), text)
      assert.strictEqual(exact(text), text)
    }
  })

  it("CL-30: tabs, newlines, Windows line ends and every script stay", () => {
    const text = "a\tb\nc é e\u0301 你好 ｶﾅ สวัสดี नमस्ते עברית عربى \u3000 │ █ → ✓"
    assert.strictEqual(visible(text), text)
    assert.strictEqual(visible("a\r\nb"), "a\nb")
  })

  it("CL-30: whatever the text is, nothing of what is shown is a control or invisible, and showing it again changes nothing", () => {
    forAll([anyText], 80, (text) => {
      const shown = visible(text)
      assert.notMatch(withoutEmoji(shown), hidden)
      assert.strictEqual(visible(shown), shown)
      assert.notMatch(withoutEmoji(oneLine(text)), hidden)
      assert.notMatch(oneLine(text), /\n/)
    })
  })

  it("CL-151: an exact line says which text it is of, whatever that is", () => {
    assert.strictEqual(exact("a\u00a0b\tc\n"), "a\\u{a0}b␉c␊")
    assert.strictEqual(exact("\\u{200b} \\u{5c}"), "\\u{5c}u{200b} \\u{5c}u{5c}")
    assert.strictEqual(exact("🏴󠁧󠁢󠁥󠁮󠁧󠁿\u0341"), "🏴󠁧󠁢󠁥󠁮󠁧󠁿\\u{341}")
    assert.strictEqual(exact("␛ re\u0301m o\u0338"), "\\u{241b} re\\u{301}m o\\u{338}")
    forAll([anyText], 80, (text) => {
      const shown = exact(text)
      assert.strictEqual(meant(shown), text)
      assert.notMatch(withoutEmoji(shown), /[\u0000-\u001f\u00a0\u2000-\u200f\p{Cf}\p{Co}]/u)
    })
  })

  it.each([
    ["c\u0430t x", "c\\u{430}t x"],
    ["curl https://p\u0430ypal.com", "curl https://p\\u{430}ypal.com"],
    ["\u03bfpen_x", "\\u{3bf}pen_x"],
    ["g\u0131t \u0261it", "g\u0131t \\u{261}it"],
    ["git diff x\u037e rm y", "git diff x\\u{37e} rm y"],
    ["\u{1d69b}\u{1d696} x", "\\u{1d69b}\\u{1d696} x"],
    ["\u2010rf \u2212rf", "\\u{2010}rf \\u{2212}rf"],
    ["a\u2215b \u01c0 c \u01c3d e\ua789f", "a\\u{2215}b \\u{1c0} c \\u{1c3}d e\\u{a789}f"],
    ["\u{212a}", "\\u{212a}"],
    ["\u1112\u1161\u11ab", "\\u{1112}\\u{1161}\\u{11ab}"],
    ["\u0438\u0306", "\\u{438}\\u{306}"],
    ["\uf900", "\\u{f900}"],
    ["a\u{1d159}b", "a\\u{1d159}b"]
  ])("CL-151: what looks like another text is a sign: %j", (text, shown) => {
    assert.strictEqual(exact(text), shown)
    assert.strictEqual(meant(shown), text)
  })

  it.each([
    "привет, мир",
    "Καλημέρα κόσμε",
    "你好，世界！“引用”",
    "한국어 안녕",
    "日本語のテスト。ガ",
    "naïve café – “so” … ‘x’",
    "हिन्दी",
    "H₂O 1º x² ✓ → ─ │",
    "👩‍💻 ok ❤️"
  ])("CL-151: ordinary text stays as it is: %j", (text) => assert.strictEqual(exact(text), text))

  it("CL-32: JSON for a terminal holds none of it and reads back as the same value", () => {
    forAll([anyText], 40, (text) => {
      const line = jsonLine({ [text]: [text] }, true)
      assert.notMatch(withoutEmoji(line), hidden)
      assert.deepStrictEqual(JSON.parse(line), { [text]: [text] })
    })
  })

  it("CL-5: in whatever pieces a text comes, what is shown of it in the end is the same", () => {
    const parts = fc.array(fc.constantFrom(...pictures, "a", "1", "\r", "\n", "\u200b"), { maxLength: 30 })
    forAll([parts, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 })], 40, (texts, lengths) => {
      const text = texts.join("")
      let [shown, held, at] = ["", "", 0]
      for (let turn = 0; at < text.length; turn++) {
        const piece = text.slice(at, at + (lengths[turn % lengths.length] ?? 1))
        at += piece.length
        held += piece
        const end = wholeLength(held)
        shown += visible(held.slice(0, end))
        held = held.slice(end)
        assert.isBelow(held.length, 64)
      }
      assert.strictEqual(shown + visible(held), visible(text))
    })
  })
})

/** Tests redaction of streams against redaction of whole texts. Spec: SL-34..SL-38 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { readFileSync } from "node:fs"
import * as Redaction from "../../../packages/log/src/support/Redaction.ts"
import * as RedactionStream from "../../../packages/shell/src/output/RedactionStream.ts"
import { moreInnocent, moreMarked } from "../../formats/support/MoreSecretLines.ts"
import { innocent, marked, unmarked } from "../../formats/support/SecretLines.ts"
import { harmless, inPlace, secrets } from "../../formats/support/Secrets.ts"
import { forAll } from "../../support/Cases.ts"
import { cut, sizes, through } from "../support/Chunks.ts"

const known = "correct-horse-battery"
const planted = [...Object.values(secrets).flat(), known]
const key = `-----BEGIN ${"PRIVATE KEY"}-----`

const stream = (chunks: ReadonlyArray<string>) =>
  through(RedactionStream.make(RedactionStream.prepare([known])), chunks)
const whole = (text: string) => Redaction.replaced(text, Redaction.find(text, [known]))

/** Secrets one below the other may be replaced as one: they may be pieces of one. */
const joined = (text: string) => text.replaceAll(/<redacted>(?:\s+\\?\s*<redacted>)+/g, "<redacted>")

/** Parts of a secret long enough to be recognised. */
const assertGone = (text: string, secret: string) => {
  for (const piece of secret.match(/[\w]{12,}/g) ?? [secret]) assert.notInclude(text, piece)
}

const secret = fc.oneof(
  fc.constantFrom(...planted),
  fc.constantFrom(...inPlace).map(([, before, value, after]) => before + value + after)
)
const prose = fc.constantFrom(
  ...harmless,
  "plain words",
  "key",
  "the token is",
  "a=1",
  "https://example.test/path",
  "disk-usage of task-7",
  "C:\\Users\\name",
  "\u{1f600} émigré",
  "----- BEGIN -----"
)
const between = fc.constantFrom(" ", "\n", "\n\n", "\t", ": ", '"', "\n  ", " \\\n", "=")

/** A text of secrets and harmless text. */
const mixed = fc
  .array(fc.tuple(fc.oneof({ arbitrary: secret, weight: 1 }, { arbitrary: prose, weight: 2 }), between), {
    maxLength: 16
  })
  .map((parts) => parts.flat().join(""))

describe("RedactionStream", () => {
  it("SL-34: a stream is redacted like the whole text, in any chunks", () => {
    forAll([mixed, sizes], 300, (text, lengths) => {
      assert.strictEqual(joined(stream(cut(text, lengths))), joined(whole(text)))
    })
  })

  it("SL-34: each kind of secret is replaced, cut at each place", () => {
    for (const value of planted) {
      const text = `before ${value} after\nnext`
      for (let at = 0; at <= text.length; at += 3) {
        assert.strictEqual(stream([text.slice(0, at), text.slice(at)]), `before <redacted> after\nnext`)
      }
    }
  })

  it("SL-34: settings, variables, URLs and options lose their secrets and nothing else, in any chunks", () => {
    // Without the empty line, a line could continue a token of the line before.
    const lines = [...marked, ...moreMarked, ...innocent, ...moreInnocent].map((line) => `${line}\n\n`)
    const text = lines.map((line) => unmarked(line)).join("")
    const redacted = lines.map((line) => unmarked(line, "<redacted>")).join("")
    for (const length of [1, 3, 7, 64, 1_000, text.length]) {
      assert.strictEqual(joined(stream(cut(text, [length]))), joined(redacted))
    }
  })

  it("SL-35: lines without a hint pass at once, a line with one waits for no more than its end", () => {
    const redaction = RedactionStream.make(RedactionStream.prepare([known]))
    assert.strictEqual(redaction.add("Password required\nbuilding 12 of 40 "), "Password required\n")
    assert.strictEqual(redaction.add("files\n"), "building 12 of 40 files\n")
    assert.strictEqual(redaction.add("token: abc123def456 "), "")
    assert.strictEqual(redaction.add("x\n"), "token: <redacted> x\n")
    assert.strictEqual(redaction.add(`${"x".repeat(5_000)}`).length, 5_000 - 1_024)
  })

  it("SL-36: a private key is replaced from its first to its last line, in any chunks", () => {
    const body = Array.from({ length: 200 }, (_, line) => `MIIEvQ${String(line).padStart(58, "aB1")}`).join("\n")
    const text = `a\n${key}\n${body}\n${key.replace("BEGIN", "END")}\nb\n`
    for (const length of [1, 7, 64, 65, 1_000, 100_000])
      assert.strictEqual(stream(cut(text, [length])), "a\n<redacted>\nb\n")
  })

  it("SL-36: a token that line breaks cut is replaced whole", () => {
    forAll([fc.constantFrom(...(secrets["token"] ?? []), known), sizes], 40, (value, lengths) => {
      const at = Math.floor(value.length / 2)
      const text = `x ${value.slice(0, at)}\n  ${value.slice(at)} y\nz\n`
      const redacted = stream(cut(text, lengths))
      assertGone(redacted, value)
      assert.strictEqual(redacted, whole(text))
    })
  })

  it("SL-37: a secret longer than any limit is replaced up to its end, in bounded memory", () => {
    const piece = "aB3dE5fG7hJ9kL2m"
    const ends: ReadonlyArray<readonly [start: string, body: string, end: string]> = [
      ["sk-ant-", piece, " after"],
      ["", piece, "\nafter"],
      ["Cookie: session=", `${piece} `, "\nafter"],
      [`${key}\n`, `${piece.repeat(4)}\n`, `${key.replace("BEGIN", "END")} after`]
    ]
    for (const [start, body, end] of ends) {
      const redaction = RedactionStream.make(RedactionStream.prepare([known]))
      let out = redaction.add(`before ${start}`)
      for (let count = 0; count < 2_000; count++) out += redaction.add(body.repeat(4))
      out += redaction.add(end) + redaction.end()
      assert.strictEqual(out.replace("Cookie: ", "").replace("\n", " "), "before <redacted> after")
    }
  })

  it("SL-37: no part of a secret passes in an endless line, in any chunks", () => {
    const filler = fc.constantFrom("x", "ab/", "1,", "a b ", "é", "-")
    forAll(
      [filler, fc.constantFrom(...planted), fc.integer({ min: 0, max: 12_000 }), sizes],
      60,
      (fill, value, at, lengths) => {
        const text = `${fill.repeat(Math.ceil(at / fill.length))} ${value} ${fill.repeat(10_000)}`
        const redacted = stream(
          cut(
            text,
            lengths.map((length) => length * 97)
          )
        )
        assertGone(redacted, value)
        assert.strictEqual(redacted.match(/<redacted>/g)?.length, 1)
      }
    )
  })

  it("SL-37: a line that is longer than any limit arrives whole but for its secrets, also without a newline", () => {
    const words = "some words ".repeat(3_000)
    const text = `${words}password=hunter2 ${words}DB_PASSWORD='a b' ${words}end`
    const expected = `${words}password=<redacted> ${words}DB_PASSWORD='<redacted>' ${words}end`
    for (const length of [1_000, 8_192, text.length]) {
      for (const end of ["", "\n"]) assert.strictEqual(stream(cut(text + end, [length])), expected + end)
    }
  })

  it("SL-37: a private key without an end hides a bounded text", () => {
    const text = `${key}\n${"no end here\n".repeat(100_000)}last line\n`
    const redacted = stream(cut(text, [8_192]))
    assert.match(redacted, /^<redacted>/)
    assert.match(redacted, /here\nlast line\n$/)
  })

  it("SL-38: known values are replaced as the terminal shows them", () => {
    const value = `first line of it\r\n${"second-line-".repeat(3)}\r\n`
    const redaction = RedactionStream.make(RedactionStream.prepare([value, "ab"]))
    const shown = redaction.add(`x${value.replaceAll("\r", "")}y second-line-second-line-second-line- ab\n`)
    assert.strictEqual(shown + redaction.end(), "x<redacted>\ny <redacted> ab\n")
  })

  it("SL-34: redacting a redacted stream changes nothing", () => {
    forAll([mixed], 60, (text) => {
      const once = stream([text])
      assert.strictEqual(stream([once]), once)
    })
  })

  it("SL-35: the source of this project has few lines that wait", () => {
    const source = readFileSync(new URL("../../../packages/shell/src/output/Escapes.ts", import.meta.url), "utf8")
    assert.strictEqual(RedactionStream.make(RedactionStream.prepare()).add(source), source)
  })
})

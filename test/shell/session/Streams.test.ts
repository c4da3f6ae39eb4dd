/** Tests how the streams of a shell are cut, for any chunks. Spec: SL-14, SL-15 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import * as Dialogue from "../../../packages/shell/src/session/Dialogue.ts"
import { cases } from "../../support/Cases.ts"
import { cut, sizes } from "../support/Chunks.ts"

/** Texts that contain parts of tokens. */
const noise = fc.array(fc.constantFrom("a", "\n", "\0", "aab", "aab<", "aab>", "aac<", "x> 0 ", "é"), { maxLength: 8 })
const text = noise.map((parts) => parts.join(""))

const collect = () => {
  const parts: Array<Buffer> = []
  return {
    sink: (bytes: Uint8Array) => void parts.push(Buffer.from(bytes)),
    text: () => Buffer.concat(parts).toString()
  }
}

const silent: Dialogue.Events = { ended: () => undefined, noted: () => undefined }

describe("streams of a shell", () => {
  it("SL-15: each command gets the bytes between its marks, and nothing is lost, for any chunks", () => {
    const commands = fc.array(fc.record({ before: text, inside: text }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(commands, text, sizes, (all, after, lengths) => {
        const late = collect()
        const ended: Array<string> = []
        const cutter = Dialogue.makeCutter(late.sink, { ...silent, ended: (...end) => ended.push(end.join(" ")) })
        const insides = all.map(({ before, inside }, index) => {
          const token = `token-${index}-of-the-command`
          const own = collect()
          cutter.expect(token, own.sink)
          const whole = `${before}${token}<${inside}${token}>${index} /a\0`
          for (const chunk of cut(Buffer.from(whole), lengths)) cutter.add(chunk)
          assert.strictEqual(ended.at(-1), `${token} ${index} /a`)
          return own.text()
        })
        for (const chunk of cut(Buffer.from(after), lengths)) cutter.add(chunk)
        cutter.flush()
        assert.deepStrictEqual(
          insides,
          all.map(({ inside }) => inside)
        )
        assert.strictEqual(late.text(), `${all.map(({ before }) => before).join("")}${after}`)
      }),
      { numRuns: cases(200) }
    )
  })

  it("SL-15: neither the end of a later question nor a note is output", () => {
    const [late, own] = [collect(), collect()]
    const seen: Array<string> = []
    const cutter = Dialogue.makeCutter(late.sink, {
      ended: (token) => seen.push(`end of ${token}`),
      noted: (token, record) => seen.push(`note of ${token}: ${record}`)
    })
    cutter.expect("one", own.sink)
    cutter.also("note", "aside")
    cutter.also("end", "two")
    for (const part of ["one<in", "aside|130\0side", "one>\0between", "two>\0after"]) cutter.add(Buffer.from(part))
    assert.deepStrictEqual(seen, ["note of aside: 130", "end of one", "end of two"])
    assert.deepStrictEqual([own.text(), late.text()], ["inside", "betweenafter"])
  })

  it("SL-14: only an end with the command's token counts, whatever the command prints, for any chunks", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 255 }), text, sizes, (junk, code, folder, lengths) => {
        const cwd = `/${folder.replaceAll("\0", "")}`
        const out = collect()
        const dialogue = Dialogue.make(() => undefined)
        const token = dialogue.begin({ stdout: out.sink, stderr: () => undefined })
        const printed = `${junk}${"0".repeat(32)}> 1 /forged\0${junk}${token.slice(0, -1)}`
        dialogue.take("stderr", Buffer.from(`${token}<${token}>\0`))
        const whole = `${token}<${printed}${token}>${code} ${cwd}\0${token}>9 /again\0`
        for (const chunk of cut(Buffer.from(whole), lengths)) dialogue.take("stdout", chunk)
        assert.deepStrictEqual(
          [Effect.runSync(dialogue.news()), dialogue.code(), dialogue.cwd()],
          ["answered", code, cwd]
        )
        assert.strictEqual(out.text(), printed)
      }),
      { numRuns: cases(200) }
    )
  })
})

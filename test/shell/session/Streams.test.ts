/** Tests how the streams of a shell are cut, for any chunks. Spec: SL-14, SL-15 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as ControlStream from "../../../packages/shell/src/session/ControlStream.ts"
import * as StreamCutter from "../../../packages/shell/src/session/StreamCutter.ts"
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

describe("streams of a shell", () => {
  it("SL-15: each command gets the bytes between its tokens, and nothing is lost, for any chunks", () => {
    const commands = fc.array(fc.record({ before: text, inside: text }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(commands, text, sizes, (all, after, lengths) => {
        const late = collect()
        const cutter = StreamCutter.make(late.sink)
        const insides = all.map(({ before, inside }, index) => {
          const token = `token-${index}-of-the-command`
          const own = collect()
          cutter.expect(`${token}<`, `${token}>`, own.sink)
          for (const chunk of cut(Buffer.from(`${before}${token}<${inside}${token}>`), lengths)) cutter.add(chunk)
          assert.isTrue(cutter.passed(`${token}>`))
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

  it("SL-15: a later question's end completes the command, and neither end is output", () => {
    const [late, own] = [collect(), collect()]
    const cutter = StreamCutter.make(late.sink)
    cutter.expect("one<", "one>", own.sink)
    cutter.alsoEnds("two>")
    cutter.add(Buffer.from("one<inside"))
    cutter.add(Buffer.from("one>between"))
    assert.isFalse(cutter.passed("two>"))
    cutter.add(Buffer.from("two>after"))
    assert.isTrue(cutter.passed("two>"))
    assert.deepStrictEqual([own.text(), late.text()], ["inside", "betweenafter"])
  })

  it("SL-14: only a record with the expected token counts, whatever a command writes there, for any chunks", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 255 }), text, sizes, (junk, code, folder, lengths) => {
        const cwd = `/${folder.replaceAll("\0", "").replaceAll("\n", "-")}`
        const records: Array<ControlStream.EndRecord> = []
        const control = ControlStream.make("idle", { ended: (record) => records.push(record), idle: () => undefined })
        control.expect("secret")
        const whole = `${junk}wrong> 1 /forged\n\0${junk}secret> ${code} ${cwd}\n\0secret> 9 /again\n\0`
        for (const chunk of cut(Buffer.from(whole), lengths)) control.add(chunk)
        assert.deepStrictEqual(records, [{ token: "secret", code, cwd }])
      }),
      { numRuns: cases(200) }
    )
  })
})

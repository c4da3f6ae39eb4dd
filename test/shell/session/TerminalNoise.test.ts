import { expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Dialogue from "../../../packages/shell/src/session/Dialogue.ts"

const complaint = "bash: [12: 1 (255)] tcsetattr: Inappropriate ioctl for device\n"

/** What passes when the text arrives in these chunks. */
const passed = (text: string, cuts: ReadonlyArray<number>): string => {
  const found: Array<Uint8Array> = []
  const quiet = Dialogue.without(12, (bytes) => void found.push(Buffer.from(bytes)))
  const bytes = Buffer.from(text)
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b)
  for (const [index, from] of [0, ...places].entries()) quiet.add(bytes.subarray(from, places[index]))
  quiet.end()
  return Buffer.concat(found).toString()
}

const part = fc.constantFrom(
  complaint,
  "bash: [12: 1 (255)] ",
  "bash: [12: ",
  "bash: [13: 1 (255)] tcsetattr: x\n",
  "bash: [12: 1 (255)] tcgetattr: x\n",
  "bash: _: readonly variable\n",
  "bash: line 1: _: readonly variable\n",
  "bash: line 1: nope: command not found\n",
  "text",
  "\n",
  "b",
  "é"
)

it.prop(
  "SL-15: bash's complaints about its terminal and `_` are removed, and nothing else, whatever the chunks",
  [fc.array(part, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 12 })],
  ([parts, cuts]) => {
    const text = parts.join("")
    expect(passed(text, cuts)).toBe(
      text.replaceAll(/bash: (?:\[12: [^\]\n]+\] tcsetattr: [^\n]+|_: readonly variable)\n/g, "")
    )
  }
)

it("SL-15: a text without an end that begins like a complaint is passed on", () => {
  const text = `bash: [12: ${"x".repeat(1_000)}`
  expect(passed(text, [5, 11, 300])).toBe(text)
})

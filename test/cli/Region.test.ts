/**
 * What a terminal shows after each redraw. Method: the bytes go to a terminal made of rows and a cursor, and what
 * is on it is compared; texts come in random pieces.
 */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import * as LiveLines from "../../packages/cli/src/render/LiveLines.ts"
import { forAll } from "../support/Cases.ts"
import { width } from "../../packages/cli/src/render/Plain.ts"
import * as VirtualTerminal from "./support/VirtualTerminal.ts"

const plain = { prefix: "", paint: (row: string) => row }
const looks: LiveLines.Looks = {
  text: plain,
  note: plain,
  reasoning: { prefix: "> ", paint: (row) => `\u001b[2m${row}\u001b[22m` }
}

interface Step {
  readonly piece?: LiveLines.Piece
  readonly live: ReadonlyArray<string>
}

const text = (words: string): LiveLines.Piece => ({ channel: "text", text: words })

/** Draws the steps, then closes; what is on the terminal after each, and what was sent. */
const play = (steps: ReadonlyArray<Step>, columns: number, end = true) => {
  const terminal = VirtualTerminal.make(columns)
  let region = LiveLines.empty
  const shown: Array<ReadonlyArray<string>> = []
  for (const { live, piece } of steps) {
    const [next, bytes] = LiveLines.next(region, piece === undefined ? [] : [piece], live, columns, looks)
    region = next
    terminal.write(bytes)
    shown.push(terminal.lines())
  }
  if (end) terminal.write(LiveLines.close(region, columns, looks))
  return { shown, lines: terminal.lines() }
}

const words = FastCheck.string({
  unit: FastCheck.constantFrom("a", "bc", " ", "  ", "\n", "你", "好 ", "é", "👩‍👩‍👧", "word", "\t"),
  maxLength: 60
})

describe("LiveLines", () => {
  it("CL-45: what moves is drawn below what stays, and is gone at the end", () => {
    const { lines, shown } = play(
      [
        { live: ["waiting"] },
        { piece: text("Hel"), live: ["answering"] },
        { piece: text("lo\n"), live: ["answering"] },
        { piece: { channel: "note", text: "→ read a\n" }, live: ["→ read a", "running read"] },
        { piece: text("Done"), live: ["answering"] }
      ],
      20
    )
    assert.deepStrictEqual(shown, [
      ["waiting"],
      ["Hel", "answering"],
      ["Hello", "answering"],
      ["Hello", "→ read a", "→ read a", "running read"],
      ["Hello", "→ read a", "Done", "answering"]
    ])
    assert.deepStrictEqual(lines, ["Hello", "→ read a", "Done", ""])
  })

  it("CL-45: a row that is full is broken at a space, and a wide character is never cut", () => {
    const { lines } = play([{ piece: text("the quick 你好世界 fox averyverylongword"), live: ["x"] }], 11)
    assert.deepStrictEqual(lines, ["the quick", "你好世界", "fox", "averyveryl", "ongword", ""])
  })

  it("CL-45: another channel begins on a line of its own, and reasoning is set apart without colour too", () => {
    const { lines } = play(
      [
        { piece: { channel: "reasoning", text: "hm\nwell, it is so" }, live: ["x"] },
        { piece: text("So."), live: ["x"] }
      ],
      12
    )
    assert.deepStrictEqual(lines, ["> hm", "> well, it", "> is so", "So.", ""])
  })

  it("CL-45: nothing is sent when nothing changed", () => {
    const [region] = LiveLines.next(LiveLines.empty, [text("a")], ["s"], 20, looks)
    assert.strictEqual(LiveLines.next(region, [], ["s"], 20, looks)[1], "")
  })

  it("CL-45: a region that a narrower terminal shows in more rows is taken away whole", () => {
    const terminal = VirtualTerminal.make(10)
    const [region, first] = LiveLines.next(LiveLines.empty, [text("kept\n")], ["a".repeat(19), "b"], 20, looks)
    // The terminal has wrapped the line of 19 cells into two rows of 10.
    terminal.write(first)
    terminal.write(LiveLines.next(region, [], ["c"], 10, looks)[1])
    assert.deepStrictEqual(terminal.lines(), ["kept", "c"])
  })

  it("CL-45: whatever comes in whatever pieces, no sign is lost, and no row is wider than the terminal", () => {
    forAll(
      [FastCheck.array(words, { maxLength: 12 }), FastCheck.integer({ min: 4, max: 40 })],
      80,
      (pieces, columns) => {
        const live = ["status", "你".repeat(columns)].map((line) => LiveLines.fit(line, columns))
        const parts = play(
          pieces.map((piece) => ({ piece: text(piece), live })),
          columns
        ).lines
        for (const line of parts) assert.isAtMost(width(line), columns - 1)
        const squeezed = (lines: ReadonlyArray<string>) => lines.join("").replaceAll(/\s/g, "")
        assert.strictEqual(squeezed(parts), pieces.join("").replaceAll(/\s/g, ""))
      }
    )
  })

  it("CL-45: words that fit into a row are not broken, in whatever pieces they come", () => {
    const word = FastCheck.string({
      unit: FastCheck.constantFrom("a", "bc", "你", "é", "👩‍👩‍👧"),
      minLength: 1,
      maxLength: 8
    })
    forAll(
      [
        FastCheck.array(word, { maxLength: 30 }),
        FastCheck.array(FastCheck.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 30 }),
        FastCheck.integer({ min: 18, max: 60 })
      ],
      40,
      (all, sizes, columns) => {
        const whole = all.join(" ")
        const clusters = Array.from(new Intl.Segmenter().segment(whole), ({ segment }) => segment)
        const pieces: Array<Step> = []
        for (let at = 0, i = 0; at < clusters.length; at += sizes[i++ % sizes.length] ?? 1) {
          const piece = clusters.slice(at, at + (sizes[i % sizes.length] ?? 1)).join("")
          pieces.push({ piece: text(piece), live: ["status"] })
        }
        const { lines } = play(pieces, columns)
        assert.strictEqual(lines.join(" ").trimEnd(), whole)
      }
    )
  })
})

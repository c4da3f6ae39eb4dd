import { assert, it, vi } from "@effect/vitest"
import { FastCheck } from "effect"
import { type Line, make, maxLineBytes } from "../../packages/server/src/socket/Request.ts"
import { cases } from "../support/Cases.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const shown = (line: Line) => (line._tag === "Line" ? new TextDecoder().decode(line.bytes) : line._tag)

/** The lines of chunks, to the end. Each chunk is wiped after it was used: nothing may be kept of it. */
const split = (chunks: ReadonlyArray<Uint8Array>, limit?: number): ReadonlyArray<string> => {
  const splitter = make(limit)
  const lines = chunks.flatMap((chunk) => {
    const own = Uint8Array.from(chunk)
    const found = splitter.push(own).map(shown)
    own.fill(0x2a)
    return found
  })
  return [...lines, ...splitter.end().map(shown)]
}

const cutAt = (whole: Uint8Array, cuts: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const at = [0, ...cuts.map((cut) => cut % (whole.length + 1)).toSorted((a, b) => a - b), whole.length]
  return at.slice(1).map((end, index) => whole.subarray(at[index], end))
}

/** What the splitter has to say of a text that is here as a whole. */
const expected = (text: string, limit: number): ReadonlyArray<string> => {
  const parts = text.split("\n")
  const last = parts.pop() ?? ""
  return [...parts, ...(last === "" ? [] : [last])]
    .map((part) => (part.endsWith("\r") ? part.slice(0, -1) : part))
    .map((part) => (part.length > limit ? "TooLong" : part))
}

it("FR-1: LF and CRLF end a line, and an empty line is a line", () => {
  assert.deepStrictEqual(split([bytes("a\nb\r\n\n\r\n\rc\r\rd\n")]), ["a", "b", "", "", "\rc\r\rd"])
})

it("FR-3: frames glued in one chunk come out in order", () => {
  const lines = Array.from({ length: 500 }, (_, index) => `{"op":"ping","id":"p${index}"}`)
  assert.deepStrictEqual(split([bytes(`${lines.join("\n")}\n`)]), lines)
})

it("FR-3: a text cut at any one byte gives the same lines", () => {
  const whole = bytes('{"input":"größer 🎉"}\r\n\n{"op":"ping"}\nlast')
  const lines = split([whole])
  assert.lengthOf(lines, 4)
  for (let cut = 0; cut <= whole.length; cut++) assert.deepStrictEqual(split(cutAt(whole, [cut])), lines)
  assert.deepStrictEqual(split(Array.from(whole, (byte) => Uint8Array.of(byte))), lines)
})

it.prop(
  "FR-3: however a text is cut, its lines are those of the whole text, too long ones included",
  [
    FastCheck.array(FastCheck.constantFrom("\n", "\r", "\r\n", "a", "bc", "defgh"), { maxLength: 40 }),
    FastCheck.array(FastCheck.nat(200), { maxLength: 12 }),
    FastCheck.integer({ min: 1, max: 9 })
  ],
  ([parts, cuts, limit]) => {
    const text = parts.join("")
    assert.deepStrictEqual(split(cutAt(bytes(text), cuts), limit), expected(text, limit))
  },
  { fastCheck: { numRuns: cases(800) } }
)

for (const end of ["\n", "\r\n"]) {
  it(`FR-3: exactly 1,048,576 bytes before ${JSON.stringify(end)} are a line, one more is not`, () => {
    for (const size of [1, 4095, 65_536, maxLineBytes, maxLineBytes + 1, maxLineBytes + 2]) {
      const fits = bytes(`${"x".repeat(maxLineBytes)}${end}next\n`)
      const over = bytes(`${"x".repeat(maxLineBytes + 1)}${end}next\n`)
      const cuts = (whole: Uint8Array) =>
        size === 1
          ? [whole.subarray(0, -9), ...Array.from(whole.subarray(-9), (byte) => Uint8Array.of(byte))]
          : Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
              whole.subarray(at * size, (at + 1) * size)
            )
      assert.deepStrictEqual(split(cuts(fits)), ["x".repeat(maxLineBytes), "next"])
      assert.deepStrictEqual(split(cuts(over)), ["TooLong", "next"])
    }
  })
}

it("FR-4: a line too long is told as soon as it is, once, and the next line is read", () => {
  const splitter = make(4)
  assert.deepStrictEqual(splitter.push(bytes("abcd")).map(shown), [])
  assert.deepStrictEqual(splitter.push(bytes("ef")).map(shown), ["TooLong"])
  for (let more = 0; more < 100; more++) assert.deepStrictEqual(splitter.push(bytes("x".repeat(1000))).map(shown), [])
  assert.deepStrictEqual(splitter.push(bytes("y\nok\n")).map(shown), ["ok"])
  assert.deepStrictEqual(splitter.end(), [])
})

it("FR-3: what is left without a line end is a line; nothing left is none", () => {
  assert.deepStrictEqual(split([bytes("a\nb")]), ["a", "b"])
  assert.deepStrictEqual(split([bytes("a\n")]), ["a"])
  assert.deepStrictEqual(split([]), [])
})

it("FR-6: lines of a begun frame stay intact when its splitter goes on", () => {
  const splitter = make()
  splitter.push(bytes("first"))
  const [line] = splitter.push(bytes(" line\nsecond line that is longer"))
  splitter.push(bytes(" and goes on\n"))
  assert.strictEqual(line === undefined ? "" : shown(line), "first line")
})

it("FR-6: a frame that comes in small pieces is copied a number of times that does not grow with it", () => {
  const copies = vi.spyOn(Uint8Array.prototype, "set")
  try {
    const splitter = make()
    const piece = bytes("x".repeat(64))
    for (let length = 0; length < maxLineBytes; length += piece.length) splitter.push(piece)
    assert.deepStrictEqual(splitter.push(bytes("\n")).length, 1)
    const copied = copies.mock.calls.reduce((sum, [source]) => sum + source.length, 0)
    assert.isBelow(copied, 4 * maxLineBytes)
  } finally {
    copies.mockRestore()
  }
})

import { assert, describe, it } from "@effect/vitest"
import { FastCheck, Struct } from "effect"
import { type Frame, Framer } from "../../packages/models/src/wire/Frames.ts"

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const framesOf = (...pieces: ReadonlyArray<Uint8Array>): ReadonlyArray<Frame> => {
  const framer = new Framer()
  return [...pieces.flatMap((piece) => framer.feed(piece)), ...framer.end()]
}

const eventsOf = (text: string): ReadonlyArray<unknown> =>
  framesOf(bytesOf(text)).map((frame) => (frame._tag === "Event" ? frame.event : frame._tag))

describe("the frames of an answer", () => {
  it.prop(
    "MD-23: an answer reads the same wherever the network cuts it, with any line ends",
    [FastCheck.array(FastCheck.nat(200), { maxLength: 20 }), FastCheck.constantFrom("\n", "\r\n", "\r")],
    ([cuts, eol]) => {
      const events = [
        { type: "a", text: "grüße 🌍" },
        { type: "b", n: 1 }
      ]
      const lines = events.flatMap((event) => ["event: x", `data: ${JSON.stringify(event)}`, ""])
      const bytes = bytesOf(`\ufeff: hello${eol}${eol}${lines.join(eol)}${eol}data: [DONE]${eol}${eol}`)
      const at = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
      const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
      assert.deepStrictEqual(framesOf(...pieces), [
        ...events.map((event) => ({ _tag: "Event" as const, name: "x", event })),
        { _tag: "Done" as const }
      ])
    }
  )

  it("LM-10: an event below the limit is read, in however many pieces it comes", () => {
    const bytes = bytesOf(`data: ${JSON.stringify({ text: "x".repeat(6 * 1024 * 1024) })}\n\n`)
    const pieces = Array.from({ length: 100 }, (_, n) => n * 65_536).map((at) => bytes.subarray(at, at + 65_536))
    assert.deepStrictEqual(framesOf(...pieces).map(Struct.get("_tag")), ["Event"])
  })

  it.each([
    ["an event without an empty line after it", 'data: {"a":1}', [{ a: 1 }]],
    ["events without empty lines between them", 'data: {"a":1}\ndata: {"b":2}\n\n', [{ a: 1 }, { b: 2 }]],
    ["events glued into one line", 'data: {"a":"}{"}data: {"b":2}\n\n', [{ a: "}{" }, { b: 2 }]],
    ["an event and the end mark in one line", 'data: {"a":1}[DONE]\n\n', [{ a: 1 }, "Done"]],
    ["JSON without a field name", 'data: {"a":1}\n\n{"error":"x"}\n\n', [{ a: 1 }, { error: "x" }]],
    [
      "comments, names and fields without data",
      ':\n\nevent: ping\n\ndata:\n\ndata: {"a":1}\n\nretry: 5\n\n',
      [{ a: 1 }]
    ],
    ["an object over several lines", 'data: {"a":\ndata: 1}\n\n', [{ a: 1 }]],
    ["a list of objects", 'data: [{"a":1}]\n\n', [{ a: 1 }]],
    ["text that is not JSON", "data: upstream connect error\n\n", ["Unreadable"]],
    ["JSON that was cut", 'data: {"a":\n\n', ["Unreadable"]],
    ["a whole body of JSON", '{"a":\n1}\n', ["Whole"]],
    ["a page", "<html>\n<body>", ["Whole"]]
  ])("MD-92: reads %s", (_, text, expected) => {
    assert.deepStrictEqual(eventsOf(text), expected)
  })
})

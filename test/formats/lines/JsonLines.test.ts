/** Tests the reading of JSON Lines. Spec: FM-2..FM-9 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Stream, Struct } from "effect"
import * as JsonLines from "../../../packages/formats/src/lines/JsonLines.ts"
import { forAll } from "../../support/Cases.ts"

const hasType = (value: Readonly<Record<string, unknown>>) => typeof value["type"] === "string"

/** Each record as its slot, place and text, each problem as its kind and place. */
const read = (content: string | Buffer, options: JsonLines.Options = { isRecord: hasType }, chunk = Infinity) => {
  const bytes = Buffer.from(content)
  const reader = JsonLines.make(options)
  const pieces = []
  for (let from = 0; from < bytes.length; from += chunk) pieces.push(...reader.push(bytes.subarray(from, from + chunk)))
  pieces.push(...reader.end())
  return pieces.map((piece) => {
    const at = `${piece.place.line}:${piece.place.offset}`
    return piece._tag === "Problem" ? `${piece.kind} ${at}` : `${piece.slot} ${at} ${piece.text}`
  })
}

const a = '{"type":"a"}'
const b = '{"type":"b","text":"}{\\"\\\\"}'

describe("JsonLines", () => {
  it("FM-2: each record has its line, byte offset and slot", () => {
    assert.deepStrictEqual(read(`${a}\n{"type":"ü"}\n${b}\n`), [`0 1:0 ${a}`, '1 2:13 {"type":"ü"}', `2 3:27 ${b}`])
  })

  it.effect("FM-2: the stream yields the records before the source ends", () =>
    Effect.gen(function* () {
      const source = Stream.concat(Stream.make(Buffer.from(`${a}\n${b}`)), Stream.never)
      const first = yield* source.pipe(JsonLines.read(), Stream.take(1), Stream.runCollect)
      assert.deepStrictEqual(Chunk.toReadonlyArray(first).map(Struct.get("_tag")), ["LogRecord"])
    })
  )

  it("FM-2: pieces do not depend on how the bytes are divided into chunks", () => {
    const content = Buffer.from(`\ufeff${a}\r\n\0\0${a}${b}\n\n{"type":"\u2028é"}\n${a}x${b}\n[1]\n{"ty`)
    for (let chunk = 1; chunk < 40; chunk++) assert.deepStrictEqual(read(content, undefined, chunk), read(content))
  })

  it("FM-3: a line above the limit is not held; its neighbours are read", () => {
    const long = `{"type":"${"x".repeat(90)}"}`
    const content = `${a}\n${long}\n${a}\n`
    const expected = [`0 1:0 ${a}`, "line-too-long 2:13", `2 3:${14 + long.length} ${a}`]
    for (const chunk of [1, 7, Infinity]) assert.deepStrictEqual(read(content, { maxLineBytes: 50 }, chunk), expected)
  })

  it("FM-3: a value that is nested too deeply and a value that is not an object are skipped", () => {
    const nested = (depth: number) => `{"x":${"[".repeat(depth)}${"]".repeat(depth)}}`
    assert.deepStrictEqual(read(`${nested(499)}\n`), [`0 1:0 ${nested(499)}`])
    assert.deepStrictEqual(read(`${nested(10_000)}\n123\n"x"\nnull\n[]\n${a}`), [
      "too-deep 1:0",
      "not-an-object 2:20007",
      "not-an-object 3:20011",
      "not-an-object 4:20015",
      "not-an-object 5:20020",
      `5 6:20023 ${a}`
    ])
  })

  const damaged: ReadonlyArray<[string, string, ReadonlyArray<string>]> = [
    [
      "glued records",
      `${a}${b} ${a}\n`,
      ["glued-records 1:0", `0 1:0 ${a}`, "glued-records 1:12", `1 1:12 ${b}`, "glued-records 1:41", `2 1:41 ${a}`]
    ],
    ["a record after a torn one", `{"type":"torn","text":"ab${b}\n`, ["bad-line 1:0", `0 1:25 ${b}`]],
    ["a record before a torn one", `${a}{"type":"torn\n`, [`0 1:0 ${a}`, "bad-line 1:12"]],
    [
      "records between other bytes",
      `${a}x${b}y${a}\n`,
      [
        "glued-records 1:0",
        `0 1:0 ${a}`,
        "bad-line 1:12",
        "glued-records 1:13",
        `1 1:13 ${b}`,
        "bad-line 1:41",
        "glued-records 1:42",
        `2 1:42 ${a}`
      ]
    ],
    ["an object of a torn record", `{"type":"m","parts":[{"text":"a"}\n`, ["bad-line 1:0"]],
    ["a balanced object that is not JSON", `{"type":01}${a}\n`, ["bad-line 1:0", `0 1:11 ${a}`]],
    ["no object", `hello\n${a}\n`, ["bad-line 1:0", `1 2:6 ${a}`]],
    [
      "an escaped quote before a brace",
      `{"x":"\\\\\\"}"}${a}\n`,
      ["glued-records 1:0", '0 1:0 {"x":"\\\\\\"}"}', "glued-records 1:13", `1 1:13 ${a}`]
    ]
  ]
  for (const [name, content, expected] of damaged) {
    it(`FM-4: a damaged line keeps its records: ${name}`, () => assert.deepStrictEqual(read(content), expected))
  }

  it("FM-5: a torn last line is reported, a last line without a newline is a record", () => {
    assert.deepStrictEqual(read(`${a}\n{"type":"b`), [`0 1:0 ${a}`, "torn-line 2:13"])
    assert.deepStrictEqual(read(`${a}\n${a}{"type":"b`), [`0 1:0 ${a}`, `1 2:13 ${a}`, "torn-line 2:25"])
    assert.deepStrictEqual(read(`${a}\n${a}`), [`0 1:0 ${a}`, `1 2:13 ${a}`])
    assert.deepStrictEqual(read(""), [])
  })

  it("FM-6: in compat mode a damaged line is dropped whole and holds no slot", () => {
    const content = `${a}${b}\nbad\n12\n\n${b}\n`
    assert.deepStrictEqual(read(content, { mode: "compat", isRecord: hasType }), [
      "bad-line 1:0",
      "bad-line 2:41",
      "not-an-object 3:45",
      "blank-line 4:48",
      `1 5:49 ${b}`
    ])
    assert.deepStrictEqual(read(content).at(-1), `4 5:49 ${b}`)
  })

  const tolerated: ReadonlyArray<[string, string, ReadonlyArray<string>]> = [
    ["a byte order mark", `\ufeff${a}\n`, ["byte-order-mark 1:0", `0 1:3 ${a}`]],
    ["carriage returns", `${a}\r\n${a}\r\n`, ["carriage-returns 1:0", `0 1:0 ${a}`, `1 2:14 ${a}`]],
    [
      "NUL bytes",
      `\0\0${a}\n${a}\0\n\0\0\0`,
      ["nul-padding 1:0", `0 1:2 ${a}`, "nul-padding 2:15", `1 2:15 ${a}`, "nul-padding 3:29"]
    ],
    ["U+2028", `{"type":"\u2028"}\u2028\n`, ["line-separator 1:0", '0 1:0 {"type":"\u2028"}']],
    [
      "blank lines",
      `${a}\n\n \t\n\r\n${a}\n\n`,
      [`0 1:0 ${a}`, "blank-line 2:13", "carriage-returns 4:17", `1 5:19 ${a}`, "blank-line 6:32"]
    ]
  ]
  for (const [name, content, expected] of tolerated) {
    it(`FM-7: around records, these are skipped and reported: ${name}`, () =>
      assert.deepStrictEqual(read(content), expected))
  }

  it("FM-8: a record that is not valid UTF-8 is kept and reported", () => {
    const content = Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xff]), Buffer.from('"}\n{"x":"\ufffd"}\n')])
    assert.deepStrictEqual(read(content), ["invalid-utf8 1:0", '0 1:0 {"x":"\ufffd"}', '1 2:10 {"x":"\ufffd"}'])
  })

  const lines = fc.array(
    fc.jsonValue().map((value) => JSON.stringify({ type: "x", value })),
    { maxLength: 8 }
  )
  const damage = fc.record({
    at: fc.nat(),
    cut: fc.nat(30),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc.constantFrom(Buffer.from("\n"), Buffer.alloc(9), Buffer.from('{"'))
    )
  })
  it("FM-9: after any damage each line without a changed byte is read, and no exception escapes", () => {
    forAll(
      [lines, fc.array(damage, { maxLength: 3 }), fc.integer({ min: 1, max: 64 })],
      60,
      (texts, damages, chunk) => {
        let content = Buffer.from(texts.map((text) => `${text}\n`).join(""))
        for (const { at, cut, insert } of damages) {
          const from = at % (content.length + 1)
          content = Buffer.concat([content.subarray(0, from), insert, content.subarray(from + cut)])
        }
        const present = content
          .toString()
          .split("\n")
          .filter((line) => texts.includes(line))
        const kept = read(content, undefined, chunk).map((piece) => piece.replace(/^\d+ \d+:\d+ /, ""))
        for (const line of present) assert.include(kept, line)
      }
    )
  })
})

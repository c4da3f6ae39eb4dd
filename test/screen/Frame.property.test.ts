/** Method: random pictures and permanent lines, drawn on an emulated terminal that scrolls. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Frame from "../../packages/cli/src/screen/Frame.ts"

const [columns, rows] = [20, 8]
const escape = String.fromCharCode(27)

/** A terminal: its rows, those that scrolled away first. Fails at a sequence that it does not know. */
const terminal = () => {
  const all: Array<string> = [""]
  let [row, column, top] = [0, 0, 0]
  const obey = (argument: string, name: string) => {
    const count = Number(argument === "" ? 1 : argument)
    if (name === "A") row = Math.max(top, row - count)
    else if (name === "C") column = Math.min(columns - 1, column + count)
    else if (name === "K") all[row] = (all[row] ?? "").slice(0, column)
    else if (name === "J") {
      all[row] = (all[row] ?? "").slice(0, column)
      all.length = row + 1
    } else if (!argument.startsWith("?")) throw new Error(`the terminal got CSI ${argument}${name}`)
  }
  return {
    write: (bytes: string) => {
      const unit = new RegExp(`${escape}\\[(\\??\\d*)([A-Za-z])|\\r\\n|\\r|[^]`, "gu")
      for (const [text, argument = "", name] of bytes.matchAll(unit)) {
        if (name !== undefined) obey(argument, name)
        else if (text === "\r") column = 0
        else if (text === "\r\n") {
          column = 0
          row++
          if (row === all.length) all.push("")
          top = Math.max(top, row - rows + 1)
        } else {
          const before = (all[row] ?? "").padEnd(column)
          all[row] = before.slice(0, column) + text + before.slice(column + 1)
          column++
        }
      }
    },
    lines: () => all.map((text) => text.trimEnd()),
    cursor: () => ({ row, column })
  }
}

const line = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: columns - 1 }).map((letters) => letters.join(""))
const picture = fc
  .tuple(fc.array(line, { minLength: 1, maxLength: rows - 1 }), fc.nat(), fc.nat(columns - 2))
  .map(([lines, row, column]): Frame.Picture => ({ lines, cursor: { row: row % lines.length, column } }))
const kept = fc.array(
  line.map((text) => `kept${text}`.slice(0, columns - 1)),
  { maxLength: 12 }
)
const drawings = fc.array(fc.tuple(kept, picture), { minLength: 1, maxLength: 12 })

describe("the frame", () => {
  it.prop(
    "SC-503: permanent lines stay as they were written, and the last picture is below them",
    [drawings],
    ([all]) => {
      const screen = terminal()
      let frame = Frame.empty
      const permanent: Array<string> = []
      for (const [lines, picture] of all) {
        const [next, bytes] = Frame.next(frame, lines, picture, columns)
        frame = next
        permanent.push(...lines)
        screen.write(bytes)
        const drawn = screen.lines().slice(0, permanent.length + picture.lines.length)
        assert.deepStrictEqual(drawn, [...permanent, ...picture.lines])
        assert.strictEqual(screen.lines().slice(drawn.length).join(""), "")
        const { column, row } = screen.cursor()
        assert.deepStrictEqual({ column, row: row - permanent.length }, picture.cursor)
      }
    }
  )

  it.prop("SC-504: an unchanged picture writes nothing", [picture], ([picture]) => {
    const [frame] = Frame.next(Frame.empty, [], picture, columns)
    assert.strictEqual(Frame.next(frame, [], picture, columns)[1], "")
  })

  it("SC-504: only the row that differs is written", () => {
    const cursor = { row: 0, column: 0 }
    const [frame] = Frame.next(Frame.empty, [], { lines: ["same", "old", "end"], cursor }, columns)
    const [, bytes] = Frame.next(frame, [], { lines: ["same", "new", "end"], cursor }, columns)
    assert.include(bytes, "new")
    assert.notInclude(bytes, "same")
    assert.notInclude(bytes, "end")
  })
})

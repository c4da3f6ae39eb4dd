/** Emulates a terminal: rows, a cursor, and the few sequences that the command sends. */
import { default as stringWidth } from "../../../packages/cli/node_modules/string-width/index.js"

export interface VirtualTerminal {
  readonly write: (text: string) => void
  /** Scrolled rows and rows on the screen, without styles and trailing spaces. */
  readonly lines: () => ReadonlyArray<string>
  /** Makes the terminal narrower: rows that are too long continue in the next row, as on most terminals. */
  readonly resize: (columns: number) => void
}

const sequence = /^\u001b\[(\??[\d;]*)([A-Za-z])/
const segmenter = new Intl.Segmenter()

export const make = (columns: number, rows = 24): VirtualTerminal => {
  let width = columns
  const all: Array<Array<string>> = [[]]
  let top = 0
  let at = { row: 0, column: 0 }
  const row = () => (all[at.row] ??= [])
  const down = () => {
    at = { ...at, row: at.row + 1 }
    row()
    top = Math.max(top, at.row - rows + 1)
  }
  const put = (cluster: string) => {
    const cells = stringWidth(cluster)
    if (cells === 0) return
    if (at.column + cells > width) {
      down()
      at = { ...at, column: 0 }
    }
    for (let i = 0; i < cells; i++) row()[at.column + i] = i === 0 ? cluster : ""
    at = { ...at, column: at.column + cells }
  }
  const obey = (argument: string, name: string) => {
    const count = Number(argument || "1")
    if (name === "A") at = { ...at, row: Math.max(top, at.row - count) }
    else if (argument === "?2004") return
    else if (name === "J") {
      row().length = Math.min(row().length, at.column)
      all.length = at.row + 1
    } else if (name !== "m") throw new Error(`the terminal got ESC [ ${argument} ${name}`)
  }
  return {
    write: (text) => {
      for (let rest = text; rest !== "";) {
        const found = sequence.exec(rest)
        if (found !== null) {
          obey(found[1] ?? "", found[2] ?? "")
          rest = rest.slice(found[0].length)
          continue
        }
        const { segment } = segmenter.segment(rest.slice(0, 64))[Symbol.iterator]().next().value ?? { segment: rest }
        rest = rest.slice(segment.length)
        if (segment === "\r") at = { ...at, column: 0 }
        else if (segment === "\n" || segment === "\r\n") {
          down()
          at = { ...at, column: 0 }
        } else put(segment)
      }
    },
    lines: () =>
      all.map((cells) =>
        Array.from(cells, (cell) => cell ?? " ")
          .join("")
          .trimEnd()
      ),
    resize: (next) => {
      width = next
      for (let index = 0; index < all.length; index++) {
        const cells = all[index] ?? []
        if (cells.length <= next) continue
        all.splice(index + 1, 0, cells.splice(next))
        if (at.row > index) at = { ...at, row: at.row + 1 }
        else if (at.row === index && at.column > next) at = { row: index + 1, column: at.column - next }
      }
      top = Math.max(0, all.length - rows)
    }
  }
}

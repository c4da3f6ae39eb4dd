/**
 * Splits a text into messages of at most 2,000 characters: between paragraphs and blocks of code, else between lines, else
 * within a line. A block that is cut is closed, and opened again in the next message. Pure. Spec: DI-20..DI-23.
 */
import { fence, type Unit, units } from "./Fences.ts"

/** The most characters of a message. */
export const most = 2_000

const closing = `\n${fence}`

/** Where to cut a line that is too long: behind a space of its second half, never within a character. */
const cutOf = (line: string, room: number): number => {
  const space = line.lastIndexOf(" ", room - 1) + 1
  if (space > room / 2) return space
  const before = line.charCodeAt(room - 1)
  return before >= 0xd800 && before <= 0xdbff ? room - 1 : room
}

const rendered = ({ fence: opening, lines }: Unit): string =>
  opening === undefined ? lines.join("\n") : `${[opening, ...lines].join("\n")}${closing}`

/** Fills messages one after the other. */
class Messages {
  readonly done: Array<string> = []
  #text = ""
  #fence: string | undefined

  readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  get #room(): number {
    return this.limit - this.#text.length - (this.#fence === undefined ? 0 : closing.length)
  }

  /** Ends the message, and an open block with it. */
  end(): void {
    const text = this.#fence === undefined ? this.#text : this.#text + closing
    if (this.#text.trim() !== "" && this.#text !== this.#fence) this.done.push(text)
    this.#text = this.#fence ?? ""
  }

  /** Adds a unit whole, if it fits into a message. */
  add(unit: Unit): void {
    const text = rendered(unit)
    const gap = this.#text === "" ? "" : unit.isApart ? "\n\n" : "\n"
    if (gap.length + text.length <= this.#room) {
      this.#text += gap + text
      return
    }
    if (text.length <= this.limit) {
      this.end()
      this.#text = text
      return
    }
    this.#open(unit, gap)
    for (const line of unit.lines) this.#line(line)
    this.#close()
  }

  #open({ fence: opening }: Unit, gap: string): void {
    if (opening === undefined) {
      if (gap.length > 1) this.#text += "\n"
      return
    }
    if (gap.length + opening.length + closing.length + 40 > this.#room) this.end()
    this.#text += (this.#text === "" ? "" : gap) + opening
    this.#fence = opening
  }

  #close(): void {
    if (this.#fence === undefined) return
    this.#text += closing
    this.#fence = undefined
  }

  #line(line: string): void {
    let rest = line
    if (this.#gap().length + rest.length > this.#room) this.end()
    while (this.#gap().length + rest.length > this.#room) {
      const cut = cutOf(rest, this.#room - this.#gap().length)
      this.#text += this.#gap() + rest.slice(0, cut)
      rest = rest.slice(cut)
      this.end()
    }
    this.#text += this.#gap() + rest
  }

  #gap(): string {
    return this.#text === "" ? "" : "\n"
  }
}

/** The messages that show the text; none for a text without a visible character. */
export const split = (text: string, limit = most): ReadonlyArray<string> => {
  const messages = new Messages(limit)
  for (const unit of units(text)) messages.add(unit)
  messages.end()
  return messages.done
}

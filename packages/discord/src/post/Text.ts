/** Texts of sessions for publication: without secrets, at most 2,000 characters a message. Pure. Spec: DI-20..DI-25. */
import { redactSecrets } from "@daybook/log/support/Redaction"
import { cutAt } from "@daybook/log/support/Text"

// Reads a text as paragraphs and blocks of code, whose fences become three backticks, the only ones that Discord knows.

/** A paragraph, or the lines of a block of code. */
export interface Unit {
  readonly lines: ReadonlyArray<string>
  /** The line that opens the block; absent for a paragraph. */
  readonly fence?: string
  /** Whether an empty line precedes it. */
  readonly isApart: boolean
}

const fence = "```"
const zeroWidth = "\u200b"

type Opening = { readonly marker: string; readonly info: string }

const opening = (line: string): Opening | undefined => {
  const [, marker, info = ""] = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/.exec(line) ?? []
  if (marker === undefined || (marker.startsWith("`") && info.includes("`"))) return undefined
  return { marker, info: /^[\w+#.-]{1,32}/.exec(info.trim())?.[0] ?? "" }
}

const closes = (line: string, { marker }: Opening): boolean => {
  const [, closing = ""] = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line) ?? []
  return closing.startsWith(marker.charAt(0)) && closing.length >= marker.length
}

/** A line without a fence in it: Discord would pair it with any other. */
const inside = (line: string): string => line.replaceAll(/`(?=``)/g, `\`${zeroWidth}`)

/** The paragraphs and blocks of a text. A block that is not closed ends with the text. */
const units = (text: string): ReadonlyArray<Unit> => {
  const found: Array<Unit> = []
  let lines: Array<string> = []
  let open: Opening | undefined
  let isApart = false
  const end = () => {
    if (lines.length > 0 || open !== undefined) {
      found.push({ lines, isApart, ...(open === undefined ? {} : { fence: fence + open.info }) })
      isApart = false
    }
    lines = []
    open = undefined
  }
  for (const line of text.split("\n")) {
    if (open !== undefined) {
      if (closes(line, open)) end()
      else lines.push(inside(line))
      continue
    }
    const begun = opening(line)
    if (begun !== undefined) {
      end()
      open = begun
    } else if (line.trim() === "") {
      end()
      isApart = true
    } else lines.push(inside(line))
  }
  end()
  return found
}

// Splits a text into messages of at most 2,000 characters, at paragraphs if it can, and closes and reopens a block that
// is cut.

/** The most characters of a message. */
export const most = 2_000

const closing = `\n${fence}`

/** Where to cut a line that is too long: behind a space of its second half, never within a character. */
const cutOf = (line: string, room: number): number => {
  const space = line.lastIndexOf(" ", room - 1) + 1
  return space > room / 2 ? space : cutAt(line, room)
}

const rendered = ({ fence: opening, lines }: Unit): string =>
  opening === undefined ? lines.join("\n") : `${[opening, ...lines].join("\n")}${closing}`

/** Fills one message after another. */
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

// Prepares texts of sessions for publication: without secrets and control characters.

/** Discord drops some control characters; without them a message comes back as it was sent. */
const controls = /(?![\t\n])[\p{Cc}\u2028\u2029\ufeff]/gu

/** A half of a character, which no JSON of Discord can hold. */
const halves = /\p{Surrogate}/gu

/** A whole text. `known` are the values of secrets. */
export const publishable = (text: string, known: ReadonlyArray<string>): string =>
  redactSecrets(text.replaceAll("\r\n", "\n").replaceAll(halves, "\ufffd"), known).replaceAll(controls, "")

const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY/

/** The part of a growing text that no later character can turn into a secret: whole lines, and no open key. */
export const publishableSoFar = (text: string, known: ReadonlyArray<string>): string => {
  const lines = text.slice(0, text.lastIndexOf("\n") + 1)
  const key = lines.search(privateKey)
  const isOpen = key >= 0 && !/-----END [A-Z ]*PRIVATE KEY/.test(lines.slice(key))
  return publishable(isOpen ? lines.slice(0, key) : lines, known)
}

/** At most so many characters, and no half of one. */
export const clip = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`

/** One line of at most so many characters, without Markdown. */
export const line = (text: string, most: number): string =>
  clip(text.replaceAll(/\s+/g, " ").replaceAll("`", "'").trim(), most)

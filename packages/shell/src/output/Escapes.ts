/** Bytes of a terminal to plain text: decoded across chunks, without terminal sequences. Spec: SL-30..SL-33. */
import { isUtf8 } from "node:buffer"

// Decodes one stream as UTF-8 across chunk borders; other bytes become U+FFFD, except the 8-bit forms of terminal
// sequences.

/** The bytes at the end that begin a character which is not complete. */
const incomplete = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
    if (byte < 0x80) return 0
  }
  return 0
}

/** The bytes that begin or end a sequence in its 8-bit form: DCS, CSI, ST, OSC. */
const introducers = [0x90, 0x9b, 0x9c, 0x9d]

/** One for all streams: it keeps nothing between calls, and takes longer to make than a short output to decode. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Decodes bytes that are not all UTF-8. */
class Damaged {
  /** The byte before belongs to a broken character, and so may the next. */
  private broken = false

  whole(): void {
    this.broken = false
  }

  /** An introducer that stands alone cannot be UTF-8, so its meaning is certain. */
  text(bytes: Uint8Array): string {
    let text = ""
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
      if (byte < 0x80 || (length > 1 && isUtf8(bytes.subarray(at, at + length)))) {
        at += length - 1
        this.broken = false
      } else if (!this.broken && introducers.includes(byte)) {
        text += decoder.decode(bytes.subarray(from, at)) + String.fromCharCode(byte)
        from = at + 1
      } else this.broken = true
    }
    return text + decoder.decode(bytes.subarray(from))
  }
}

export const makeUtf8Text = () => {
  const damaged = new Damaged()
  let held: Uint8Array = new Uint8Array(0)
  const decoded = (bytes: Uint8Array): string => {
    if (!isUtf8(bytes)) return damaged.text(bytes)
    if (bytes.length > 0) damaged.whole()
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  }
  return {
    /** The complete characters so far. Keeps at most three bytes back. */
    add: (bytes: Uint8Array) => {
      const all = held.length === 0 ? bytes : Buffer.concat([held, bytes])
      const kept = incomplete(all)
      held = all.slice(all.length - kept)
      return decoded(all.subarray(0, all.length - kept))
    },
    /** What an incomplete character at the end becomes. */
    end: () => {
      const rest = decoded(held)
      held = new Uint8Array(0)
      return rest
    }
  }
}

// Removes terminal sequences and control characters from a stream, however the stream is cut into chunks.

export interface Escapes {
  /** The complete lines so far. Keeps back the current line, up to `longestLine`. */
  readonly add: (text: string) => string
  readonly end: () => string
}

/** A carriage return cannot take back more than this many characters; it then ends the line. */
export const longestLine = 65_536

/** A control string ends here at the latest, so that one without an end does not hide all that follows. */
export const longestString = 65_536

/** Parameters of a CSI sequence. */
const longestParameters = 256

/** Control characters except newline and tab, DEL, and the 8-bit forms. */
const control = /[^\P{Cc}\n\t]/gu

/** Complete CSI sequences, as colours are, and control characters other than these and carriage returns. */
const csi = `${String.fromCharCode(0x1b)}\\[[0-?]{0,128}[ -/]{0,16}[@-~]`
const colours = new RegExp(csi, "g")
const otherControl = new RegExp(`(?=[^\\P{Cc}\\n\\t\\r])(?!${csi})`, "u")

type State = "text" | "escape" | "csi" | "line string" | "string" | "string escape"

const [escape, bell, cancel, substitute, newline, carriageReturn] = [0x1b, 0x07, 0x18, 0x1a, 0x0a, 0x0d]

/** The state after an 8-bit control, or after the 7-bit form's second character plus 64. */
const introduced = (code: number): State | undefined => {
  switch (code) {
    case 0x9b:
      return "csi"
    case 0x9d:
      return "line string"
    case 0x90: // DCS
    case 0x98: // SOS
    case 0x9e: // PM
    case 0x9f: // APC
      return "string"
    default:
      return undefined
  }
}

/** Lines with restarts. Holds the current line back because a carriage return can still replace it. */
class Lines {
  private held = ""
  /** Characters of the current line, also those released because the line is too long. */
  private length = 0
  private returned = false
  out = ""

  /** Text without control characters except newline and tab. */
  text(text: string): void {
    if (text === "") return
    if (this.returned) this.restart(text.charCodeAt(0) === newline)
    const last = text.lastIndexOf("\n") + 1
    if (last > 0) {
      this.out += this.held + text.slice(0, last)
      this.held = ""
      this.length = 0
    }
    this.held += text.slice(last)
    this.length += text.length - last
    if (this.length > longestLine) this.release()
  }

  carriageReturn(): void {
    this.returned = true
  }

  release(): void {
    this.out += this.held
    this.held = ""
  }

  private restart(ended: boolean): void {
    this.returned = false
    // A newline after carriage returns ends the line as it is.
    if (ended) return
    if (this.length > longestLine) this.out += "\n"
    this.held = ""
    this.length = 0
  }
}

/** `make` of one stream. */
export const makeEscapes = (): Escapes => {
  const lines = new Lines()
  let state: State = "text"
  /** Characters of the current sequence. */
  let length = 0

  const enter = (next: State) => {
    state = next
    length = 0
  }

  /** A control character outside a string. */
  const execute = (code: number): void => {
    if (code === escape) enter("escape")
    else if (code === carriageReturn) lines.carriageReturn()
    else if (code === newline || code === 0x09) lines.text(String.fromCharCode(code))
    else if (code === cancel || code === substitute) enter("text")
    else if (code >= 0x80) enter(introduced(code) ?? "text")
  }

  const isControl = (code: number) => code < 0x20 || (code >= 0x7f && code <= 0x9f)

  /** Takes one character within a sequence; false if the character belongs to the text after it. */
  const step = (code: number): boolean => {
    switch (state) {
      case "escape":
        if (isControl(code)) execute(code)
        else if (code >= 0x20 && code <= 0x2f && length++ < longestParameters) return true
        else if (code >= 0x80) return (enter("text"), false)
        else enter((length === 0 ? introduced(code + 0x40) : undefined) ?? "text")
        return true
      case "csi":
        if (isControl(code)) execute(code)
        else if (code >= 0x80 || ++length > longestParameters) return (enter("text"), false)
        else if (code >= 0x40) enter("text")
        return true
      case "line string":
      case "string":
        // An operating system command is one line; a newline means that its end is missing.
        if (state === "line string" && code === newline) return (enter("text"), false)
        if (state === "line string" && code === bell) enter("text")
        else if (code === escape) state = "string escape"
        else if (code === 0x9c || code === cancel || code === substitute) enter("text")
        else if (code >= 0x80 && code <= 0x9f) execute(code)
        else if (++length >= longestString) enter("text")
        return true
      case "string escape":
        if (code === 0x5c) return (enter("text"), true)
        // Another sequence cancels the string.
        return (enter("escape"), step(code))
      case "text":
        return false
    }
  }

  const add = (given: string): string => {
    control.lastIndex = 0
    const isPlain = state === "text" && !control.test(given)
    // Most output has no other sequences than colours: one replacement is many times faster than steps.
    const hasColours = state === "text" && !isPlain && !otherControl.test(given)
    const text = hasColours ? given.replaceAll(colours, "") : given
    let at = 0
    if (isPlain) {
      lines.text(text)
      at = text.length
    }
    while (at < text.length) {
      if (state !== "text") {
        if (step(text.charCodeAt(at))) at++
        continue
      }
      control.lastIndex = at
      const found = control.exec(text)
      const end = found?.index ?? text.length
      lines.text(at === 0 && end === text.length ? text : text.slice(at, end))
      if (found !== null) execute(text.charCodeAt(end))
      at = end + 1
    }
    const { out } = lines
    lines.out = ""
    return out
  }

  return {
    add,
    end: () => {
      lines.release()
      const { out } = lines
      lines.out = ""
      enter("text")
      return out
    }
  }
}

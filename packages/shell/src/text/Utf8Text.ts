/**
 * Decodes the bytes of one stream as UTF-8, across any chunk border. Bytes that are not UTF-8 become U+FFFD, except the
 * 8-bit forms of terminal sequences, which `Escapes.ts` removes. Spec: SL-30.
 */
import { isUtf8 } from "node:buffer"

export interface Utf8Text {
  /** The complete characters so far. Keeps at most three bytes back. */
  readonly add: (bytes: Uint8Array) => string
  /** What an incomplete character at the end becomes. */
  readonly end: () => string
}

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

export const make = (): Utf8Text => {
  const damaged = new Damaged()
  let held: Uint8Array = new Uint8Array(0)
  const decoded = (bytes: Uint8Array): string => {
    if (!isUtf8(bytes)) return damaged.text(bytes)
    if (bytes.length > 0) damaged.whole()
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  }
  return {
    add: (bytes) => {
      const all = held.length === 0 ? bytes : Buffer.concat([held, bytes])
      const kept = incomplete(all)
      held = all.slice(all.length - kept)
      return decoded(all.subarray(0, all.length - kept))
    },
    end: () => {
      const rest = decoded(held)
      held = new Uint8Array(0)
      return rest
    }
  }
}

/** Blank texts, and where a text may be cut. Lengths are in UTF-16 code units. Pure. */

// A text as an array of UTF-16 code units, which a loop reads several times as fast as a joined string.

const shortest = 65_536
const shortText = 128

/** A reader's own array. */
export type CodeUnits = (text: string) => Uint16Array

/** Makes an array for the code units of one text after another. The units of a text are valid until the next text. */
export const makeCodeUnits = (): CodeUnits => {
  let bytes = Buffer.alloc(2 * shortest)
  let units = new Uint16Array(bytes.buffer, bytes.byteOffset, shortest)
  return (text) => {
    if (units.length < text.length) {
      bytes = Buffer.alloc(2 * text.length)
      units = new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
    }
    const view = units
    // The call of the copy takes longer than a short text.
    if (text.length <= shortText) for (let at = 0; at < text.length; at++) view[at] = text.charCodeAt(at)
    else bytes.write(text, 0, "utf16le")
    if (units.length > 16 * shortest) {
      // One huge text does not keep its memory.
      bytes = Buffer.alloc(2 * shortest)
      units = new Uint16Array(bytes.buffer, bytes.byteOffset, shortest)
    }
    return view
  }
}

/** The code units of the text, from index 0. Valid until the next call. */
export const codeUnits: CodeUnits = makeCodeUnits()

const visible = /[^\s\p{Z}\p{Cc}\p{Cf}]/u

/** Whether a text has no visible character: providers reject such a text as empty. */
export const isBlank = (text: string): boolean => !visible.test(text)

/** The length, or one less where it would split a surrogate pair. */
export const cutAt = (text: string, length: number): number => {
  const last = text.charCodeAt(length - 1)
  return length > 0 && length < text.length && last >= 0xd800 && last <= 0xdbff ? length - 1 : length
}

/** The first code units of a text, without half of a surrogate pair at the end. */
export const beginningOf = (text: string, length: number): string => text.slice(0, cutAt(text, length))

/** The last code units of a text, without half of a surrogate pair at the beginning. */
export const endOf = (text: string, length: number): string => {
  const from = Math.max(0, text.length - length)
  const first = text.charCodeAt(from)
  return text.slice(from > 0 && first >= 0xdc00 && first <= 0xdfff ? from + 1 : from)
}

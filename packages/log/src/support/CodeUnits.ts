/**
 * Views a text as an array of its UTF-16 code units, for loops over every character: an array is read several times as
 * fast as a string that was sliced or joined. Pure to its callers. Apart from `Text.ts`, which pages of a browser use.
 */

const shortest = 65_536
const shortText = 128

/** A reader's own array. */
export type CodeUnits = (text: string) => Uint16Array

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

/**
 * Finds JSON objects in the bytes of a damaged line. Braces, quotes and backslashes are single bytes in UTF-8, so no text
 * is decoded. Every scan ends and reads each byte once. Spec: FM-4 in specs/formats.md.
 */

const quote = 0x22
const backslash = 0x5c
const open = 0x7b
const close = 0x7d

/** A part of a buffer: from the byte `from` up to the byte `to`, exclusive. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Where the object that starts at `from` ends, exclusive; -1 if it does not end before `to`. */
export const endOfObject = (bytes: Uint8Array, { from, to }: Range): number => {
  let depth = 0
  let inText = false
  for (let at = from; at < to; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === backslash) at++
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    else if (byte === open) depth++
    else if (byte === close && --depth === 0) return at + 1
  }
  return -1
}

/** In valid JSON a quote is part of a text exactly if an odd number of backslashes precedes it. */
const isEscaped = (bytes: Uint8Array, from: number, at: number): boolean => {
  let before = at
  while (before > from && bytes[before - 1] === backslash) before--
  return (at - before) % 2 === 1
}

/** Where the object that ends with the byte before `to` starts; -1 if it does not start at or after `from`. */
export const startOfObject = (bytes: Uint8Array, { from, to }: Range): number => {
  let depth = 0
  let inText = false
  for (let at = to - 1; at >= from; at--) {
    const byte = bytes[at]
    if (byte === quote) {
      // A run of backslashes is read once per quote that follows it, so at most twice.
      if (!inText || !isEscaped(bytes, from, at)) inText = !inText
    } else if (inText) continue
    else if (byte === close) depth++
    else if (byte === open && --depth === 0) return at
  }
  return -1
}

/** How many bytes at `at` separate records: white space, NUL, byte order mark, U+2028 and U+2029. 0: a record starts. */
export const separatorAt = (bytes: Uint8Array, at: number): number => {
  const byte = bytes[at] ?? -1
  if (byte === 0x20 || byte === 0 || (byte >= 0x09 && byte <= 0x0d)) return 1
  const [second, third] = [bytes[at + 1], bytes[at + 2]]
  if (byte === 0xef && second === 0xbb && third === 0xbf) return 3
  return byte === 0xe2 && second === 0x80 && (third === 0xa8 || third === 0xa9) ? 3 : 0
}

/** The part without separators at its start and end. */
export const trimmed = (bytes: Uint8Array, { from, to }: Range): Range => {
  let [start, end] = [from, to]
  for (let width = 1; start < end && width > 0; start += width) width = separatorAt(bytes, start)
  start = Math.min(start, end)
  for (;;) {
    const width = [1, 3].find((count) => end - count >= start && separatorAt(bytes, end - count) === count)
    if (width === undefined) return { from: start, to: end }
    end -= width
  }
}

/** Truncates text by lines and bytes: on line boundaries, and inside a line on UTF-8 boundaries. Pure. Spec: TO-21. */

export interface TextLimits {
  readonly lines: number
  readonly bytes: number
}

export interface TextCut {
  readonly shown: string
  /** Lines shown, including one that is truncated. */
  readonly lines: number
  readonly bytes: number
}

/** Counts lines; a final newline does not begin another line. */
export const countLines = (text: string): number => {
  let lines = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++
  return text === "" || text.endsWith("\n") ? lines : lines + 1
}

/** The longest prefix of at most `limit` bytes that ends between two characters. */
export const utf8Prefix = (bytes: Uint8Array, limit: number): Uint8Array => {
  if (bytes.length <= limit) return bytes
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

/** The first lines of a text that fit. A first line longer than the limit is truncated. */
export const cutHead = (text: string, limits: TextLimits): TextCut => {
  let [end, lines, bytes] = [0, 0, 0]
  while (lines < limits.lines && end < text.length) {
    const newline = text.indexOf("\n", end)
    const next = newline < 0 ? text.length : newline + 1
    const size = Buffer.byteLength(text.slice(end, next))
    if (bytes + size > limits.bytes) break
    ;[end, lines, bytes] = [next, lines + 1, bytes + size]
  }
  if (lines > 0 || text === "" || limits.lines < 1) return { shown: text.slice(0, end), lines, bytes }
  // A UTF-16 code unit takes at least one byte in UTF-8, so this slice contains the prefix.
  const prefix = utf8Prefix(Buffer.from(text.slice(0, limits.bytes + 1)), limits.bytes)
  return { shown: Buffer.from(prefix).toString(), lines: prefix.length > 0 ? 1 : 0, bytes: prefix.length }
}

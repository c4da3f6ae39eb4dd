/** Cutting text by lines and bytes, on line boundaries, and inside a line on UTF-8 boundaries. Pure. Spec: TO-21. */

export interface TextLimits {
  readonly lines: number
  readonly bytes: number
}

export interface TextCut {
  readonly shown: string
  /** Whole lines shown; a line that is cut inside counts. */
  readonly lines: number
  readonly bytes: number
}

/** Lines of a text; a final newline ends the last line and opens no other. */
export const countLines = (text: string): number => {
  let lines = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++
  return text === "" || text.endsWith("\n") ? lines : lines + 1
}

/** The longest prefix of `bytes` of at most `limit` that ends between two characters. */
export const utf8Prefix = (bytes: Uint8Array, limit: number): Uint8Array => {
  if (bytes.length <= limit) return bytes
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

/** The first lines of a text that fit. A first line longer than the limit is cut inside. */
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
  // One character is at most four bytes and at least one, so this much text holds the prefix.
  const prefix = utf8Prefix(Buffer.from(text.slice(0, limits.bytes + 1)), limits.bytes)
  return { shown: Buffer.from(prefix).toString(), lines: prefix.length > 0 ? 1 : 0, bytes: prefix.length }
}

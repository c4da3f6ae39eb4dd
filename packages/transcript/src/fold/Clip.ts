/** Limits the text of a row. Pure. Spec: FI-104 in specs/files.md. */

/** UTF-8 bytes of text in one row, at most. */
export const textLimit = 256 * 1024

/** The longest beginning of the text that fits the limit, cut between code points. */
export const clip = (text: string, limit: number = textLimit): string => {
  // A code unit takes at most three bytes.
  if (text.length * 3 <= limit) return text
  let bytes = 0
  let end = 0
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
    if (bytes > limit) return text.slice(0, end)
    end += character.length
  }
  return text
}

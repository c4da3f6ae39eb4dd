/** Blank texts, and where a text may be cut. Lengths are in UTF-16 code units. Pure. */

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

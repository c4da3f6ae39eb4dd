/** Prepares texts for the index's tokenizer. The same steps apply to indexed texts and to queries. Pure. Spec: SE-12. */

/** Scripts that are written without spaces between words. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu

/** Ends a word and shows nothing: a zero-width space. */
const border = "\u200b"

/** Makes each character of these scripts a word: a phrase of them then finds any part of a sentence. */
export const separated = (text: string): string => text.replace(unspaced, `${border}$&${border}`)

/** Removes what `separated` inserted. */
export const joined = (text: string): string => text.replaceAll(border, "")

/** Whether the text has a character that the tokenizer keeps. */
export const hasWord = (text: string): boolean => /[\p{L}\p{N}\p{Co}]/u.test(text)

/** A string of the index's query language: one word, or a phrase of several. */
export const quoted = (text: string): string => `"${separated(text).replaceAll("\0", " ").replaceAll('"', '""')}"`

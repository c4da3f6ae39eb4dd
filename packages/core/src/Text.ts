/** What counts as an empty text. */

const visible = /[^\s\p{Z}\p{Cc}\p{Cf}]/u

/** Whether a text has no visible character: providers refuse such a text as an empty one. */
export const isBlank = (text: string): boolean => !visible.test(text)

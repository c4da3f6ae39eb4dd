/** Defines blank texts. */

const visible = /[^\s\p{Z}\p{Cc}\p{Cf}]/u

/** Whether a text has no visible character: providers reject such a text as empty. */
export const isBlank = (text: string): boolean => !visible.test(text)

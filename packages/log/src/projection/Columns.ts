/** Converts values to the contents of columns. */

/** The content of a JSON column. */
export const json = (value: unknown): string => JSON.stringify(value)

/** Text columns are UTF-8, which cannot encode a lone surrogate: it becomes U+FFFD here, not in the driver. */
export const plain = (value: string): string => value.replace(/\p{Surrogate}/gu, "\uFFFD")

/** An absent text is null. */
export const plainOrNull = (value: string | undefined): string | null => (value === undefined ? null : plain(value))

/** Paths as lines of a result. Pure. */

const breaksLine = /\p{Cc}|["\\]/u

/** The path as it is, or quoted as JSON when it holds a newline or anything else that would be misread. */
export const shownPath = (name: string): string => (breaksLine.test(name) ? JSON.stringify(name) : name)

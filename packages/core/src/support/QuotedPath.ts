/** Formats paths as lines of a result. Pure. */

const breaksLine = /\p{Cc}|["\\]/u

/** The path unchanged, or as a JSON string if it contains a newline or anything else that could be misread. */
export const quotedPath = (name: string): string => (breaksLine.test(name) ? JSON.stringify(name) : name)

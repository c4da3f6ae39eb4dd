/** Limits on data from the network or a model. Limits of a single module are defined there. */

const mib = 1024 * 1024

/** Maximum number of redirects per request (LM-3). */
export const maxRedirects = 20

/** Maximum bytes of a body other than an event stream: a provider's answer, an MCP server's message (LM-10, MC-4). */
export const maxBodyBytes = { provider: 8 * mib, mcp: 10 * mib } as const

/** Maximum bytes of one server-sent event (LM-10). */
export const maxEventBytes = { provider: 8 * mib, mcp: maxBodyBytes.mcp } as const

/** Maximum bytes of a provider's whole event stream, whatever it contains (LM-10). */
export const maxStreamBytes = 512 * mib

/** Maximum bytes read from a provider's error response (LM-11). */
export const maxErrorBytes = 256 * 1024

/** Maximum UTF-16 code units of one model answer: text, reasoning and call inputs together (LM-12). */
export const maxAnswerLength = 128 * mib

/** Maximum UTF-16 code units of one text of an answer (LM-12): 30 times what current models can send. */
export const maxTextLength = 16 * mib

/** Maximum UTF-16 code units of one reasoning block, and of one call's input (LM-12). */
export const maxBlockLength = 8 * mib

/** Maximum number of texts, reasoning blocks and calls of one answer (LM-12). */
export const maxAnswerBlocks = 1_024

/** Maximum characters, and runs of `*`, of a glob or a `.gitignore` rule (LM-20). */
export const maxGlobLength = 1_000
export const maxGlobStars = 20

/** Maximum number of alternatives that a glob's braces expand to (LM-20). */
export const maxGlobAlternatives = 100

/** Maximum bytes and rules of a `.gitignore` (LM-21). */
export const maxIgnoreBytes = 256 * 1024
export const maxIgnoreRules = 1_000

/** Maximum characters of a regular expression in a JSON Schema (LM-23). */
export const maxExpressionLength = 1_000

/** Maximum nesting of objects and lists in a call's arguments (LM-31). */
export const maxInputDepth = 100

/** Maximum values in a call's arguments, objects and lists included (LM-32). */
export const maxInputValues = 50_000

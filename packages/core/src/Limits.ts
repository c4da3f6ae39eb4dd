/**
 * The limits on what comes from outside over the network or from a model, stated once. Those of a single module (a tool's
 * page, a picture) stand there; specs/limits.md lists all of them.
 */

const mib = 1024 * 1024

/** Redirects that one request may follow (LM-3). */
export const maxRedirects = 20

/** Bytes of a body that is not an event stream: an answer of a provider or a message of an MCP server (LM-10, MC-4). */
export const maxBodyBytes = { provider: 8 * mib, mcp: 10 * mib } as const

/** Bytes of one server-sent event (LM-10). */
export const maxEventBytes = { provider: 8 * mib, mcp: maxBodyBytes.mcp } as const

/** Bytes of a provider's whole event stream, whatever is in it (LM-10). */
export const maxStreamBytes = 512 * mib

/** Bytes that are read of a provider's failed answer (LM-11). */
export const maxErrorBytes = 256 * 1024

/** UTF-16 code units that a model may send in one answer: text, reasoning and inputs of calls together (LM-12). */
export const maxAnswerLength = 128 * mib

/** UTF-16 code units of one text of an answer (LM-12): 30 times what models can send today. */
export const maxTextLength = 16 * mib

/** UTF-16 code units of one block of reasoning, and of the input of one call (LM-12). */
export const maxBlockLength = 8 * mib

/** Texts, blocks of reasoning and calls of one answer (LM-12). */
export const maxAnswerBlocks = 1_024

/** Characters, and runs of `*`, of a glob or a rule of a `.gitignore` (LM-20). */
export const maxGlobLength = 1_000
export const maxGlobStars = 20

/** What the braces of a glob may stand for, written out (LM-20). */
export const maxGlobAlternatives = 100

/** Bytes of a `.gitignore`, and its rules (LM-21). */
export const maxIgnoreBytes = 256 * 1024
export const maxIgnoreRules = 1_000

/** Characters of a regular expression in a JSON Schema (LM-23). */
export const maxExpressionLength = 1_000

/** Levels of objects and lists in the arguments of a call (LM-31). */
export const maxInputDepth = 100

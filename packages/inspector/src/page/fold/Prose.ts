/** Reads Markdown as tokens, if they can be drawn. Pure. Spec: IP-18, IP-30 in specs/http.md. */
import { Lexer, type Token } from "marked"

/** Characters of the longest text that is read as Markdown. */
const longest = 200_000
/** Quotes and lists in one another: the browser draws each level on its stack. */
const deepest = 100
/** A line that begins more quotes and lists than that. Reading it would take seconds. */
const deepLine = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){101}/m

const inside = (token: Token): ReadonlyArray<Token> => {
  const items: ReadonlyArray<Token> = token.type === "list" ? token.items : []
  return [...items, ...(("tokens" in token ? token.tokens : undefined) ?? [])]
}

const isFlat = (tokens: ReadonlyArray<Token>, levels: number): boolean =>
  tokens.length === 0 || (levels > 0 && tokens.every((each) => isFlat(inside(each), levels - 1)))

/** The tokens; undefined for a text that is to be shown as it is, because it is too long or nests too deeply. */
export const proseOf = (text: string): ReadonlyArray<Token> | undefined => {
  if (text.length > longest || deepLine.test(text)) return undefined
  try {
    const tokens = Lexer.lex(text, { gfm: true, breaks: true })
    return isFlat(tokens, deepest) ? tokens : undefined
  } catch {
    // Thousands of levels exhaust the stack of the reader too.
    return undefined
  }
}

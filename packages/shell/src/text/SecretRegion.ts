/**
 * Finds the lines that have to be searched together around a hint of a secret: the line, a private key's lines, and lines
 * that may continue a broken token. Depends on the text only, not on how it was cut into chunks. Pure. Spec: SL-36.
 */
import type { SecretKind } from "@daybook/log/support/Redaction"
import type { Hint } from "@daybook/log/support/SecretScan"

/** A private key has at most this many characters before its last line. */
const longestKey = 65_536

/** The last line of a private key is shorter than this. */
const longestKeyEnd = 80

/** An index that does not cut a surrogate pair. */
export const wholeIndex = (text: string, index: number): number => {
  const code = text.charCodeAt(index - 1)
  return index > 0 && index < text.length && code >= 0xd800 && code <= 0xdbff ? index - 1 : index
}

/** A private or public key, or a certificate. The text of public ones is not searched for random text. */
const keyBegin = /-----BEGIN [A-Z0-9 ]{1,60}-----/
const keyBody = /(?:[A-Za-z0-9+/=\s:,.()]|-(?!----))*(?:(-----END [A-Z0-9 ]{0,60}-----))?/y

/** The end of a key's body that continues at the index. `open`: the key may continue after the text. */
export const bodyEnd = (text: string, index: number): { readonly at: number; readonly open: boolean } => {
  keyBody.lastIndex = index
  const match = keyBody.exec(text)
  const at = index + (match?.[0].length ?? 0)
  return { at, open: match?.[1] === undefined && text.length - at < longestKeyEnd }
}

const token = /^[\w+/=.*~-]*/
const header = /^[^\r\n"'<>\\]*/

/** The end of any other secret that continues at the beginning of the text. */
export const continuation = (kind: SecretKind, text: string): { readonly at: number; readonly open: boolean } => {
  const at = (kind === "header" ? header : token).exec(text)?.[0].length ?? 0
  return { at, open: at === text.length }
}

const isSpace = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d)

/** The index after the last space before the index, or 0. */
export const wordStart = (text: string, index: number): number => {
  let at = index
  while (at > 0 && !isSpace(text.charCodeAt(at - 1))) at--
  return at
}

/** Where the last word of a line begins. A backslash after it continues the line. */
const lastWord = (line: string): number => wordStart(line, line.replace(/[^\S\n]*\\?\r?\n$/, "").length)

export interface RegionOptions {
  /** Characters that are searched together, at most, if there is no private key. */
  readonly longest: number
  /** Finds what a line break may cut. */
  readonly broken: (text: string, from: number) => Hint | undefined
}

/**
 * The end of the lines from `start` that have to be searched together; undefined if more text is needed. An end that is
 * not the end of a line is a limit.
 */
export const endOfLines = (
  text: string,
  start: number,
  hint: Hint,
  { broken, longest }: RegionOptions
): number | undefined => {
  let limit = start + longest
  let [from, reach] = [start, hint.at + hint.length]
  let continues = false
  for (;;) {
    const end = text.indexOf("\n", reach) + 1
    if (end === 0 || end > limit) return text.length >= limit ? limit : undefined
    const line = text.slice(from, end)
    const key = keyBegin.exec(line)
    if (key !== null) {
      const begin = from + key.index
      const body = bodyEnd(text, begin + key[0].length)
      limit = begin + longestKey
      if (body.open && body.at < limit) return text.length >= limit ? limit : undefined
      limit += longest
      from = body.at
      reach = Math.max(reach, body.at)
      continue
    }
    const last = lastWord(line)
    const isJoined = (continues && line.slice(0, last).trim() === "") || broken(line, last) !== undefined
    if (!isJoined) return end
    continues = true
    from = end
    reach = end
  }
}

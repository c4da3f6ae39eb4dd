/**
 * Finds the lines that have to be searched together around a hint of a secret: the line, the lines of a private key, of a
 * vault or of a value in quotes, and lines that may continue a broken token. Depends on the text only, not on how it was
 * cut into chunks. Pure. Spec: SL-36, SL-760.
 */
import type { SecretKind } from "@daybook/log/support/Redaction"
import { closing, openQuote } from "@daybook/log/support/OpenQuote"
import type { Hint } from "@daybook/log/support/SecretScan"

/** A private key has at most this many characters before its last line. */
const longestKey = 65_536

/** The last line of a private key is shorter than this. */
const longestKeyEnd = 80

/** Lines that belong together. */
interface Block {
  /** The kind of secrets of which the whole body is a part. */
  readonly kind?: SecretKind
  readonly begin: RegExp
  readonly body: RegExp
  /** It ends with the line before the first one of another form; else with a last line of its own. */
  readonly wholeLines: boolean
}

const blocks: ReadonlyArray<Block> = [
  {
    // A private or public key, or a certificate. The text of public ones is not searched for random text.
    kind: "private key",
    begin: /-----BEGIN [A-Z0-9 ]{1,60}-----/,
    body: /(?:[A-Za-z0-9+/=\s:,.()]|-(?!----))*(?:(-----END [A-Z0-9 ]{0,60}-----))?/y,
    wholeLines: false
  },
  {
    kind: "vault",
    begin: /\$ANSIBLE_VAULT;[^\r\n]*\r?\n/,
    body: /(?:[-+>|]?[ \t]*[0-9a-f]{4,}[ \t]*\r?\n)*/y,
    wholeLines: true
  },
  {
    // The key of a file of PuTTY.
    kind: "private key",
    begin: /Private-Lines:[ \t]\d{1,4}[ \t]*\r?\n/,
    body: /(?:[A-Za-z0-9+/=]+\r?\n)*/y,
    wholeLines: true
  },
  {
    // A name, with its value on the next line.
    begin: /(?:name["']?:[^\r\n]*[A-Z]["']?,?|^[ \t]*login[ \t]+\S+)[ \t]*\r?\n/,
    body: /(?:[ \t]*(?:["']?value["']?:|password[ \t])[^\r\n]*\r?\n)?/y,
    wholeLines: true
  }
]
const anyBegin = /-----BEGIN |\$ANSIBLE_VAULT;|Private-Lines:|name["']?:|login[ \t]/

/** `open`: the block may continue after the text. */
type End = { readonly at: number; readonly open: boolean }

const blockEnd = ({ body, wholeLines }: Block, text: string, index: number): End => {
  body.lastIndex = index
  const match = body.exec(text)
  const at = index + (match?.[0].length ?? 0)
  if (wholeLines) return { at, open: !text.includes("\n", at) }
  return { at, open: match?.[1] === undefined && text.length - at < longestKeyEnd }
}

/** The end of a block's body that continues at the index; undefined if secrets of this kind are no blocks. */
export const bodyEnd = (kind: SecretKind, text: string, index: number): End | undefined => {
  const block = blocks.find((each) => each.kind === kind)
  return block === undefined ? undefined : blockEnd(block, text, index)
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
const lastWord = (line: string): number => {
  let end = line.length
  if (line[end - 1] === "\n") end--
  if (line[end - 1] === "\r") end--
  if (line[end - 1] === "\\") end--
  while (end > 0 && isSpace(line.charCodeAt(end - 1))) end--
  return wordStart(line, end)
}

/** Whether the next line has escapes, too: such lines are searched together, which is faster. */
const followedByEscapes = (text: string, at: number, limit: number): boolean => {
  const end = text.indexOf("\n", at) + 1
  if (end === 0 || end > limit) return false
  const slash = text.indexOf("\\", at)
  return slash >= 0 && slash < end
}

export interface RegionOptions {
  /** Characters that are searched together, at most, if there is no private key. */
  readonly longest: number
  /** Finds what a line break may cut. */
  readonly broken: (text: string, from: number) => Hint | undefined
}

/** The end of the lines from `start` that are searched together; undefined if more text is needed. */
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
    const block = anyBegin.test(line) ? blocks.find(({ begin }) => begin.test(line)) : undefined
    const key = block?.begin.exec(line) ?? null
    if (block !== undefined && key !== null) {
      const begin = from + key.index
      const body = blockEnd(block, text, begin + key[0].length)
      limit = begin + longestKey
      if (body.open && body.at < limit) return text.length >= limit ? limit : undefined
      limit += longest
      from = body.at
      reach = Math.max(reach, body.at)
      if (block.wholeLines && body.at < limit) return body.at
      continue
    }
    const quote = openQuote(text, from, end)
    const closed = quote === undefined ? undefined : closing(text, quote)
    if (closed === "open") return text.length >= limit ? limit : undefined
    if (closed !== undefined && closed >= end) {
      from = closed + 1
      reach = closed + 1
      continue
    }
    const last = lastWord(line)
    const isJoined = (continues && line.slice(0, last).trim() === "") || broken(line.slice(last), 0) !== undefined
    if (!isJoined && !followedByEscapes(text, end, limit)) return end
    continues = true
    from = end
    reach = end
  }
}

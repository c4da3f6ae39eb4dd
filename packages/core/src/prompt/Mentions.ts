/**
 * Finds what a text mentions with `@`. Says only where a mention is and how it is written; what it means is decided in
 * `PromptExpander.ts`. Pure, total and linear in the text. Spec: PX-1..PX-4.
 */
import { codeRanges } from "./CodeRanges.ts"

/** Lines, counted from 1, both included. As they were written: not checked against anything. */
export interface LineRange {
  readonly from: number
  readonly to: number
}

export interface Mention {
  /** UTF-16 offsets into the text, the end exclusive. */
  readonly start: number
  readonly end: number
  /** The text between them: the sign, the quotes and the lines included. */
  readonly text: string
  /** What is mentioned, without sign, quotes and lines. */
  readonly target: string
  readonly lines?: LineRange
  /** The same words read as a resource of a server. */
  readonly resource?: { readonly server: string; readonly uri: string }
}

/** A longer word mentions nothing. */
const maximumLength = 4_096

/** What a mention may follow: the start, white space, or something that opens or separates. Not a word: an e-mail. */
const mayPrecede = /[\s([{<"',;:|>*\u2013\u2014]/

/** A path may hold further signs at the start of its folders' names, as scoped packages do. */
const word = /(?:[^\s\p{Cc}@"`<>|,;]|(?<=\/)@)+/uy
const quotedName = /"([^"\p{Cc}]+)"(?:#L\d{1,9}(?:-L?\d{1,9})?|:\d{1,9}(?:-\d{1,9})?)?/uy
const linesAtEnd = /^(.+?)(?:#L(\d{1,9})(?:-L?(\d{1,9}))?|:(\d{1,9})(?:-(\d{1,9})|:\d{1,9})?)$/su
const serverAndUri = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63}):(.+)$/s

const brackets: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" }

const count = (text: string, character: string) => text.split(character).length - 1

/** Without the punctuation of the sentence around it: closing brackets stay where the word opened them. */
const trimmed = (text: string): string => {
  const surplus = new Map(
    Object.entries(brackets).map(([close, open]) => [close, count(text, close) - count(text, open)])
  )
  let end = text.length
  for (; end > 0; end--) {
    const last = text.charAt(end - 1)
    const extra = surplus.get(last)
    if (extra === undefined ? !".,;:!?'*".includes(last) : extra <= 0) break
    if (extra !== undefined) surplus.set(last, extra - 1)
  }
  return text.slice(0, end)
}

/** A name with the lines after it. */
export const splitLines = (name: string): { readonly target: string; readonly lines?: LineRange } => {
  const [, target, hash, hashTo, colon, colonTo] = linesAtEnd.exec(name) ?? []
  const from = hash ?? colon
  if (target === undefined || from === undefined) return { target: name }
  return { target, lines: { from: Number(from), to: Number(hashTo ?? colonTo ?? from) } }
}

const resourceOf = (name: string): Pick<Mention, "resource"> => {
  const [, server, uri] = serverAndUri.exec(name) ?? []
  return server === undefined || uri === undefined || /^\d+(-\d+|:\d+)?$/.test(uri) ? {} : { resource: { server, uri } }
}

/** The mention whose sign is at `at`. */
const mentionAt = (text: string, at: number): Mention | undefined => {
  quotedName.lastIndex = at + 1
  const [whole, quoted] = quotedName.exec(text) ?? []
  if (whole !== undefined && quoted !== undefined) {
    if (whole.length > maximumLength) return undefined
    const end = at + 1 + whole.length
    // A letter in place of the name: what is in the quotes is taken as it is.
    const { lines } = splitLines(`x${whole.slice(quoted.length + 2)}`)
    return {
      start: at,
      end,
      text: text.slice(at, end),
      target: quoted,
      ...(lines === undefined ? {} : { lines }),
      ...resourceOf(quoted)
    }
  }
  word.lastIndex = at + 1
  const [found = ""] = word.exec(text) ?? []
  if (found.length > maximumLength) return undefined
  const name = trimmed(found)
  if (name === "") return undefined
  const end = at + 1 + name.length
  return { start: at, end, text: text.slice(at, end), ...splitLines(name), ...resourceOf(name) }
}

/** The mentions of a text, in order, at most `limit`; none in code, in words, or after a backslash. */
export const findMentions = (text: string, limit = Number.MAX_SAFE_INTEGER): ReadonlyArray<Mention> => {
  const code = codeRanges(text)
  const mentions: Array<Mention> = []
  let block = 0
  for (let at = text.indexOf("@"); at >= 0 && mentions.length < limit; at = text.indexOf("@", at)) {
    while ((code[block]?.[1] ?? Infinity) <= at) block++
    const [start, end] = code[block] ?? [Infinity, Infinity]
    if (start <= at) {
      at = end
      continue
    }
    const mention = at === 0 || mayPrecede.test(text.charAt(at - 1)) ? mentionAt(text, at) : undefined
    if (mention !== undefined) mentions.push(mention)
    at = mention?.end ?? at + 1
  }
  return mentions
}

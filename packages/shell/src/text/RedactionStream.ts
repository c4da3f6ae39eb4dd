/**
 * Redacts a stream of text with the rules of `@daybook/log`, across any chunk border. Lines without a hint of a secret
 * pass at once; around a hint, text waits until the secret's end is certain. `Escapes.ts` runs before, so that no colour
 * code cuts a secret. Spec: SL-34..SL-38.
 */
import * as Redaction from "@daybook/log/support/Redaction"
import * as SecretHints from "@daybook/log/support/SecretHints"
import { bodyEnd, continuation, endOfLines, wholeIndex, wordStart } from "./SecretRegion.ts"

export interface RedactionStream {
  /** The redacted text so far. */
  readonly add: (text: string) => string
  readonly end: () => string
}

/** Characters of an incomplete line that stay back, because a secret may begin in them. */
const longestHeld = 1_024

/** A private key without an end hides at most this many characters. */
const longestUnended = 1_048_576

/** The values as a terminal shows them, and the long lines of values of several lines. */
const shown = (known: ReadonlyArray<string>): ReadonlyArray<string> => {
  const values = known.flatMap((value) => {
    const text = value.replaceAll("\r\n", "\n").trim()
    const lines = text.split("\n").map((line) => line.trim())
    return [text, ...(lines.length > 1 ? lines.filter((line) => line.length >= 16) : [])]
  })
  return [...new Set(values)].filter((value) => value.length >= 4)
}

/** Values that are replaced wherever they occur, prepared for any number of streams. */
export interface Secrets {
  readonly known: ReadonlyArray<string>
  readonly nextHint: (text: string, from: number) => SecretHints.Hint | undefined
  /** Characters after a cut that show whether a secret crosses it. */
  readonly lookahead: number
}

/** Prepares values of four and more characters. */
export const prepare = (secrets: ReadonlyArray<string> = []): Secrets => {
  const known = shown(secrets)
  const lookahead = known.reduce((most, { length }) => Math.max(most, 2 * length), 1_024)
  return { known, nextHint: SecretHints.make(known), lookahead }
}

/** Redacts one text, such as a command, with the rules of streams. */
export const redacted = (text: string, { known, nextHint }: Secrets): string =>
  nextHint(text, 0) === undefined ? text : Redaction.replaced(text, Redaction.find(text, known))

export const make = ({ known, lookahead, nextHint }: Secrets): RedactionStream => {
  const region = { longest: 8 * lookahead, nextHint }
  let pending = ""
  /** A hint in the first line of `pending` that waits for more text. */
  let waiting: SecretHints.Hint | undefined
  /** The secret whose continuation is dropped. */
  let dropping: { readonly kind: Redaction.SecretKind; left: number } | undefined

  /** Drops what continues a secret; false if more of it may come. */
  const drop = (secret: NonNullable<typeof dropping>, final: boolean): boolean => {
    const end = secret.kind === "private key" ? bodyEnd(pending, 0) : continuation(secret.kind, pending)
    pending = pending.slice(end.at)
    secret.left -= end.at
    if (end.open && !final && secret.left > 0) return false
    dropping = undefined
    return true
  }

  /** Redacts the beginning of a region that ends within a line, up to a place that no secret crosses. */
  const cut = (text: string): { readonly redacted: string; readonly at: number } => {
    const found = Redaction.find(text, known)
    const crossing = (at: number) => found.find((each) => each.from < at && at < each.end)
    let at = wordStart(text, text.length - lookahead)
    for (let next = crossing(at); next !== undefined; next = crossing(at)) at = wordStart(text, next.from)
    const last = found.at(-1)
    if (at === 0 && last?.end === text.length) {
      dropping = { kind: last.kind, left: last.kind === "private key" ? longestUnended : Infinity }
      return { redacted: Redaction.replaced(text, found), at: text.length }
    }
    if (at === 0) {
      at = wholeIndex(text, text.length - lookahead)
      for (let next = crossing(at); next !== undefined; next = crossing(at)) at = next.end
    }
    const before = found.filter(({ end }) => end <= at)
    return { redacted: Redaction.replaced(text.slice(0, at), before), at }
  }

  /** Redacts the first region of `pending`; undefined if its end is not there yet. */
  const redactRegion = (hint: SecretHints.Hint, final: boolean): string | undefined => {
    const end = endOfLines(pending, 0, hint, region) ?? (final ? pending.length : undefined)
    if (end === undefined) return undefined
    const text = pending.slice(0, end)
    const whole = text.endsWith("\n") || (final && end === pending.length)
    const { at, redacted } = whole
      ? { at: end, redacted: Redaction.replaced(text, Redaction.find(text, known)) }
      : cut(text)
    pending = pending.slice(at)
    return redacted
  }

  /** The text before the line of the hint; without a hint, the lines that are complete. */
  const pass = (hint: SecretHints.Hint | undefined, final: boolean): string => {
    const last = hint?.at ?? (final ? pending.length : Infinity)
    const line = hint === undefined && final ? pending.length : pending.lastIndexOf("\n", last - 1) + 1
    const held = wholeIndex(pending, Math.min(last, pending.length) - longestHeld)
    const to = Math.max(0, line, held)
    const passed = pending.slice(0, to)
    pending = pending.slice(to)
    if (hint !== undefined) waiting = { at: hint.at - to, length: hint.length }
    return passed
  }

  const drain = (final: boolean): string => {
    let out = ""
    for (;;) {
      if (pending === "") break
      if (dropping !== undefined && !drop(dropping, final)) break
      if (waiting === undefined) out += pass(nextHint(pending, 0), final)
      if (waiting === undefined) break
      const redacted = redactRegion(waiting, final)
      if (redacted === undefined) break
      waiting = undefined
      out += redacted
    }
    return out
  }

  return {
    add: (text) => {
      const waits = waiting !== undefined && !text.includes("\n") && pending.length < region.longest
      pending += text
      return waits ? "" : drain(false)
    },
    end: () => drain(true)
  }
}

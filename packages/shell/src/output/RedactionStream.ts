/**
 * Redacts a stream of text with the rules of `@daybook/log`, across any chunk border. Lines without a hint of a secret
 * pass at once; around a hint, text waits until the secret's end is certain. `Escapes.ts` runs before, so that no
 * colour code cuts a secret. Spec: SL-34..SL-38.
 */
import * as Redaction from "@daybook/log/support/Redaction"
import { shapeForms } from "@daybook/log/support/SecretRules"
import * as SecretScan from "@daybook/log/support/SecretScan"
import { cutAt } from "@daybook/log/support/Text"
import { tokenForms } from "@daybook/log/support/TokenForms"
import { bodyEnd, continuation, endOfLines, wordStart } from "./SecretRegion.ts"

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
  readonly scan: SecretScan.SecretScan
  /** Finds what a line break may cut. */
  readonly broken: SecretScan.SecretScan["hint"]
  /** Characters after a cut that show whether a secret crosses it. */
  readonly lookahead: number
}

/** Prepares values of four and more characters. */
export const prepare = (secrets: ReadonlyArray<string> = []): Secrets => {
  const known = shown(secrets)
  const lookahead = known.reduce((most, { length }) => Math.max(most, 2 * length), 1_024)
  const scan = SecretScan.make({ forms: shapeForms, known, random: true })
  return { known, scan, broken: SecretScan.make({ forms: tokenForms, known }).hint, lookahead }
}

/** Redacts one text, such as a command, with the rules of streams. */
export const redacted = (text: string, { known, scan }: Secrets): string =>
  scan.hint(text, 0) === undefined ? text : Redaction.replaced(text, Redaction.find(text, known))

export const make = ({ broken, known, lookahead, scan }: Secrets): RedactionStream => {
  const region = { longest: 8 * lookahead, broken }
  let pending = ""
  /** Where in the first line of `pending` a secret may begin that waits for more text. */
  let waiting: SecretScan.Hint | undefined
  /** The secret whose continuation is dropped. */
  let dropping: { readonly kind: Redaction.SecretKind; left: number } | undefined

  /** Drops what continues a secret; false if more of it may come. */
  const drop = (secret: NonNullable<typeof dropping>, final: boolean): boolean => {
    const end = bodyEnd(secret.kind, pending, 0) ?? continuation(secret.kind, pending)
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
      dropping = { kind: last.kind, left: bodyEnd(last.kind, "", 0) === undefined ? Infinity : longestUnended }
      return { redacted: Redaction.replaced(text, found), at: text.length }
    }
    if (at === 0) {
      at = cutAt(text, text.length - lookahead)
      for (let next = crossing(at); next !== undefined; next = crossing(at)) at = next.end
    }
    const before = found.filter(({ end }) => end <= at)
    return { redacted: Redaction.replaced(text.slice(0, at), before), at }
  }

  /** Redacts the region of the hint from an index on; undefined if its end is not there yet. */
  const redactRegion = (start: number, hint: SecretScan.Hint, final: boolean) => {
    const end = endOfLines(pending, start, hint, region) ?? (final ? pending.length : undefined)
    if (end === undefined) return undefined
    const text = pending.slice(start, end)
    const whole = text.endsWith("\n") || (final && end === pending.length)
    if (whole) return { at: end, redacted: Redaction.replaced(text, Redaction.find(text, known)) }
    const { at, redacted } = cut(text)
    return { at: start + at, redacted }
  }

  /** Redacts the lines that are complete. What follows a secret that is cut, or waits for more text, stays. */
  const passLines = (final: boolean): string => {
    const to = final ? pending.length : pending.lastIndexOf("\n") + 1
    if (to === 0) return ""
    let out = ""
    let done = 0
    let found: Array<Redaction.SecretMatch> = []
    /** Adds the text up to an index, without what was found in it. */
    const flush = (until: number) => {
      const secrets = Redaction.merged(found.filter(({ start }) => start < until))
      for (const { end, start } of secrets) {
        out += pending.slice(done, start) + Redaction.mark
        done = end
      }
      out += pending.slice(done, until)
      done = until
      found = []
    }
    let rest: number | undefined
    scan.lines(pending, to, {
      take: (start, end, kind, from) => void found.push({ start, end, kind, from }),
      region: (start, hint) => {
        flush(start)
        const redacted = redactRegion(start, hint, final)
        rest = start
        if (redacted === undefined) waiting = { at: hint.at - start, length: hint.length }
        if (redacted === undefined) return undefined
        out += redacted.redacted
        done = redacted.at
        rest = redacted.at
        const isLine = dropping === undefined && (done >= pending.length || pending[done - 1] === "\n")
        if (!isLine) return undefined
        rest = undefined
        return done
      }
    })
    if (rest === undefined && done < to) flush(to)
    pending = pending.slice(rest ?? Math.max(done, to))
    return out
  }

  /** The beginning of an incomplete line that is so long that it cannot wait for its end. */
  const passPart = (): string => {
    const hint = scan.hint(pending, 0)
    const to = Math.max(0, cutAt(pending, Math.min(hint?.at ?? Infinity, pending.length) - longestHeld))
    const passed = pending.slice(0, to)
    pending = pending.slice(to)
    if (hint !== undefined) waiting = { at: hint.at - to, length: hint.length }
    return passed
  }

  const drain = (final: boolean): string => {
    let out = ""
    while (pending !== "") {
      if (dropping !== undefined && !drop(dropping, final)) break
      if (waiting !== undefined) {
        const redacted = redactRegion(0, waiting, final)
        if (redacted === undefined) break
        waiting = undefined
        out += redacted.redacted
        pending = pending.slice(redacted.at)
        continue
      }
      out += passLines(final)
      if (waiting !== undefined || dropping !== undefined) continue
      if (final || pending.includes("\n")) continue
      if (pending.length > longestHeld) out += passPart()
      if (waiting === undefined) break
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

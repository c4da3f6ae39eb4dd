/**
 * Replaces secrets in texts and JSON values by a mark: tokens of providers, private keys, credentials in URLs, headers and
 * assignments, given values, and random text. Finds them also behind escapes and across line breaks. The time is linear in
 * the text. Spec: FM-190..FM-199, MD-34.
 */
import { certainForms, isSecretName, publicBlock, shapeForms } from "./SecretRules.ts"
import * as SecretScan from "./SecretScan.ts"
import type { SecretKind } from "./SecretForm.ts"
import { brokenWords, withoutEscapes } from "./TextViews.ts"
import { tokenForms } from "./TokenForms.ts"

export type { SecretKind } from "./SecretForm.ts"

/** Replaces a secret. No rule matches it, so redacting twice changes nothing more. */
export const mark = "<redacted>"

export interface SecretMatch {
  readonly start: number
  readonly end: number
  readonly kind: SecretKind
  /** Where the text begins that the secret was recognised by: its name, its header. */
  readonly from: number
}

type Add = SecretScan.Take

const scans = {
  certain: SecretScan.make({ forms: certainForms }),
  tokens: SecretScan.make({ forms: tokenForms }),
  shapes: SecretScan.make({ forms: shapeForms }),
  all: SecretScan.make({ forms: shapeForms, random: true })
}

/** Leaves out what is random within a public key or a certificate. */
const outsidePublic = (text: string, add: Add): Add => {
  if (!text.includes("-----BEGIN ")) return add
  const blocks = [...text.matchAll(publicBlock)].map(({ 0: block, index }) => ({
    start: index,
    end: index + block.length
  }))
  if (blocks.length === 0) return add
  return (start, end, kind, from) => {
    const isPublic = kind === "random text" && blocks.some((block) => block.start <= start && start < block.end)
    if (!isPublic) add(start, end, kind, from)
  }
}

const apply = (scan: SecretScan.SecretScan, text: string, add: Add) => scan.find(text, outsidePublic(text, add))

const applyKnown = (known: ReadonlyArray<string>, text: string, add: Add): void => {
  for (const secret of known) {
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + secret.length)) {
      add(at, at + secret.length, "environment value", at)
    }
  }
}

/** The piece continues a token: it has letters and digits. A word of the next line does not. */
const continues = (piece: string): boolean => piece.length >= 4 && /\d/.test(piece) && /[A-Za-z]/.test(piece)

/** Tokens that a line break cuts. A token that is complete on its line is continued only by pieces like its own. */
const applyBroken = (text: string, known: ReadonlyArray<string>, add: Add): void => {
  if (!text.includes("\n")) return
  for (const word of brokenWords(text)) {
    const consider: Add = (start, end, kind) => {
      const first = word.seams.find((seam) => seam > start && seam < end)
      if (first === undefined) return
      let complete = false
      scans.tokens.find(word.text.slice(0, first), (from) => (complete ||= from === start))
      let last = end
      if (complete && kind === "token") {
        const seams = word.seams.filter((seam) => seam >= first && seam < end)
        const stop = seams.find((seam, index) => !continues(word.text.slice(seam, seams[index + 1] ?? end)))
        last = stop ?? end
      }
      add(word.at(start), word.at(last - 1) + 1, kind, word.at(start))
    }
    const parts: Array<Parameters<Add>> = []
    scans.tokens.find(word.text, (...part) => void parts.push(part))
    for (const part of parts) consider(...part)
    applyKnown(known, word.text, consider)
  }
}

const search = (text: string, scan: SecretScan.SecretScan, known: ReadonlyArray<string>) => {
  const found: Array<SecretMatch> = []
  const add: Add = (start, end, kind, from) => void found.push({ start, end, kind, from })
  const breaks = apply(scan, text, add) || known.length > 0
  applyKnown(known, text, add)
  const plain = withoutEscapes(text)
  if (plain !== undefined) {
    const mapped: Add = (start, end, kind, from) => add(plain.at(start), plain.at(end), kind, plain.at(from))
    const plainBreaks = apply(scan, plain.text, mapped) || known.length > 0
    applyKnown(known, plain.text, mapped)
    if (plainBreaks) applyBroken(plain.text, known, mapped)
  } else if (breaks) applyBroken(text, known, add)
  return found
}

/** Found secrets in order, overlapping ones as one. */
export const merged = (found: ReadonlyArray<SecretMatch>): ReadonlyArray<SecretMatch> => {
  const all: Array<SecretMatch> = []
  for (const next of found.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = all.at(-1)
    if (last === undefined || next.start >= last.end) all.push(next)
    else all[all.length - 1] = { ...last, end: Math.max(last.end, next.end), from: Math.min(last.from, next.from) }
  }
  return all
}

/** A secret is longer than this. */
const shortest = 6

export const replaced = (text: string, found: ReadonlyArray<SecretMatch>): string => {
  let last = 0
  const kept = found.map(({ end, start }) => {
    const before = text.slice(last, start)
    last = end
    return before
  })
  return [...kept, text.slice(last)].join(mark)
}

/** The secrets in a text, in order, by all rules. */
export const find = (text: string, known: ReadonlyArray<string>): ReadonlyArray<SecretMatch> =>
  text.length < shortest ? [] : merged(search(text, scans.all, known))

/** The text without secrets. `known` values of four and more characters are replaced everywhere (MD-34). */
export const redactSecrets = (text: string, known: ReadonlyArray<string> = []): string => {
  const given = known.filter((secret) => secret.length >= 4)
  return text.length < 4 ? text : replaced(text, merged(search(text, scans.shapes, given)))
}

/** Whether a finished text still contains a token, a private key or a known value. */
export const leaks = (text: string, known: ReadonlyArray<string>) => search(text, scans.certain, known).length > 0

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

export interface Redactor {
  readonly text: (text: string) => string
  /** Redacts every string and every key. A value under a secret's name is replaced whole. */
  readonly value: (value: Json) => Json
  /** Replaced secrets by kind. Grows with every call. */
  readonly counts: ReadonlyMap<SecretKind, number>
}

/** Encoded data, which cannot be checked as text. */
const isEncoded = (text: string): boolean =>
  /^data:[^\s,]{0,200},/.test(text) || (text.length >= 1024 && /^[A-Za-z0-9+/\r\n]+={0,2}\s*$/.test(text))

const isIdentifier = /(?:^id|I[dD]|ID)$/

/** A redactor that also replaces the known values: each of eight and more characters. */
export const make = (known: ReadonlyArray<string> = []): Redactor => {
  const counts = new Map<SecretKind, number>()
  const count = (kind: SecretKind) => counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const redacted = (text: string, scan: SecretScan.SecretScan): string => {
    if (text.length < shortest) return text
    if (isEncoded(text)) {
      count("file")
      return mark
    }
    const found = merged(search(text, scan, known))
    for (const { kind } of found) count(kind)
    return found.length === 0 ? text : replaced(text, found)
  }
  const text = (given: string) => redacted(given, scans.all)
  const field = (key: string, value: Json): Json => {
    if (typeof value !== "string") return deep(value)
    if (value === "" || value === mark) return value
    if (!isSecretName(key)) return redacted(value, isIdentifier.test(key) ? scans.shapes : scans.all)
    count("assignment")
    return mark
  }
  const deep = (value: Json): Json => {
    if (typeof value === "string") return text(value)
    if (value === null || typeof value !== "object") return value
    if (Array.isArray(value)) return value.map(deep)
    const fields = new Map<string, Json>()
    for (const [key, item] of Object.entries(value)) {
      const name = text(key)
      let free = name
      for (let number = 2; fields.has(free); number++) free = `${name} ${number}`
      fields.set(free, field(key, item))
    }
    return Object.fromEntries(fields)
  }
  return { text, value: deep, counts }
}

/** The values of variables whose names say that they are secret. Paths and short values are not. */
export const secretsOf = (environment: Readonly<Record<string, string | undefined>>): ReadonlyArray<string> =>
  Object.entries(environment).flatMap(([name, value]) =>
    value !== undefined &&
    value.length >= 8 &&
    !value.startsWith("/") &&
    /KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|PRIVATE|DSN/i.test(name)
      ? [value]
      : []
  )

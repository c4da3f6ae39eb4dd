/** Reads JSON from outside: each function returns a plain value, or its absence, for anything. Pure. */
import { Predicate } from "effect"
import { present } from "@daybook/log/support/Optional"

/** A JSON object of a wire protocol; fields are checked where they are used. */
export type Json = Readonly<Record<string, unknown>>

export const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})

export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The values of a list, or the one value in its place. */
export const many = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : Predicate.isRecord(value) ? [value] : []

/** A text that is not empty. */
export const text = (value: unknown): string | undefined =>
  Predicate.isString(value) && value !== "" ? value : undefined

/** The words of a text, a number, a part of a message, or a list of them; undefined for none. */
export const wordsOf = (value: unknown): string | undefined => {
  if (Predicate.isNumber(value)) return String(value)
  if (Array.isArray(value)) return text(value.map((one) => wordsOf(one) ?? "").join(""))
  return Predicate.isRecord(value) ? wordsOf(value["text"] ?? value["content"]) : text(value)
}

export const idOf = (value: unknown): string | undefined => (Predicate.isNumber(value) ? String(value) : text(value))

/** A count, also one written as a string; negative and infinite ones are absent. */
export const count = (value: unknown): number | undefined => {
  const number = Predicate.isString(value) && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
  return Predicate.isNumber(number) && Number.isFinite(number) && number >= 0 ? Math.floor(number) : undefined
}

/** The defined fields; undefined if there are none. */
export const filled = (fields: Json): Json | undefined => {
  const all = present(fields)
  return Object.keys(all).length === 0 ? undefined : all
}

/** A JSON value; undefined for text that is none. Line breaks in texts and `NaN`, which JSON does not have, are read. */
export const parse = (source: string): unknown =>
  strictly(source) ?? (odd.test(source) ? strictly(mended(source)) : undefined)

const strictly = (source: string): unknown => {
  try {
    const value: unknown = JSON.parse(source)
    return value
  } catch {
    return undefined
  }
}

// JSON allows no control characters in texts: finding them is the purpose.
// oxlint-disable-next-line no-control-regex
const odd = /[\u0000-\u001f]|\bNaN\b|\bInfinity\b/
const tokens = /"(?:[^"\\]+|\\[^])*"?|-?\b(?:NaN|Infinity)\b/g

const mended = (source: string): string =>
  source.replaceAll(tokens, (token) =>
    token.startsWith('"')
      ? // oxlint-disable-next-line no-control-regex
        token.replaceAll(/[\u0000-\u001f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
      : "null"
  )

/**
 * The objects of one event's data. Servers glue frames together and leave out the empty line between them, so text that is not one
 * object is read object by object. `rest` is what no object holds.
 */
export const objectsIn = (data: string): { readonly objects: ReadonlyArray<Json>; readonly rest: string } => {
  const whole = parse(data)
  if (Predicate.isRecord(whole)) return { objects: [whole], rest: "" }
  if (Array.isArray(whole)) return { objects: whole.filter(Predicate.isRecord), rest: "" }
  const objects: Array<Json> = []
  let rest = ""
  let at = 0
  while (at < data.length) {
    const begin = data.indexOf("{", at)
    const end = begin < 0 ? -1 : endOf(data, begin)
    const value = end < 0 ? undefined : parse(data.slice(begin, end))
    if (!Predicate.isRecord(value)) break
    rest += data.slice(at, begin)
    objects.push(value)
    at = end
  }
  return { objects, rest: (rest + data.slice(at)).replaceAll("data:", " ").replaceAll("\u001e", " ").trim() }
}

/** The index after the object that begins at `begin`; -1 if it does not end. */
const endOf = (data: string, begin: number): number => {
  let depth = 0
  let quoted = false
  for (let at = begin; at < data.length; at++) {
    const character = data[at]
    if (quoted) {
      if (character === "\\") at++
      else if (character === '"') quoted = false
    } else if (character === '"') quoted = true
    else if (character === "{") depth++
    else if (character === "}" && --depth === 0) return at + 1
  }
  return -1
}

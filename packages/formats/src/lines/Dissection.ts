/**
 * Divides a line that is not one JSON value into the objects that it holds and the damage between them. Reads the line
 * from both ends, so that one damaged place costs no record before or after it. Spec: FM-4, FM-5 in specs/formats.md.
 */
import { Predicate } from "effect"
import { JsonRecord } from "@daybook/log/domain/Json"
import { endOfObject, type Range, startOfObject, trimmed } from "./Braces.ts"

/** Bytes of a line: an object, or damage if `value` is absent. */
export interface Piece extends Range {
  readonly value?: JsonRecord
}

const openBrace = 0x7b

export const textOf = (bytes: Buffer, { from, to }: Range): string => bytes.toString("utf8", from, to)

/** The JSON value of a text, or undefined. No JSON text has the value undefined. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const objectIn = (bytes: Buffer, range: Range): Piece | undefined => {
  const value = parsed(textOf(bytes, range))
  return Predicate.isReadonlyRecord(value) ? { ...range, value } : undefined
}

/**
 * The pieces of a line in order; `isRecord` says whether an object beside damage is a record. Without it, such an object
 * may be a part of a damaged record.
 */
export const dissect = (bytes: Buffer, line: Range, isRecord: (value: JsonRecord) => boolean): ReadonlyArray<Piece> => {
  let { from, to } = trimmed(bytes, line)
  const before: Array<Piece> = []
  while (from < to) {
    const start = bytes.indexOf(openBrace, from)
    const end = start < 0 || start >= to ? -1 : endOfObject(bytes, { from: start, to })
    const piece = end < 0 ? undefined : objectIn(bytes, { from: start, to: end })
    if (piece?.value === undefined || (start > from && !isRecord(piece.value))) break
    if (start > from) before.push({ from, to: start })
    before.push(piece)
    from = trimmed(bytes, { from: end, to }).from
  }
  const after: Array<Piece> = []
  while (from < to) {
    const start = startOfObject(bytes, { from, to })
    const piece = start < 0 ? undefined : objectIn(bytes, { from: start, to })
    if (piece?.value === undefined || !isRecord(piece.value)) break
    after.push(piece)
    to = trimmed(bytes, { from, to: start }).to
  }
  if (from < to) after.push({ from, to })
  return [...before, ...after.toReversed()]
}

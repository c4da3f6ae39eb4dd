/**
 * Refers to long texts of another value in place of repeating them: a text that equals one, is a part of one, or contains
 * one. Pure. Spec: IM-21.
 */
import { Schema } from "effect"

/** A shorter text is repeated: a reference to it would be as long. */
const shortest = 48

/** A part of a text: the text's index among the texts of the other value, from, to (UTF-16 code units). */
export const Piece = Schema.Union(
  Schema.String,
  Schema.Tuple(Schema.NonNegativeInt, Schema.NonNegativeInt, Schema.NonNegativeInt)
)

/** A text in pieces: as they are, or borrowed. */
export const Pieces = Schema.Array(Piece)
export type Borrowed = typeof Pieces.Type

/** The long texts of a value, in order. */
export type Lender = () => ReadonlyArray<string>

const collect = (value: unknown, into: Array<string>): void => {
  if (typeof value === "string") {
    if (value.length >= shortest) into.push(value)
  } else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) collect(item, into)
}

/** The texts of a value, collected when the first one is needed. */
export const lend = (value: unknown): Lender => {
  let texts: Array<string> | undefined
  return () => {
    if (texts === undefined) collect(value, (texts = []))
    return texts
  }
}

/** The text in pieces; undefined if there is nothing to borrow. */
export const borrowedText = (text: string, lender: Lender): Borrowed | undefined => {
  if (text.length < shortest) return undefined
  const texts = lender()
  const whole = texts.indexOf(text)
  if (whole >= 0) return [[whole, 0, text.length]]
  for (const [index, lent] of texts.entries()) {
    if (lent.length > text.length) {
      const from = lent.indexOf(text)
      if (from >= 0) return [[index, from, from + text.length]]
      continue
    }
    const at = text.indexOf(lent)
    if (at < 0) continue
    const before = text.slice(0, at)
    const after = text.slice(at + lent.length)
    return [...(before === "" ? [] : [before]), [index, 0, lent.length], ...(after === "" ? [] : [after])]
  }
  return undefined
}

/** The text of the pieces. */
export const restored = (pieces: Borrowed, lender: Lender): string =>
  pieces
    .map((piece) => (typeof piece === "string" ? piece : (lender()[piece[0]] ?? "").slice(piece[1], piece[2])))
    .join("")

/**
 * Texts of answers, as the fold remembers them: a short one as it is, a long one as the place of its event. So the fold
 * stays small however long an answer is; what writes the answer reads one event at a time. Pure.
 * Spec: FI-98 in specs/files.md.
 */
import { Schema } from "effect"

/** A long text: the event that holds it, and what has to be known of it before it is read. */
export const StoredText = Schema.Struct({
  /** Of the event that ended the text. */
  seq: Schema.Int,
  /** UTF-16 code units. */
  length: Schema.Int,
  /** UTF-8 bytes of the text as a JSON string. */
  bytes: Schema.Int
})
export type StoredText = typeof StoredText.Type

export const Text = Schema.Union(Schema.String, StoredText)
export type Text = typeof Text.Type

/** UTF-16 code units of a text that is remembered as it is, at most. */
export const longestHeld = 16 * 1024

export const isStored = (text: unknown): text is StoredText => typeof text === "object"

/** The text of the event with this place. */
export const remember = (text: string, seq: number): Text =>
  text.length <= longestHeld ? text : { seq, length: text.length, bytes: Buffer.byteLength(JSON.stringify(text)) }

/** The first code units, in memory of their own: a slice would keep all of the text. */
export const headOf = (text: string, length: number): string =>
  text.length <= length ? text : Buffer.from(text.slice(0, length), "utf16le").toString("utf16le")

/** Code units of all of them. */
export const lengthOf = (texts: ReadonlyArray<Text>): number => texts.reduce((sum, { length }) => sum + length, 0)

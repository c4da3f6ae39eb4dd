/**
 * Texts of answers as the fold holds them: a short one whole, a long one as a reference to its event. So the fold stays
 * small; the writer of an answer reads one event at a time. Pure. Spec: FI-98 in specs/files.md.
 */
import { Schema } from "effect"

/** A reference to a long text, with the sizes that are needed before it is read. */
export const StoredText = Schema.Struct({
  /** The sequence number of the event that ended the text. */
  seq: Schema.Int,
  /** UTF-16 code units. */
  length: Schema.Int,
  /** UTF-8 bytes of the text as a JSON string. */
  bytes: Schema.Int
})
export type StoredText = typeof StoredText.Type

/** A text of an answer: the text, or a reference to it. */
export const Text = Schema.Union(Schema.String, StoredText)
export type Text = typeof Text.Type

/** UTF-16 code units of a text that is held whole, at most. */
export const longestHeld = 16 * 1024

/** Stands between the texts of two messages of a run (FR-7). */
export const separator = "\n\n"

/** Whether the text is only a reference. */
export const isStored = (text: unknown): text is StoredText => typeof text === "object"

/** Holds the text, or refers to its event if it is long. */
export const remember = (text: string, seq: number): Text =>
  text.length <= longestHeld ? text : { seq, length: text.length, bytes: Buffer.byteLength(JSON.stringify(text)) }

/** The first code units, copied: a slice would retain the whole text. */
export const headOf = (text: string, length: number): string =>
  text.length <= length ? text : Buffer.from(text.slice(0, length), "utf16le").toString("utf16le")

/** Code units of all texts. */
export const lengthOf = (texts: ReadonlyArray<Text>): number => texts.reduce((sum, { length }) => sum + length, 0)

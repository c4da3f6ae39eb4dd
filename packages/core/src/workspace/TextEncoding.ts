/**
 * The encodings of text files: UTF-8, UTF-16 with a byte order mark, and Windows-1252, which has every character of
 * Latin-1. A changed text is written back in its encoding, with every unchanged byte. Pure. Spec: TO-540.
 */
import { Option } from "effect"

export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252"

/** A text, including its byte order mark, and the encoding of its file. */
export interface DecodedText {
  readonly text: string
  readonly encoding: TextEncoding
}

/** The encodings as people know them. */
export const encodingNames: Readonly<Record<TextEncoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16 (little-endian)",
  "utf-16be": "UTF-16 (big-endian)",
  "windows-1252": "Windows-1252 (Latin-1)"
}

export const byteOrderMark = "\uFEFF"

/** The encoding that a byte order mark of UTF-16 names. */
export const markedEncoding = (bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le"
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : undefined
}

const decodeAs = (encoding: TextEncoding, bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Control characters that no text has: all but tab, line feed, form feed, carriage return and escape. */
const isControl = (byte: number): boolean => byte < 0x20 && ![0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte)

/**
 * Whether bytes that are not UTF-8 are text of one byte a character: no controls, and more bytes that cannot be UTF-8 than
 * characters of UTF-8 with several bytes, of which a damaged UTF-8 file has many.
 */
const isOneByteText = (bytes: Uint8Array): boolean => {
  if (bytes.some(isControl)) return false
  const lenient = new TextDecoder("utf-8").decode(bytes)
  let [broken, whole] = [0, 0]
  for (const character of lenient) {
    if (character === "\uFFFD") broken++
    else if (character > "\u007F") whole++
  }
  return broken > whole
}

/** The text of a whole file; undefined for bytes that are no text. */
export const decodeText = (bytes: Uint8Array): DecodedText | undefined => {
  const marked = markedEncoding(bytes)
  const encoding = marked ?? "utf-8"
  const text = decodeAs(encoding, bytes)
  if (text !== undefined) return { text, encoding }
  if (marked !== undefined || !isOneByteText(bytes)) return undefined
  return { text: new TextDecoder("windows-1252").decode(bytes), encoding: "windows-1252" }
}

/** A text in another encoding than UTF-8, without byte order mark; undefined for other bytes. */
export const decodeOther = (bytes: Uint8Array): DecodedText | undefined => {
  if (markedEncoding(bytes) === undefined && bytes.includes(0)) return undefined
  const decoded = decodeText(bytes)
  if (decoded === undefined || decoded.encoding === "utf-8") return undefined
  const { encoding, text } = decoded
  return { encoding, text: text.startsWith(byteOrderMark) ? text.slice(1) : text }
}

/** The byte of each character of Windows-1252. */
let oneByte: ReadonlyMap<string, number> | undefined

const oneByteTable = (): ReadonlyMap<string, number> =>
  (oneByte ??= new Map(
    Array.from(new TextDecoder("windows-1252").decode(Uint8Array.from({ length: 256 }, (_, at) => at)), (each, at) => [
      each,
      at
    ])
  ))

/** The first character of a text that the encoding does not have. */
export const missingIn = (encoding: TextEncoding, text: string): string | undefined => {
  if (encoding !== "windows-1252") return undefined
  const table = oneByteTable()
  for (const character of text) if (!table.has(character)) return character
  return undefined
}

/** The bytes of a text; none if the encoding does not have one of its characters. */
export const encodeText = (encoding: TextEncoding, text: string): Option.Option<Uint8Array> => {
  switch (encoding) {
    case "utf-8":
      return Option.some(Buffer.from(text))
    case "utf-16le":
      return Option.some(Buffer.from(text, "utf16le"))
    case "utf-16be":
      return Option.some(Buffer.from(text, "utf16le").swap16())
    case "windows-1252": {
      if (missingIn(encoding, text) !== undefined) return Option.none()
      const table = oneByteTable()
      return Option.some(Uint8Array.from(text, (character) => table.get(character) ?? 0x3f))
    }
  }
}

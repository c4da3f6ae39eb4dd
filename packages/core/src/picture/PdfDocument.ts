/** Checks a PDF document before a model is shown it: providers reject a request with a broken or locked one. Pure. Spec: PC-640. */

/** Larger documents are rejected by providers. */
export const documentBytes = 32 * 1024 * 1024

/** The header may follow other bytes. */
const headerBytes = 1_024
/** What ends a document is in its last bytes; some programs append a little. */
const tailBytes = 64 * 1024
/** Upper bound on the text of a dictionary that may lock the document. */
const dictionaryChars = 8_192

const locked = /\/Encrypt\s*(?:\d+\s+\d+\s+R|<<)/g

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

/** Whether bytes are meant as a PDF document. */
export const isPdf = (bytes: Uint8Array): boolean => latin1(bytes.subarray(0, headerBytes)).includes("%PDF-")

/** Whether the entry is in a trailer, or in the dictionary of a stream of cross-references. Elsewhere it is text. */
const isInTrailer = (text: string, at: number): boolean => {
  const before = text.slice(Math.max(0, at - dictionaryChars), at)
  if (before.lastIndexOf("trailer") > Math.max(before.lastIndexOf("startxref"), before.lastIndexOf("endobj")))
    return true
  const dictionary = `${before.slice(before.lastIndexOf(" obj") + 1)}${text.slice(at, at + dictionaryChars)}`
  return /\/Type\s*\/XRef/.test(dictionary.split("stream", 1)[0] ?? "")
}

/** Maximum `/Encrypt` entries that are checked. */
const maxEntries = 1_000

const isLocked = (text: string): boolean => {
  let seen = 0
  for (const { index } of text.matchAll(locked)) {
    if (isInTrailer(text, index)) return true
    if (++seen === maxEntries) return false
  }
  return false
}

/** Why a document cannot be shown, as the end of a sentence about it; undefined if it can be. */
export const pdfFault = (bytes: Uint8Array): string | undefined => {
  if (bytes.length > documentBytes) {
    return `it has ${bytes.length.toLocaleString("en")} bytes, and at most ${documentBytes.toLocaleString("en")} are read`
  }
  if (!isPdf(bytes)) return "it is not a valid PDF document: its header is missing"
  if (!/%%EOF|startxref|trailer/.test(latin1(bytes.subarray(-tailBytes)))) {
    return "it is not a valid PDF document: its end is missing"
  }
  return isLocked(latin1(bytes)) ? "it is protected with a password" : undefined
}

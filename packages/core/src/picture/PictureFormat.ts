/**
 * Reads the format and the size of a picture from its first bytes, and checks a PDF document before it is shown to a
 * model: providers reject a request with a broken or locked document. Pure. Spec: PC-640.
 */

/** Larger documents are rejected by providers. */
const documentBytes = 32 * 1024 * 1024

/** The header may follow other bytes. */
const headerBytes = 1_024
/** What ends a document is in its last bytes; some programs append a little. */
const tailBytes = 64 * 1024
/** Upper bound on the text of a dictionary that may lock the document. */
const dictionaryChars = 8_192

const locked = /\/Encrypt\s*(?:\d+\s+\d+\s+R|<<)/g

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

/** Whether bytes are meant as a PDF document. */
const isPdf = (bytes: Uint8Array): boolean => latin1(bytes.subarray(0, headerBytes)).includes("%PDF-")

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

// Detects the format of a picture by its first bytes, and reads its header. Names and declared types are ignored.
// Pure. Spec: PX-12, PC-1.

export type PictureFormat =
  | "image/png"
  | "image/jpeg"
  | "image/gif"
  | "image/webp"
  | "image/tiff"
  | "image/avif"
  | "image/heic"
  | "image/bmp"
  | "image/jxl"

/** Bytes as Latin-1 text. */
const latin = (bytes: Uint8Array, from: number, to: number) => Buffer.from(bytes.subarray(from, to)).toString("latin1")

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The brands of an ISO media file, the major one first. */
const brands = (bytes: Uint8Array): ReadonlyArray<string> => {
  if (bytes.length < 16 || latin(bytes, 4, 8) !== "ftyp") return []
  const end = Math.min(view(bytes).getUint32(0), bytes.length, 256)
  const all = [latin(bytes, 8, 12)]
  for (let at = 16; at + 4 <= end; at += 4) all.push(latin(bytes, at, at + 4))
  return all
}

/** Text may begin with the letters BM, so the header is checked too. */
const isBitmap = (bytes: Uint8Array) =>
  bytes.length >= 26 &&
  latin(bytes, 0, 2) === "BM" &&
  view(bytes).getUint32(6, true) === 0 &&
  [12, 40, 52, 56, 64, 108, 124].includes(view(bytes).getUint32(14, true))

/** The format of a picture; undefined for other bytes. */
export const pictureFormat = (bytes: Uint8Array): PictureFormat | undefined => {
  const head = latin(bytes, 0, 12)
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png"
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg"
  if (head.startsWith("GIF87a") || head.startsWith("GIF89a")) return "image/gif"
  if (head.startsWith("RIFF") && head.slice(8) === "WEBP") return "image/webp"
  if (head.startsWith("II*\0") || head.startsWith("MM\0*")) return "image/tiff"
  if (head === "\0\0\0\x0cJXL \r\n\x87\n") return "image/jxl"
  if (isBitmap(bytes)) return "image/bmp"
  const kinds = brands(bytes)
  if (kinds.some((brand) => brand === "avif" || brand === "avis")) return "image/avif"
  return kinds.some((brand) => /^(hei[cxms]|hev[cxms]|mif1|msf1)$/.test(brand)) ? "image/heic" : undefined
}

export interface PictureHeader {
  readonly width: number
  readonly height: number
  readonly animated: boolean
}

type HeaderResult = PictureHeader | undefined

const png = (bytes: Uint8Array): HeaderResult => {
  if (bytes.length < 33 || latin(bytes, 12, 16) !== "IHDR") return undefined
  let ended = false
  for (let at = 8; at + 12 <= bytes.length && !ended; at += 12 + view(bytes).getUint32(at)) {
    ended = latin(bytes, at + 4, at + 8) === "IEND"
  }
  const [width, height] = [view(bytes).getUint32(16), view(bytes).getUint32(20)]
  return ended ? { width, height, animated: false } : undefined
}

const jpeg = (bytes: Uint8Array): HeaderResult => {
  // Requires the end marker; data after it, which some cameras write, is ignored.
  if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf("\xff\xd9", undefined, "latin1") < 0) {
    return undefined
  }
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1] ?? 0
    // Skips fill bytes, and markers without a length.
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { width: view(bytes).getUint16(at + 7), height: view(bytes).getUint16(at + 5), animated: false }
    } else at += 2 + view(bytes).getUint16(at + 2)
  }
  return undefined
}

/** The position after a GIF's sub-blocks from `at`; undefined if they are truncated. */
const afterBlocks = (bytes: Uint8Array, at: number): number | undefined => {
  let next = at
  for (let size = bytes[next]; size !== undefined; size = bytes[next]) {
    next += 1 + size
    if (size === 0) return next
  }
  return undefined
}

const tableBytes = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1))

const gif = (bytes: Uint8Array): HeaderResult => {
  if (bytes.length < 14) return undefined
  const [width, height] = [view(bytes).getUint16(6, true), view(bytes).getUint16(8, true)]
  let frames = 0
  for (let at: number | undefined = 13 + tableBytes(bytes[10] ?? 0); at !== undefined;) {
    const kind: number | undefined = bytes[at]
    if (kind === 0x3b) return frames === 0 ? undefined : { width, height, animated: frames > 1 }
    if (kind === 0x21) at = afterBlocks(bytes, at + 2)
    else if (kind === 0x2c && at + 10 < bytes.length) {
      frames++
      at = afterBlocks(bytes, at + 11 + tableBytes(bytes[at + 9] ?? 0))
    } else return undefined
  }
  return undefined
}

const webp = (bytes: Uint8Array): HeaderResult => {
  if (bytes.length < 30 || view(bytes).getUint32(4, true) + 8 > bytes.length) return undefined
  const data = view(bytes)
  switch (latin(bytes, 12, 16)) {
    case "VP8 ":
      return { width: data.getUint16(26, true) & 0x3fff, height: data.getUint16(28, true) & 0x3fff, animated: false }
    case "VP8L": {
      const bits = data.getUint32(21, true)
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1, animated: false }
    }
    case "VP8X": {
      const size = (at: number) => 1 + (data.getUint32(at, true) & 0xffffff)
      return { width: size(24), height: (data.getUint32(26, true) >>> 8) + 1, animated: ((bytes[20] ?? 0) & 2) !== 0 }
    }
    default:
      return undefined
  }
}

/** Size and animation of a PNG, JPEG, GIF or WebP picture; undefined if it is truncated or has another format. */
export const pictureHeader = (bytes: Uint8Array): PictureHeader | undefined => {
  const read = { "image/png": png, "image/jpeg": jpeg, "image/gif": gif, "image/webp": webp }
  const format = pictureFormat(bytes)
  const header = format !== undefined && format in read ? read[format as keyof typeof read](bytes) : undefined
  return header !== undefined && header.width > 0 && header.height > 0 ? header : undefined
}

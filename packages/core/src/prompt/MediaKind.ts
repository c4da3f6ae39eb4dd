/** Detects the type of bytes by their first bytes; names and declared types are ignored. Pure. Spec: PX-12. */
import { pictureFormat } from "../picture/PictureFormat.ts"

const ascii = (bytes: Uint8Array, from: number, text: string): boolean =>
  bytes.length >= from + text.length &&
  [...text].every((character, index) => bytes[from + index] === character.charCodeAt(0))

/** Pictures, which `Pictures` converts for models, and documents. */
export const mediaMime = (bytes: Uint8Array): string | undefined =>
  pictureFormat(bytes) ?? (ascii(bytes, 0, "%PDF-") ? "application/pdf" : undefined)

const others: ReadonlyArray<readonly [string, number, string]> = [
  ["PK\x03\x04", 0, "a ZIP archive, or a document that is one"],
  ["\x1f\x8b", 0, "gzip data"],
  ["BZh", 0, "bzip2 data"],
  ["\xfd7zXZ\0", 0, "xz data"],
  ["\x28\xb5\x2f\xfd", 0, "zstd data"],
  ["7z\xbc\xaf\x27\x1c", 0, "a 7z archive"],
  ["ustar", 257, "a tar archive"],
  ["\x7fELF", 0, "an ELF program or library"],
  ["MZ", 0, "a Windows program or library"],
  ["\xcf\xfa\xed\xfe", 0, "a Mach-O program or library"],
  ["\0asm", 0, "a WebAssembly module"],
  ["SQLite format 3\0", 0, "an SQLite database"],
  ["WAVE", 8, "WAV audio"],
  ["ID3", 0, "MP3 audio"],
  ["OggS", 0, "Ogg audio or video"],
  ["fLaC", 0, "FLAC audio"],
  ["ftyp", 4, "an MP4 file"],
  ["\xff\xfe", 0, "UTF-16 text"],
  ["\xfe\xff", 0, "UTF-16 text"]
]

/** A text for people that names the kind of binary. */
export const binaryKind = (bytes: Uint8Array): string =>
  others.find(([magic, at]) => ascii(bytes, at, magic))?.[2] ??
  (bytes.includes(0) ? "binary data of an unknown kind" : "text in an encoding other than UTF-8, or binary data")

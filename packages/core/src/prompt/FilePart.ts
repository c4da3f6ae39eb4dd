/** Converts a file to a part of a provider's prompt. Pure. Spec: PX-12, PX-19 in specs/context.md. */
import type * as Prompt from "@effect/ai/Prompt"
import type { FileAttachment } from "@daybook/log/domain/Values"
import { pictureFormat } from "../picture/PictureFormat.ts"

// Detects the type of bytes by their first bytes; names and declared types are ignored.

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

export type UserPart = Prompt.UserMessagePartEncoded

export const textPart = (text: string): Prompt.TextPartEncoded => ({ type: "text", text })

/** Media that providers accept as files; other media become text. */
export const mediaKinds = ["image", "pdf"] as const
export type MediaKind = (typeof mediaKinds)[number]

/** The kind of a medium that is shown as a file. */
export const mediaKind = (mime: string): MediaKind | undefined =>
  mime.startsWith("image/") ? "image" : mime === "application/pdf" ? "pdf" : undefined

/** The sentences in place of parts that the model is not shown; undefined: the part is shown. */
export interface Instead {
  /** In place of the whole text of a message or result. */
  readonly whole: string | undefined
  /** Whether the input of a call is hidden; its result then says so. */
  readonly input: boolean
  readonly text: (index: number) => string | undefined
  readonly medium: (index: number, kind: MediaKind, name: string | undefined) => string | undefined
}

/** Everything is shown. */
export const nothingInstead: Instead = {
  whole: undefined,
  input: false,
  text: () => undefined,
  medium: () => undefined
}

/** A data URI may have parameters between its media type and its body. */
const dataUri = /^data:[^,]*?(;base64)?,(.*)$/s

export const clipped = (text: string, limit: number): string =>
  text.length <= limit ? text : `${text.slice(0, limit)}... (${text.length} characters)`

/** Decodes text in a URI; invalid percent-encoding is kept as it is. */
const unescaped = (body: string): string => {
  try {
    return decodeURIComponent(body)
  } catch {
    return body
  }
}

/** A file as a part: inline media as a file, inline text as text, anything else as its name. */
export const filePart = (file: Pick<FileAttachment, "uri" | "mime" | "name">): UserPart => {
  const [, base64, body] = dataUri.exec(file.uri) ?? []
  const name = file.name ?? "file"
  if (body === undefined) return textPart(`[attached: ${name} (${file.mime}) at ${clipped(file.uri, 1_000)}]`)
  if (mediaKind(file.mime) !== undefined && base64 !== undefined) {
    return {
      type: "file",
      mediaType: file.mime,
      data: body,
      ...(file.name === undefined ? {} : { fileName: file.name })
    }
  }
  const bytes = base64 === undefined ? Buffer.from(unescaped(body)) : Buffer.from(body, "base64")
  return file.mime.startsWith("text/")
    ? textPart(`<file name=${JSON.stringify(name)}>\n${bytes.toString("utf8")}\n</file>`)
    : textPart(`[attached: ${name} (${file.mime}, ${bytes.length} bytes): this kind of content cannot be shown]`)
}

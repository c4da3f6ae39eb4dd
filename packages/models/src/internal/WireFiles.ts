/**
 * Converts attachments to a form that every provider's library reads: bytes or an address, never base64 text; text
 * files as text; unsupported files as a sentence. Pure. Spec: MD-11.
 */
import * as Prompt from "@effect/ai/Prompt"
import { mediaMime } from "@daybook/core/prompt/MediaKind"

export const withPlainFiles = (prompt: Prompt.Prompt): Prompt.Prompt =>
  Prompt.fromMessages(
    prompt.content.map((message) =>
      message.role === "user"
        ? Prompt.userMessage({ content: message.content.map(plainPart), options: message.options })
        : message
    )
  )

const plainPart = (part: Prompt.UserMessagePart): Prompt.UserMessagePart => {
  if (part.type !== "file") return part
  const data = bytesOf(part.data)
  const name = part.fileName ?? "attachment"
  if (data instanceof Uint8Array && isText(part.mediaType)) {
    return Prompt.textPart({ text: `<file name="${name}">\n${new TextDecoder().decode(data)}\n</file>` })
  }
  const mediaType = shownMedia(part.mediaType, data)
  if (mediaType !== undefined) {
    return Prompt.filePart({
      mediaType,
      data,
      options: part.options,
      ...(part.fileName === undefined ? {} : { fileName: part.fileName })
    })
  }
  return Prompt.textPart({ text: `[The file "${name}" of type ${part.mediaType} cannot be shown to this model.]` })
}

/** The media type to send: detected from the bytes, because providers reject a picture with the wrong type. */
const shownMedia = (mediaType: string, data: Uint8Array | URL): string | undefined =>
  data instanceof Uint8Array ? mediaMime(data) : /^image\/|^application\/pdf$/.test(mediaType) ? mediaType : undefined

const isText = (mediaType: string): boolean =>
  /^text\/|^application\/(?:json|xml|x-sh|javascript|typescript|yaml|x-yaml|toml)|\+(?:json|xml)(?:$|;)/.test(mediaType)

const bytesOf = (data: string | Uint8Array | URL): Uint8Array | URL => {
  if (data instanceof Uint8Array) return data
  const text = data instanceof URL ? data.href : data
  const inline = /^data:[^,]*?(;base64)?,/i.exec(text)
  if (inline !== null) {
    const payload = text.slice(inline[0].length)
    return inline[1] === undefined
      ? new TextEncoder().encode(decodeURIComponent(payload))
      : new Uint8Array(Buffer.from(payload, "base64"))
  }
  if (data instanceof URL) return data
  return /^https?:\/\//.test(data) && URL.canParse(data) ? new URL(data) : new Uint8Array(Buffer.from(data, "base64"))
}

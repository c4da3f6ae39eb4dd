/** Decodes the bytes of a `data:` URI. Pure. Spec: PX-13. */
import { Either } from "effect"

// The URI that replaces the data of a prompt's attachment, so that it is not stored twice. Spec: PX-13.

export const attachmentUri = (index: number): string => `attachment:${index}`

/** The index of the attachment; undefined for any other URI. */
export const attachmentIndex = (uri: string): number | undefined => {
  const [, index] = /^attachment:(\d{1,9})$/.exec(uri) ?? []
  return index === undefined ? undefined : Number(index)
}

const form = /^data:([^,]*?)(;base64)?,(.*)$/is

/** Decodes percent-encoded bytes; invalid encoding is kept as it is. */
const percentDecoded = (body: string): Uint8Array => {
  try {
    return Buffer.from(decodeURIComponent(body))
  } catch {
    return Buffer.from(body)
  }
}

const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/

/** The bytes, or the error as a clause after the attachment's name. */
export const dataBytes = (uri: string): Either.Either<Uint8Array, string> => {
  const [, , base64, body] = form.exec(uri) ?? []
  if (body === undefined) return Either.left("has no comma after its media type, so its data is missing")
  if (base64 === undefined) return Either.right(percentDecoded(body))
  const plain = body.replaceAll(/%3D/gi, "=").replaceAll(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/")
  const digits = plain.replace(/=+$/, "").length
  // A single digit beyond groups of four encodes no byte.
  return isBase64.test(plain) && digits % 4 !== 1
    ? Either.right(Buffer.from(plain, "base64"))
    : Either.left("is not valid base64")
}

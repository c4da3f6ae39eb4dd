/** The bytes of a `data:` URI. Pure. Spec: PX-13. */
import { Either } from "effect"

const form = /^data:([^,]*?)(;base64)?,(.*)$/is

/** Percent-encoded bytes; a sign that encodes nothing stands for itself. */
const percentDecoded = (body: string): Uint8Array => {
  try {
    return Buffer.from(decodeURIComponent(body))
  } catch {
    return Buffer.from(body)
  }
}

const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/

/** The bytes, or why there are none, as a clause after the attachment's name. */
export const dataBytes = (uri: string): Either.Either<Uint8Array, string> => {
  const [, , base64, body] = form.exec(uri) ?? []
  if (body === undefined) return Either.left("has no comma after its media type, so its data is missing")
  if (base64 === undefined) return Either.right(percentDecoded(body))
  const plain = body.replaceAll(/%3D/gi, "=").replaceAll(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/")
  const digits = plain.replace(/=+$/, "").length
  // One digit beyond whole groups of four holds no byte.
  return isBase64.test(plain) && digits % 4 !== 1
    ? Either.right(Buffer.from(plain, "base64"))
    : Either.left("is not valid base64")
}

/** The secret in the address of a local page: everyone who has it may read the page. Spec: SL-217 in specs/shell.md. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect, Schema } from "effect"

/** At least 128 bits as base64url or hexadecimal digits, and safe in an address and in HTML. */
export const AccessToken = Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{22,128}$/), Schema.brand("AccessToken"))
export type AccessToken = typeof AccessToken.Type

/** A new token of 128 random bits. */
export const fresh: Effect.Effect<AccessToken> = Effect.sync(() =>
  AccessToken.make(randomBytes(16).toString("base64url"))
)

const digest = (text: string): Uint8Array => hash("sha256", text, "buffer")

/** The digest of the last token: a server compares every request with the same one. */
let known: { readonly token: AccessToken; readonly digest: Uint8Array } | undefined

const digestOf = (token: AccessToken): Uint8Array => {
  if (known?.token !== token) known = { token, digest: digest(token) }
  return known.digest
}

/** Whether the text is the token. The time depends on neither of them beyond the length of the text. */
export const matches = (token: AccessToken, given: string): boolean => timingSafeEqual(digestOf(token), digest(given))

/**
 * Tokens of the HTTP API. The server's own token is a secret with every scope; others are made from it and are not stored: a
 * scope, a session, an end, and a signature. Spec: HT-20..HT-22 in specs/http.md.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Either, Schema } from "effect"
import { type Caller, Scope } from "@daybook/api/wire/Access"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { type AccessToken, matches } from "./AccessToken.ts"

/** What a token permits, and until when. */
export const Grant = Schema.Struct({
  scope: Scope,
  sessionID: Schema.optionalWith(SessionID, { exact: true }),
  /** Milliseconds since the epoch. */
  expires: Schema.optionalWith(Schema.Int, { exact: true })
})
export type Grant = typeof Grant.Type

const GrantText = Schema.parseJson(Grant)
const prefix = "dbt"

const signed = (secret: AccessToken, payload: string): string =>
  createHmac("sha256", secret).update(`${prefix}.${payload}`).digest("base64url")

/** A token with less than all permissions. */
export const issue = (secret: AccessToken, grant: Grant): string => {
  const payload = Buffer.from(Schema.encodeSync(GrantText)(grant)).toString("base64url")
  return `${prefix}.${payload}.${signed(secret, payload)}`
}

const longest = 1_000

/** Whose token it is at this time; undefined for one that is not valid. The time of a comparison says nothing about the secret. */
export const callerOf = (secret: AccessToken, token: string, now: number): Caller | undefined => {
  if (token.length > longest) return undefined
  if (matches(secret, token)) return { scope: "admin", sessionID: undefined, expires: undefined }
  const [first, payload = "", signature = "", ...more] = token.split(".")
  // As texts: a reader of base64url takes many texts for the same bytes, and each would count as a token of its own.
  const [expected, given] = [Buffer.from(signed(secret, payload)), Buffer.from(signature)]
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected)
  if (first !== prefix || more.length > 0 || !isSigned) return undefined
  const grant = Schema.decodeEither(GrantText)(Buffer.from(payload, "base64url").toString("utf8"))
  if (Either.isLeft(grant)) return undefined
  const { expires, scope, sessionID } = grant.right
  return expires !== undefined && expires <= now ? undefined : { scope, sessionID, expires }
}

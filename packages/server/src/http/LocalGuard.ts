/**
 * Decides which requests a server on the loopback address answers. Every process and every page in a browser can send requests
 * there: pages of other sites are refused by `Host` and `Origin`, processes of others by the token. Pure, except for reading
 * the request. Spec: SL-217..SL-219 in specs/shell.md.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { type AccessToken, matches } from "./AccessToken.ts"
import { foreignPart, type Site } from "./Site.ts"

/** A tunnel may listen at another port. */
const here: Site = { host: "127.0.0.1", names: [], scheme: "http", origins: [] }

/** The parts of a request that decide. */
export interface Asked {
  readonly method: string
  readonly host: string | undefined
  readonly origin: string | undefined
  /** The tokens in the address. */
  readonly tokens: ReadonlyArray<string>
}

/** Why a request is refused: a status, and a sentence for the person. */
export interface Refusal {
  readonly status: 401 | 403 | 405
  readonly reason: string
}

/** The refusal of a request, or undefined for one that may be answered. The token is compared last. */
export const refusal = ({ host, method, origin, tokens }: Asked, token: AccessToken): Refusal | undefined => {
  switch (foreignPart(here, { host, origin })) {
    case "host":
      return { status: 403, reason: "this server answers only at 127.0.0.1 and localhost" }
    case "origin":
      return { status: 403, reason: "this server answers no page of another origin" }
    case undefined:
  }
  if (method !== "GET" && method !== "HEAD") return { status: 405, reason: "this server only answers GET and HEAD" }
  const [given, ...more] = tokens
  // Compared also if none was given: the time says nothing about the token.
  const isRight = matches(token, given ?? "")
  return isRight && more.length === 0
    ? undefined
    : {
        status: 401,
        reason: "the address has no token, or one that is no longer valid: use the address that the command printed"
      }
}

const asked = (request: HttpServerRequest.HttpServerRequest): Asked => ({
  method: request.method,
  host: request.headers["host"],
  origin: request.headers["origin"],
  tokens: new URLSearchParams(request.url.slice(request.url.split("?", 1)[0]?.length)).getAll("token")
})

/**
 * What every response has: nothing is stored, no other page shows or reads it, no address leaves with a link, and a page
 * loads only what its own policy permits.
 */
export const headers = (policy: string) => ({
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
})

/** A response in words. */
export const sentence = (status: number, reason: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(`${reason}\n`, { status })

/** Answers only permitted requests with the app; every response has the headers and the policy. */
export const guarded =
  (token: AccessToken, policy: string) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.gen(function* () {
      const refused = refusal(asked(yield* HttpServerRequest.HttpServerRequest), token)
      if (refused === undefined) return yield* app
      const { reason, status } = refused
      const answer = sentence(status, reason)
      return status === 405 ? HttpServerResponse.setHeader(answer, "allow", "GET, HEAD") : answer
    }).pipe(Effect.map(HttpServerResponse.setHeaders(headers(policy))))

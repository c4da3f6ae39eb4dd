/**
 * The names of a server, and which requests it answers by `Host` and `Origin`. Pages of other sites can send requests to every
 * server that a browser reaches, also under a name of their own that leads there. Pure. Spec: HT-23, HT-24, HT-505 in
 * specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { isIP } from "node:net"

/** Where a server listens, and what it is called. */
export interface Site {
  /** The address that it listens at. */
  readonly host: string
  /** Its other names, with a port if that is not any. */
  readonly names: ReadonlyArray<string>
  /** How clients reach it; `any` behind a proxy. */
  readonly scheme: "http" | "https" | "any"
  /** Origins of other sites whose pages it answers, as browsers send them. */
  readonly origins: ReadonlyArray<string>
}

const loopback = /^(?:127(?:\.\d{1,3}){3}|localhost|::1)$/i
const wildcard = new Set(["0.0.0.0", "::"])
const authority = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i

/** Whether only processes of this machine reach the address. */
export const isLoopback = (host: string): boolean => loopback.test(host)

/** An address in the form of a URL. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/** Any port is right: a tunnel or a container may show the server at another one. */
const isOwn = ({ host, names }: Site, given: string): boolean => {
  const [, bare] = authority.exec(given) ?? []
  if (bare === undefined) return false
  const name = bare.toLowerCase().replaceAll(/[[\]]/g, "")
  // An address cannot be rebound, unlike a name.
  if (wildcard.has(host) && isIP(name) !== 0) return true
  return loopback.test(name) || [host, ...names].some((own) => [name, given.toLowerCase()].includes(own.toLowerCase()))
}

const schemes = { http: ["http"], https: ["https"], any: ["http", "https"] } as const

/** A text as an origin of pages that browsers send: scheme, host, and a port that is not the scheme's own. */
export const originOf = (text: string): string | undefined => {
  const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/i.test(text)
  if (!isOrigin || !URL.canParse(text)) return undefined
  const { origin } = new URL(text)
  // Pages of apps and extensions have schemes that are not special.
  return origin === "null" ? text.toLowerCase() : origin
}

/** Whether the page that sent the request is of another site whose pages are answered. */
const isPermitted = ({ origins }: Site, origin: string | undefined): origin is string =>
  origin !== undefined && origins.includes(origin)

/** Why a request is not answered: it names another host, or a page of another origin sent it. */
export const foreignPart = (
  site: Site,
  { host, origin }: { readonly host: string | undefined; readonly origin: string | undefined }
): "host" | "origin" | undefined => {
  if (host === undefined || !isOwn(site, host)) return "host"
  if (origin === undefined) return undefined
  const own = schemes[site.scheme].map((scheme) => `${scheme}://${host.toLowerCase()}`)
  return own.includes(origin.toLowerCase()) || isPermitted(site, origin) ? undefined : "origin"
}

// Lets pages of permitted other origins read responses, and answers their preflights.

/** What pages may send, besides what they always may: with the token, and the traces that the client sends. No cookie is needed. */
const preflight = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, DELETE",
  "access-control-allow-headers":
    "authorization, b3, content-type, idempotency-key, last-event-id, traceparent, tracestate",
  "access-control-max-age": "600"
}

/** What pages may read, besides what they always may. */
const exposed = "allow, retry-after, www-authenticate"

/** Permits the page that sent the request to read its response; true if it was a preflight, which is answered. */
export const permit = (site: Site, { headers, method }: IncomingMessage, response: ServerResponse): boolean => {
  if (site.origins.length > 0) response.setHeader("vary", "origin")
  const { origin } = headers
  if (!isPermitted(site, origin)) return false
  response.setHeader("access-control-allow-origin", origin)
  response.setHeader("access-control-expose-headers", exposed)
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return false
  // A page of the internet that asks a server of the machine.
  const isPrivate = headers["access-control-request-private-network"] === "true"
  response.writeHead(204, { ...preflight, ...(isPrivate ? { "access-control-allow-private-network": "true" } : {}) })
  response.end()
  return true
}

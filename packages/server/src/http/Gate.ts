/**
 * What every request passes before an endpoint: the names of the server, its end, and its pages. Every response has
 * headers that keep browsers from storing, framing and guessing. Spec: HT-2, HT-15, HT-24, HT-26, HT-52 in
 * specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Access from "@daybook/api/wire/Access"
import { pathOf, refuse } from "./Answers.ts"
import type { Clients } from "./Clients.ts"
import { headers } from "./LocalServer.ts"
import { foreignPart, permit, type Site } from "./Site.ts"

// Finds requests that a proxy could understand differently, and so judge by another host, token or body.

/** Headers that decide, and of which there is one. Of several, Node takes the first, and others the last. */
const single: ReadonlySet<string> = new Set(["host", "authorization", "origin", "content-type", "idempotency-key"])

/** A header of which there is more than one. */
const repeated = (rawHeaders: ReadonlyArray<string>): string | undefined => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ""
    if (!single.has(name)) continue
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}

/** What is ambiguous, if anything is. */
const ambiguityIn = ({
  headers,
  httpVersion,
  rawHeaders,
  url = ""
}: Pick<IncomingMessage, "headers" | "httpVersion" | "rawHeaders" | "url">): string | undefined => {
  // An address as target names a host of its own.
  if (!url.startsWith("/") && url !== "*") return "the target is not a path"
  // The router ends the path there; others read on.
  if (/^[^?]*[;#]|#/.test(url)) return "the target has a `;` in its path, or a `#`"
  const encoding = headers["transfer-encoding"]
  // Node ignores an encoding that it does not know, and HTTP/1.0 has none.
  if (encoding !== undefined && (encoding !== "chunked" || httpVersion === "1.0")) return "the transfer encoding"
  const twice = repeated(rawHeaders)
  return twice === undefined ? undefined : `there is more than one header \`${twice}\``
}

/** A page that needs no token. */
export interface Page {
  readonly contentType: string
  readonly body: string | Uint8Array
  /** What the page may load; nothing by default. */
  readonly policy?: string
}

/** Pages by their path, made when they are read. */
export type Pages = ReadonlyMap<string, () => Page>

/** What a page, or a response that is none, may load: nothing. */
export const nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const closed = Object.entries(headers(nothing))

interface GateOptions {
  readonly site: Site
  readonly pages: Pages
  readonly ends: () => boolean
  readonly clients: Clients
  /** Bytes of a body. */
  readonly mostBody: number
}

type Show = (path: string, request: IncomingMessage, response: ServerResponse) => boolean

/** Shows pages. Their bytes are made once: a client that reads nothing holds no copy of them. */
const showing = (pages: Pages): Show => {
  const made = new Map<string, Omit<Page, "body"> & { readonly bytes: Uint8Array }>()
  return (path, { method }, response) => {
    const page = pages.get(path)
    if (page === undefined) return false
    if (method !== "GET" && method !== "HEAD") {
      refuse(response, new Access.MethodNotAllowed({ allow: ["GET", "HEAD"] }))
      return true
    }
    const known = made.get(path)
    const { bytes, contentType, policy } = known ?? encoded(page())
    if (known === undefined) made.set(path, { bytes, contentType, ...(policy === undefined ? {} : { policy }) })
    if (policy !== undefined) response.setHeader("content-security-policy", policy)
    response.writeHead(200, { "content-type": contentType, "content-length": bytes.length })
    response.end(method === "HEAD" ? undefined : bytes)
    return true
  }
}

const encoded = ({ body, contentType, policy }: Page) => ({
  bytes: typeof body === "string" ? Buffer.from(body) : body,
  contentType,
  policy
})

/** Answers the request if no endpoint should; returns whether it did. */
export const make = ({ clients, ends, mostBody, pages, site }: GateOptions) => {
  const show = showing(pages)
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    for (const [name, value] of closed) response.setHeader(name, value)
    const doubt = ambiguityIn(request)
    if (doubt !== undefined) {
      refuse(response, new Access.RequestAmbiguous({ details: doubt }))
      return true
    }
    const part = foreignPart(site, { host: request.headers.host, origin: request.headers.origin })
    if (part !== undefined) {
      refuse(response, new Access.SiteRefused({ part }))
      return true
    }
    if (permit(site, request, response)) return true
    const path = pathOf(request)
    if (ends() && path !== "/health") {
      refuse(response, new Access.Stopping())
      return true
    }
    if (Number(request.headers["content-length"] ?? 0) > mostBody) {
      refuse(response, new Access.BodyTooLarge({ most: mostBody }))
      return true
    }
    const leave = clients.request(request)
    if (leave === undefined) {
      refuse(response, new Access.TooManyRequests({ retryAfterSeconds: 1 }))
      return true
    }
    response.once("close", leave)
    return show(path, request, response)
  }
}

/**
 * What every request passes before an endpoint: the names of the server, its end, and its pages. Every response has headers
 * that keep browsers from storing, framing and guessing. Spec: HT-2, HT-24, HT-26, HT-52 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Access from "@daybook/api/wire/Access"
import { headers } from "../http/LocalGuard.ts"
import { foreignPart, type Site } from "../http/Site.ts"
import { pathOf, refuse } from "./Answers.ts"
import type { Clients } from "./Clients.ts"

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

export interface GateOptions {
  readonly site: Site
  readonly pages: Pages
  readonly ends: () => boolean
  readonly clients: Clients
  /** Bytes of a body. */
  readonly mostBody: number
}

const show = ({ method }: IncomingMessage, response: ServerResponse, { body, contentType, policy }: Page): void => {
  if (policy !== undefined) response.setHeader("content-security-policy", policy)
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  response.writeHead(200, { "content-type": contentType, "content-length": bytes.length })
  response.end(method === "HEAD" ? undefined : bytes)
}

/** Answers the request if no endpoint should; returns whether it did. */
export const make =
  ({ clients, ends, mostBody, pages, site }: GateOptions) =>
  (request: IncomingMessage, response: ServerResponse): boolean => {
    for (const [name, value] of closed) response.setHeader(name, value)
    const part = foreignPart(site, { host: request.headers.host, origin: request.headers.origin })
    if (part !== undefined) {
      refuse(response, new Access.SiteRefused({ part }))
      return true
    }
    const path = pathOf(request)
    if (ends() && path !== "/health") {
      refuse(response, new Access.Stopping())
      return true
    }
    // Node ignores an encoding that it does not know; a proxy before it may not.
    if ((request.headers["transfer-encoding"] ?? "chunked") !== "chunked") {
      response.writeHead(400, { connection: "close" }).end()
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
    const page = request.method === "GET" || request.method === "HEAD" ? pages.get(path) : undefined
    if (page === undefined) return false
    show(request, response, page())
    return true
  }

/** Lets pages of permitted other origins read responses, and answers their preflights. Spec: HT-505 in specs/http.md. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { isPermitted, type Site } from "./Site.ts"

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

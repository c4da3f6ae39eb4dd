/**
 * Finds requests that a proxy before the server could understand differently: it may have judged another host, token or body than
 * the server would answer. Node's parser refuses what cannot be parsed in one way only. Pure. Spec: HT-15 in specs/http.md.
 */
import type { IncomingMessage } from "node:http"

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
export const found = ({
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

/** Addresses as people give them, and where requests go. Pure. Spec: MD-145, MD-146 in specs/models.md. */
import type { Api } from "../Profile.ts"

/** Ends of addresses that were copied with the path of a request. */
const pasted = /\/+(?:chat\/completions|completions|responses|messages|models(?:\/.*)?)?\/*$/

/** The versions in the paths of servers that were given without a path. */
const versions: Readonly<Record<Api, string>> = {
  anthropic: "/v1",
  openai: "/v1",
  "openai-compatible": "/v1",
  gemini: "/v1beta"
}

/**
 * The base of requests: without blanks and the path of a request. Anthropic's address is usually given without the version. So is
 * that of a server of one's own, which has a port.
 */
export const baseOf = (api: Api, given: string): string => {
  const [address = "", ...query] = given.trim().replace(/#.*$/, "").split("?")
  const base = address.replace(pasted, "").replace(/\/+$/, "")
  const { pathname = "", port = "" } = URL.canParse(base) ? new URL(base) : {}
  const lacks = api === "anthropic" ? !base.endsWith("/v1") : pathname === "/" && (port !== "" || api === "gemini")
  return [lacks ? `${base}${versions[api]}` : base, ...query].join("?")
}

/** The address of a request; the query of the base stays at the end: `?api-version=`. */
export const endpoint = (base: string, path: string): string => {
  const [address = "", ...ofBase] = base.split("?")
  const [tail = "", ...ofPath] = path.split("?")
  const query = [...ofBase, ...ofPath].filter((one) => one !== "").join("&")
  return `${address}/${tail}${query === "" ? "" : `?${query}`}`
}

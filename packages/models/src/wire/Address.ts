/** Addresses as people give them, and where requests go. Pure. Spec: MD-145, MD-146 in specs/models.md. */
import type { Profile } from "../Profile.ts"

/** Ends of addresses that were copied with the path of a request. */
const pasted = /\/+(?:chat\/completions|completions|responses|messages|models(?:\/.*)?)?\/*$/

const pathOf = (address: string | undefined): string =>
  address !== undefined && URL.canParse(address) ? new URL(address).pathname.replace(/\/+$/, "") : ""

/**
 * The base of requests: without blanks and the path of a request. An address without a path gets the one that is usual for its
 * server; Anthropic's is usually given without the version.
 */
export const baseOf = ({ api, baseUrl: usual }: Pick<Profile, "api" | "baseUrl">, given: string): string => {
  const [address = "", ...query] = given.trim().replace(/#.*$/, "").split("?")
  const base = address.replace(pasted, "").replace(/\/+$/, "")
  const path = api === "anthropic" ? (base.endsWith("/v1") ? "" : "/v1") : pathOf(base) === "" ? pathOf(usual) : ""
  return [`${base}${path}`, ...query].join("?")
}

/** The address of a request; the query of the base stays at the end: `?api-version=`. */
export const endpoint = (base: string, path: string): string => {
  const [address = "", ...ofBase] = base.split("?")
  const [tail = "", ...ofPath] = path.split("?")
  const query = [...ofBase, ...ofPath].filter((one) => one !== "").join("&")
  return `${address}/${tail}${query === "" ? "" : `?${query}`}`
}

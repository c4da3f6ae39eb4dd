/** Where the page is, in the part of the address that no server sees: `#/sessions/ID/TAB?at=SEQ`, or `#/nodes`. Spec: IP-6 in specs/http.md. */
import { signal } from "@preact/signals"

export const tabs = ["transcript", "tree", "timeline", "requests", "spending", "context", "events"] as const
export type Tab = (typeof tabs)[number]

export interface Route {
  readonly sessionID: string | undefined
  readonly tab: Tab
  /** An event to show. */
  readonly at: number | undefined
  /** The nodes are shown, and no session. */
  readonly nodes: boolean
}

const isTab = (text: string | undefined): text is Tab => tabs.some((tab) => tab === text)

/** Reads the address. An unknown address is the list of sessions. */
export const parseRoute = (hash: string): Route => {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?")
  const [, sessionID, tab] = /^\/sessions\/(ses_[\w.-]+)(?:\/(\w+))?$/.exec(path) ?? []
  const at = new URLSearchParams(query).get("at")
  return {
    sessionID,
    tab: isTab(tab) ? tab : "transcript",
    at: at !== null && /^\d{1,15}$/.test(at) ? Number(at) : undefined,
    nodes: path === "/nodes"
  }
}

export const hrefOf = (sessionID: string, tab: Tab, at?: number): string =>
  `#/sessions/${sessionID}/${tab}${at === undefined ? "" : `?at=${at}`}`

export const route = signal<Route>(parseRoute(""))

/** Reads the address now: the browser tells of a change of it later. */
export const readRoute = (): Route => (route.value = parseRoute(location.hash))

/** Changes the address, and the route at once. */
export const go = (href: string): void => {
  location.hash = href
  readRoute()
}

/** Follows the address. */
export const watchRoute = (): void => {
  addEventListener("hashchange", readRoute)
  readRoute()
}

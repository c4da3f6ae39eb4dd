/**
 * The pages of the inspector, for a server of the HTTP API: its document at `/`, its files below `/inspector`. They hold no data,
 * so they need no token; the page asks the API with the token of its address. Spec: IP-1..IP-3 in specs/inspector.md.
 *
 * @module @daybook/inspector/Inspector
 */
import type { Assets } from "./Assets.ts"
import { document, icon } from "./Document.ts"
import { policy } from "./Policy.ts"

/** A page that needs no token. */
export interface Page {
  readonly contentType: string
  readonly body: string
  /** What the page may load. */
  readonly policy: string
}

const page = (contentType: string, body: string) => () => ({ contentType, body, policy })

/** The pages by their path. */
export const pages = ({ script, style }: Assets): ReadonlyMap<string, () => Page> =>
  new Map([
    ["/", page("text/html; charset=utf-8", document)],
    ["/inspector/page.js", page("text/javascript; charset=utf-8", script)],
    ["/inspector/page.css", page("text/css; charset=utf-8", style)],
    ["/inspector/icon.svg", page("image/svg+xml", icon)]
  ])

/**
 * The pages of the inspector, for a server of the HTTP API: its document at `/`, its files below `/inspector`. They hold no data,
 * so they need no token; the page asks the API with the token of its address. Spec: IP-1..IP-3 in specs/inspector.md.
 *
 * @module @daybook/inspector/Inspector
 */
import type { Assets } from "./Assets.ts"

/** Only what this origin serves is loaded, nothing is inline, and no string becomes HTML or a script. */
export const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")

/** The icon of the page: a book with a ribbon. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1d2433"/>
<path d="M9 8h12a2 2 0 0 1 2 2v14H11a2 2 0 0 1-2-2z" fill="none" stroke="#7fd1ae" stroke-width="2.5" stroke-linejoin="round"/>
<path d="M13 13h6M13 17h6" stroke="#7fd1ae" stroke-width="2.5" stroke-linecap="round"/>
</svg>
`

/** The document. */
export const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Daybook</title>
<link rel="icon" href="inspector/icon.svg">
<link rel="stylesheet" href="inspector/page.css">
<script type="module" src="inspector/page.js"></script>
</head>
<body>
<div id="app"></div>
<noscript><p>The inspector needs JavaScript.</p></noscript>
</body>
</html>
`

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

/**
 * The pages of the inspector, for a server of the HTTP API: its document at `/`, its files below `/inspector`. They hold no data,
 * so they need no token; the page asks the API with the token of its address. Spec: IP-1..IP-3 in specs/http.md.
 *
 * @module @daybook/inspector/Inspector
 */
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Assets } from "./Assets.ts"

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

/** Where a document finds its files, and what its script reads: no character in it means something in HTML. */
interface Frame {
  readonly title: string
  readonly file: (name: string) => string
  readonly body: string
  readonly without: string
}

const frame = ({ body, file, title, without }: Frame): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${file("icon.svg")}">
<link rel="stylesheet" href="${file("page.css")}">
<script type="module" src="${file("page.js")}"></script>
</head>
<body${body}>
<div id="app"></div>
<noscript><p>${without}</p></noscript>
</body>
</html>
`

const document = frame({
  title: "Daybook",
  file: (name) => `inspector/${name}`,
  body: "",
  without: "The inspector needs JavaScript."
})

/** The document of the page of live shells: of all, or of one session. The script asks for `events` with the token. */
export const shellsDocument = ({
  session,
  token
}: {
  readonly session: SessionID | undefined
  readonly token: string
}): string =>
  frame({
    title: session === undefined ? "Daybook shells" : `Daybook shells of ${session}`,
    file: (name) => `${name}?token=${token}`,
    body: ` data-token="${token}"${session === undefined ? "" : ` data-session="${session}"`}`,
    without: "This page needs JavaScript: it shows the commands when they end."
  })

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

/** The document of the live page: its frame. The script in `page/` fills it. Pure. Spec: SL-219, SL-224 in specs/shell.md. */
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { AccessToken } from "@daybook/server/http/AccessToken"

/** A picture that the script uses by its name. */
const symbol = (name: string, path: string): string => `<symbol id="icon-${name}" viewBox="0 0 16 16">${path}</symbol>`

const symbols = [
  symbol("local", '<rect x="1.5" y="2.5" width="13" height="11" rx="2"/><path d="M4.5 6l2 2-2 2M8.5 10.2h3"/>'),
  symbol(
    "ssh",
    '<path d="M6.5 9.5a3 3 0 0 0 4.3 0l2-2a3 3 0 0 0-4.3-4.3l-.8.8M9.5 6.5a3 3 0 0 0-4.3 0l-2 2a3 3 0 0 0 4.3 4.3l.8-.8"/>'
  ),
  symbol("docker", '<path d="M8 1.8l5.5 3.1v6.2L8 14.2l-5.5-3.1V4.9zM2.5 4.9L8 8l5.5-3.1M8 8v6.2"/>'),
  symbol(
    "unknown",
    '<circle cx="8" cy="8" r="6"/><path d="M6.3 6.4a1.8 1.8 0 1 1 2.5 1.7c-.5.2-.8.6-.8 1.1M8 11.4v.1"/>'
  )
].join("")

/** The document. `token` and `session` have no character that means something in HTML. */
export const document = ({
  session,
  token
}: {
  readonly session: SessionID | undefined
  readonly token: AccessToken
}): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Daybook shells</title>
<link rel="icon" href="icon.svg?token=${token}">
<link rel="stylesheet" href="page.css?token=${token}">
<script type="module" src="page.js?token=${token}"></script>
</head>
<body>
<svg class="symbols" aria-hidden="true">${symbols}</svg>
<a class="skip" href="#entries">Skip to the commands</a>
<header class="top">
<button type="button" id="menu" class="menu" aria-expanded="false" aria-controls="side">Shells</button>
<h1><span class="brand">Daybook</span> <span class="place">${session === undefined ? "shells" : `shells of ${session}`}</span></h1>
<label class="filter"><span class="hidden">Filter commands and outputs</span>
<input id="filter" type="search" placeholder="Filter commands and outputs" autocomplete="off" spellcheck="false" aria-keyshortcuts="/"><kbd aria-hidden="true">/</kbd></label>
<p id="status" class="status" role="status" data-state="reading">Reading the log</p>
</header>
<div class="columns">
<nav id="side" class="side" aria-label="Shells">
<ul id="shells" class="shells"></ul>
<p class="keys"><kbd>/</kbd> filter <kbd>Alt</kbd> <kbd>↑</kbd><kbd>↓</kbd> shells <kbd>End</kbd> newest</p>
</nav>
<main class="main">
<div id="about" class="about"></div>
<div id="scroller" class="scroller" tabindex="0" aria-label="Commands" role="region">
<p id="empty" class="empty">Reading the log</p>
<p id="dropped" class="dropped" hidden></p>
<button type="button" id="earlier" class="more" hidden>Show earlier commands</button>
<ol id="entries" class="entries"></ol>
<button type="button" id="later" class="more" hidden>Show later commands</button>
</div>
<button type="button" id="newest" class="newest" hidden>Newest</button>
</main>
</div>
<noscript><p class="empty">This page needs JavaScript: it shows the commands when they end.</p></noscript>
</body>
</html>
`

/**
 * Writes what surrounds the messages of a page: the head with its policy and styles, the list of prompts, the totals. The
 * list comes last in the file, because the prompts are known only then, and first on the screen. Spec: FM-174, FM-177.
 */
import { createHash } from "node:crypto"
import type { Session } from "@daybook/log/domain/Message"
import { htmlText, oneLine } from "./Escape.ts"
import { style } from "./PageStyle.ts"
import { minuteText } from "./Shown.ts"
import { sentences, type Totals } from "./Totals.ts"

/** Only the page's own style applies; no script runs, and nothing is loaded but pictures that the page contains. */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'"
].join("; ")

export const pageStart = ({ createdAt, id, location, title }: Session): string => {
  const name = htmlText(oneLine(title ?? id, 200))
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${name}</title>`,
    `<style>${style}</style>`,
    "</head>",
    "<body>",
    "<main>",
    `<header><h1>${name}</h1>`,
    `<p><code>${htmlText(id)}</code> in <code>${htmlText(oneLine(location.directory, 400))}</code>, ${minuteText(createdAt)}</p></header>`,
    ""
  ].join("\n")
}

export const pageEnd = (_session: Session, totals: Totals): string => {
  const prompts = totals.prompts.map(
    ({ id, words }) => `<li><a href="#${htmlText(id)}">${htmlText(words === "" ? "(no text)" : words)}</a></li>\n`
  )
  return [
    "<footer>",
    ...sentences(totals).map((sentence) => `<p>${htmlText(sentence)}</p>`),
    "</footer>",
    "</main>",
    `<nav aria-label="Prompts">\n<h2>Prompts</h2>\n<ol>\n${prompts.join("")}</ol>\n</nav>`,
    "</body>",
    "</html>",
    ""
  ].join("\n")
}

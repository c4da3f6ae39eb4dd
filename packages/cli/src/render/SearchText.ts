/** Renders the result of a search. Pure. Spec: CL-251 in specs/cli.md. */
import type { SearchedSession, SearchHit } from "@daybook/log/search/Search"
import { dateTime, oneLine } from "./Plain.ts"
import type { Style } from "./Style.ts"
import { visible } from "./Visible.ts"

/** The snippet with its marks in the style. Each piece is sanitized for itself, so that the marks stay in place. */
const marked = ({ marks, snippet }: SearchHit, style: Style): string => {
  const pieces: Array<string> = []
  let at = 0
  for (const [from, to] of marks) {
    pieces.push(visible(snippet.slice(at, from)), style.strong(visible(snippet.slice(from, to))))
    at = to
  }
  return [...pieces, visible(snippet.slice(at))].join("")
}

const hitLine = (hit: SearchHit, style: Style): string => {
  const who = hit.tool === undefined ? hit.role : oneLine(hit.tool, 24)
  return `  ${String(hit.seq).padStart(6)}  ${who.padEnd(9)}  ${style.dim(dateTime(hit.created))}  ${marked(hit, style)}\n`
}

/** A session: its id, title, folder and number of matches on a line, then a line for each hit. */
export const searchedText = ({ directory, hits, matches, sessionID, title }: SearchedSession, style: Style): string => {
  const name = title === undefined ? "" : ` "${oneLine(title, 60)}"`
  const more = matches > hits.length ? `  (${hits.length} of ${matches} matches)` : ""
  return `${style.strong(`${sessionID}${name}`)}  ${oneLine(directory, 200)}${more}\n${hits.map((hit) => hitLine(hit, style)).join("")}`
}

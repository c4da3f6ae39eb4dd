/** `daybook search`: finds texts in all sessions. `daybook history`: lists earlier prompts. Spec: CL-250..CL-253, CL-263. */
import { Effect, Layer } from "effect"
import {
  type PromptsPage,
  Search,
  type SearchedSession,
  type SearchHit,
  type SearchPage,
  type SearchProgress
} from "@daybook/log/search/Search"
import * as SqlSearch from "@daybook/log/search/SqlSearch"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { Remote } from "../host/Remote.ts"
import { dateTime, oneLine, visible } from "../render/Plain.ts"
import { plain, type Style, styleOf } from "../render/Style.ts"
import { many } from "../support/Amounts.ts"
import { UsageError } from "../support/Errors.ts"
import { Output, reporting, writeJson } from "../terminal/Output.ts"

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
const searchedText = ({ directory, hits, matches, sessionID, title }: SearchedSession, style: Style): string => {
  const name = title === undefined ? "" : ` "${oneLine(title, 60)}"`
  const more = matches > hits.length ? `  (${hits.length} of ${matches} matches)` : ""
  return `${style.strong(`${sessionID}${name}`)}  ${oneLine(directory, 200)}${more}\n${hits.map((hit) => hitLine(hit, style)).join("")}`
}

const given = {
  words: Flags.many("QUERY"),
  limit: Flags.integer("limit", "N", "at most N sessions (default: 10)", 1),
  cursor: Flags.text("cursor", "C", "the page after the one that printed this cursor"),
  rebuild: Flags.toggle("rebuild", "first build the index again from the log"),
  json: Flags.json
}

/** Reports on a terminal every few seconds how far the index is. */
const reported = Effect.gen(function* () {
  const seen: { last: SearchProgress | undefined } = { last: undefined }
  yield* reporting("2 seconds", () => {
    if (seen.last === undefined || seen.last.head === 0) return ""
    const { head, position } = seen.last
    return `indexing: ${Math.floor((100 * position) / head)} % of ${many(head, "event")}`
  })
  return (progress: SearchProgress) => Effect.sync(() => void (seen.last = progress))
})

const write = Effect.fn("Command.search.write")(function* (page: SearchPage, json: boolean) {
  const { behind, cursor, items, truncated } = page
  const output = yield* Output
  const style = output.terminal ? styleOf(process.env, true) : plain
  for (const item of items) {
    if (json) yield* writeJson(item)
    else if (output.terminal) yield* output.draw("stdout", searchedText(item, style))
    else yield* output.write(searchedText(item, style))
  }
  if (items.length === 0 && !json) yield* output.note("nothing found\n")
  if (truncated) yield* output.note("more texts match; only the newest are ranked: add a word or a filter\n")
  if (behind > 0) yield* output.note(`${many(behind, "event")} not searched: the index is behind, search again\n`)
  if (cursor !== undefined) yield* output.note(`more: --cursor ${cursor}\n`)
})

const searched = Effect.fn("Command.search")(function* ({
  cursor,
  json,
  limit = 10,
  rebuild,
  words
}: FieldValues<typeof given>) {
  const output = yield* Output
  const search = yield* Search
  const directory = yield* Folder.current
  const query = words.join(" ")
  // A faulty query is reported before the index is built.
  if (query !== "") yield* search.search({ query, directory, cursor, limit: 1 })
  const onProgress = yield* reported
  const { head } = yield* rebuild ? search.rebuild({ onProgress }) : search.update({ onProgress })
  if (rebuild) yield* output.note(`the index is built again, up to event ${head}\n`)
  if (query === "") return
  // The service returns at most 100 sessions at once.
  let [left, next] = [limit, cursor]
  while (true) {
    const page = yield* search.search({ query, directory, limit: Math.min(left, 100), cursor: next })
    left -= page.items.length
    const isLast = page.cursor === undefined || left <= 0
    yield* write(isLast ? page : { items: page.items, behind: page.behind, truncated: false }, json)
    if (isLast) return
    next = page.cursor
  }
})

const local = Layer.unwrapEffect(
  Effect.map(DatabasePath.existing, (place) => Layer.provide(SqlSearch.layer, PlaceStore.layerSearching(place)))
)

/** The search of this environment: over its server if it names one, else in its database. */
const chosen = Layer.unwrapEffect(
  Effect.gen(function* () {
    const server = yield* Remote
    if (server === undefined) return local
    return (yield* Effect.promise(() => import("../host/RemoteHost.ts"))).search(server)
  })
)

/** The best hits, each with its session, after the index is brought up to date. */
export const hits = (query: string, directory: string) =>
  Effect.gen(function* () {
    const search = yield* Search
    yield* search.update()
    const { items } = yield* search.search({ query, directory, limit: 20 })
    return items.flatMap((session) => session.hits.map((hit) => ({ session, hit })))
  }).pipe(Effect.provide(chosen))

const historyGiven = {
  words: Flags.many("WORDS"),
  limit: Flags.integer("limit", "N", "at most N prompts (default: 50)", 1),
  cwd: Flags.text("cwd", "DIR", "only prompts of this folder"),
  json: Flags.json
}

const listed = Effect.fn("Command.history")(function* ({
  cwd,
  json,
  limit = 50,
  words
}: FieldValues<typeof historyGiven>) {
  const output = yield* Output
  const search = yield* Search
  const directory = cwd === undefined ? undefined : yield* Folder.selected(cwd)
  yield* search.update({ onProgress: yield* reported })
  let [left, cursor]: [number, string | undefined] = [limit, undefined]
  do {
    const page: PromptsPage = yield* search.prompts({
      words: words.join(" "),
      directory,
      limit: Math.min(left, 1_000),
      cursor
    })
    for (const prompt of page.items) {
      yield* json
        ? writeJson(prompt)
        : output.write(`${dateTime(prompt.created)}  ${prompt.sessionID}  ${oneLine(prompt.text, 200)}\n`)
    }
    left -= page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && left > 0)
})

/** How long recall waits for the index: prompts that it does not know yet are missing. */
const patience = "500 millis"

/** The prompts for recall at a terminal, the newest first. None if the index cannot be used. */
export const recalled: Effect.Effect<ReadonlyArray<string>> = Effect.gen(function* () {
  const search = yield* Search
  yield* Effect.timeoutOption(search.update(), patience)
  const { items } = yield* search.prompts({ limit: 500 })
  return items.map(({ text }) => text)
}).pipe(
  Effect.provide(local),
  Effect.catchAll((error) => Effect.as(Effect.logDebug("earlier prompts cannot be recalled", error), []))
)

export const search = verb({
  name: "search",
  summary: "find prompts, answers and tool output in all sessions",
  words: "QUERY...",
  details: [
    'A text matches if it contains all words, in any order. "Two words" in quotes must stand next to each other, word* also ' +
      "finds longer words, and -word excludes. Case and accents do not matter. Filters: role:user, role:assistant, " +
      "role:reasoning or role:tool; tool:NAME; model:NAME; session:ID or session:TITLE; title:TEXT; cwd:DIR with the folders " +
      "below it; after: and before: a date, a time (UTC) or an age such as 7d. A filter that is given twice accepts both values.",
    "Sessions with the most relevant and most recent texts come first, each with up to three of them. The number before a " +
      "text is its event: daybook context SESSION --at N shows what the model was shown then, and daybook messages SESSION " +
      "--after N continues there.",
    "The first search builds an index beside the database; later ones add what is new. It holds words and no text, and " +
      "daybook remove erases a session from it. For a database of PostgreSQL each machine has an index of its own, from " +
      "which its next search erases what other machines removed. Only the first 64 Ki characters of a text are searched. Put -- before a " +
      "query that begins with a dash."
  ],
  given,
  examples: [
    ["daybook search login timer", "the texts with both words"],
    [`daybook search '"connection refused" tool:bash after:7d'`, "what commands printed in the last week"],
    ["daybook search migrat* cwd:. role:user", "prompts of this folder about migrations"],
    ["daybook search --json deploy model:claude | jq -r .sessionID", "the ids of the sessions"]
  ],
  overServer: true,
  run: (given) =>
    Effect.gen(function* () {
      if (given.words.join("").trim() === "" && !given.rebuild) {
        return yield* new UsageError({
          message: "say what to search: daybook search WORDS; see daybook search --help"
        })
      }
      yield* Effect.provide(Effect.scoped(searched(given)), chosen)
    })
})

export const history = verb({
  name: "history",
  summary: "list earlier prompts, the newest first",
  words: "[WORDS...]",
  details: [
    "With WORDS, it lists the prompts that have a word beginning with each of them. Prompts that repeat the next one are left " +
      "out, and so are those that agents gave each other. A prompt is on one line; --json prints it whole, with its session and " +
      "the number of its event.",
    "daybook prompt without text, on a terminal, asks for one line, and up-arrow recalls these prompts."
  ],
  given: historyGiven,
  examples: [
    ["daybook history", "the last 50 prompts"],
    ["daybook history --cwd . test fail", "prompts of this folder with words such as tests and failing"],
    ["daybook history --json --limit 1 | jq -r .text", "the last prompt, whole"]
  ],
  overServer: true,
  run: (request) => Effect.provide(Effect.scoped(listed(request)), chosen)
})

/** Runs `daybook search` and `daybook history`: brings the index up to date, and reads it. Spec: CL-250..CL-253, CL-263. */
import { Effect, Layer } from "effect"
import { type PromptsPage, Search, type SearchPage, type SearchProgress } from "@daybook/log/search/Search"
import * as SqlSearch from "@daybook/log/search/SqlSearch"
import * as Store from "@daybook/log/Store"
import * as Folder from "../arguments/Folder.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { dateTime, jsonLine, oneLine } from "../render/Plain.ts"
import { searchedText } from "../render/SearchText.ts"
import { plain, styleOf } from "../render/Style.ts"
import { many } from "../support/Amounts.ts"
import { Output } from "../terminal/Output.ts"
import { Remote } from "./Remote.ts"

export interface Request {
  readonly query: string
  readonly limit: number
  readonly cursor: string | undefined
  readonly rebuild: boolean
  readonly json: boolean
}

/** Reports on a terminal every few seconds how far the index is. */
const reported = Effect.gen(function* () {
  const output = yield* Output
  const seen: { last: SearchProgress | undefined } = { last: undefined }
  const say = Effect.suspend(() => {
    if (seen.last === undefined || seen.last.head === 0) return Effect.void
    const { head, position } = seen.last
    return output.note(`indexing: ${Math.floor((100 * position) / head)} % of ${many(head, "event")}\n`)
  })
  if (process.stderr.isTTY) yield* Effect.forkScoped(Effect.forever(Effect.delay(say, "2 seconds")))
  return (progress: SearchProgress) => Effect.sync(() => void (seen.last = progress))
})

const write = Effect.fn("Command.search.write")(function* (page: SearchPage, json: boolean) {
  const { behind, cursor, items, truncated } = page
  const output = yield* Output
  const style = output.terminal ? styleOf(process.env, true) : plain
  for (const item of items) {
    if (json) yield* output.write(`${jsonLine(item, output.terminal)}\n`)
    else if (output.terminal) yield* output.draw("stdout", searchedText(item, style))
    else yield* output.write(searchedText(item, style))
  }
  if (items.length === 0 && !json) yield* output.note("nothing found\n")
  if (truncated) yield* output.note("more texts match; only the newest are ranked: add a word or a filter\n")
  if (behind > 0) yield* output.note(`${many(behind, "event")} not searched: the index is behind, search again\n`)
  if (cursor !== undefined) yield* output.note(`more: --cursor ${cursor}\n`)
})

const searched = Effect.fn("Command.search")(function* ({ cursor, json, limit, query, rebuild }: Request) {
  const output = yield* Output
  const search = yield* Search
  const directory = yield* Folder.current
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

const searching = (filename: string) => SqlSearch.layer.pipe(Layer.provide(Store.layerReading({ filename })))

/** The search of this environment: over its server if it names one, else in its database. */
const chosen = Layer.unwrapEffect(
  Effect.gen(function* () {
    const server = yield* Remote
    if (server === undefined) return searching(yield* DatabasePath.existing)
    return (yield* Effect.promise(() => import("./RemoteMachine.ts"))).search(server)
  })
)

/** Searches the texts of all sessions. */
export const run = (request: Request) => Effect.provide(Effect.scoped(searched(request)), chosen)

export interface HistoryRequest {
  readonly words: string
  readonly directory: string | undefined
  readonly limit: number
  readonly json: boolean
}

const listed = Effect.fn("Command.history")(function* ({ directory, json, limit, words }: HistoryRequest) {
  const output = yield* Output
  const search = yield* Search
  yield* search.update({ onProgress: yield* reported })
  let [left, cursor]: [number, string | undefined] = [limit, undefined]
  do {
    const page: PromptsPage = yield* search.prompts({ words, directory, limit: Math.min(left, 1_000), cursor })
    for (const prompt of page.items) {
      const line = json
        ? jsonLine(prompt, output.terminal)
        : `${dateTime(prompt.created)}  ${prompt.sessionID}  ${oneLine(prompt.text, 200)}`
      yield* output.write(`${line}\n`)
    }
    left -= page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && left > 0)
})

/** Lists earlier prompts. */
export const history = (request: HistoryRequest) => Effect.provide(Effect.scoped(listed(request)), chosen)

/** How long recall waits for the index: prompts that it does not know yet are missing. */
const patience = "500 millis"

/** The prompts for recall at a terminal, the newest first. None if the index cannot be used. */
export const recalled = (filename: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const search = yield* Search
    yield* Effect.timeoutOption(search.update(), patience)
    const { items } = yield* search.prompts({ limit: 500 })
    return items.map(({ text }) => text)
  }).pipe(
    Effect.provide(searching(filename)),
    Effect.catchAll((error) => Effect.as(Effect.logDebug("earlier prompts cannot be recalled", error), []))
  )

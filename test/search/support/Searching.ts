/** Opens search on databases for tests, and searches them. */
import { Effect, Layer } from "effect"
import { type SearchOptions, Search } from "../../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../../packages/log/src/search/SqlSearch.ts"
import { logAt, memoryLog } from "../../support/Database.ts"

/** The log on a file, with its search. */
export const searchAt = (filename: string) => SqlSearch.layer.pipe(Layer.provideMerge(logAt(filename)))

/** The same in memory. */
export const memorySearch = SqlSearch.layer.pipe(Layer.provideMerge(memoryLog))

/** Brings the index up to date, and searches. */
export const found = Effect.fnUntraced(function* (query: string, options: Omit<SearchOptions, "query"> = {}) {
  const search = yield* Search
  yield* search.update()
  return yield* search.search({ query, ...options })
})

/** The session and sequence number of every hit, the best first. */
export const places = (query: string, options: Omit<SearchOptions, "query"> = {}) =>
  Effect.map(found(query, options), ({ items }) =>
    items.flatMap(({ hits, sessionID }) => hits.map(({ role, seq }) => [sessionID, seq, role] as const))
  )

/** The roles of all hits. */
export const roles = (query: string) => Effect.map(places(query), (all) => all.map(([, , role]) => role).toSorted())

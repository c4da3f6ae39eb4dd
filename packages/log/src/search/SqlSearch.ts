/** Implements search on the log's database and the index beside it. Contract: `Search.ts`. */
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Clock, Duration, Effect, Layer, Option, Schema } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { EventLog, type LogUnavailable } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { type DatabaseError, ReadSql } from "../storage/Database.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { fileOf, openIndex, reset, searchPath } from "../storage/SearchFile.ts"
import { clamp } from "../support/Clamp.ts"
import { withSpan } from "../support/Spans.ts"
import { Role } from "./Document.ts"
import { readDocuments } from "./Documents.ts"
import * as Indexing from "./Indexing.ts"
import * as Matching from "./Matching.ts"
import { type Named, withNames } from "./Names.ts"
import { markText, parse, type Query } from "./Query.ts"
import { prompts } from "./Prompts.ts"
import { type Group, rank, type Scored } from "./Ranking.ts"
import {
  Search,
  type SearchedSession,
  type SearchHit,
  type SearchOptions,
  type SearchPage,
  type UpdateOptions
} from "./Search.ts"
import * as Snippets from "./Snippets.ts"

/** Hits shown of one session. */
const hitLimit = 3

/** A page's place: the newest position and the time that its first page had, and the sessions before it. */
const Cursor = Schema.parseJson(Schema.Tuple(Schema.NonNegativeInt, Schema.Int, Schema.NonNegativeInt))

const cursorOf = (cursor: string) =>
  Effect.mapError(
    Schema.decodeUnknown(Cursor)(Buffer.from(cursor, "base64url").toString()),
    () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
  )

interface SessionRow {
  readonly session: number
  readonly id: string
  readonly title: string | null
  readonly directory: string
}

const selectShown = (log: SqlClient.SqlClient, groups: ReadonlyArray<Group>) =>
  log<SessionRow>`SELECT q.session, s.id, s.title, s.directory FROM event_sequence q JOIN session s ON s.id = q.session_id
    WHERE q.session IN (SELECT value FROM json_each(${JSON.stringify(groups.map(({ session }) => session))}))`

const toHit = (scored: Scored, document: Named, shown: Snippets.Snippet): SearchHit => ({
  seq: scored.seq,
  role: Role.literals[scored.role] ?? "tool",
  ...(document.tool === "" ? {} : { tool: document.tool }),
  ...(document.model === "" ? {} : { model: document.model }),
  created: scored.created,
  ...shown,
  score: scored.score
})

interface Connections extends Indexing.Places {
  readonly shown: SqlClient.SqlClient
}

/** The sessions of a page with their hits. */
const present = Effect.fnUntraced(function* ({ log, shown }: Connections, groups: ReadonlyArray<Group>, query: Query) {
  const sessions = new Map((yield* selectShown(log, groups)).map((row) => [row.session, row]))
  // A session without a row was removed after it was indexed.
  const found = groups.flatMap(({ members, session }) => {
    const row = sessions.get(session)
    if (row === undefined) return []
    return [{ row, members, sessionID: SessionID.make(row.id, { disableValidation: true }) }]
  })
  const best = found.flatMap(({ members, sessionID }) =>
    members.slice(0, hitLimit).map((scored) => ({ ...scored, sessionID }))
  )
  const read = yield* withNames(log, [...(yield* readDocuments(log, best)).values()])
  const documents = new Map(read.map((document) => [document.position, document]))
  const texts = best.map(({ position }) => documents.get(position)?.text ?? "")
  const snippets = yield* Snippets.snippets(shown, texts, markText(query))
  const hits = new Map<number, SearchHit>()
  best.forEach((scored, at) => {
    const [document, snippet] = [documents.get(scored.position), snippets[at]]
    if (document !== undefined && snippet !== undefined) hits.set(scored.position, toHit(scored, document, snippet))
  })
  return found.map(({ members, row: { directory, title }, sessionID }): SearchedSession => ({
    sessionID,
    ...(title === null ? {} : { title }),
    directory,
    matches: members.length,
    hits: Arr.filterMap(members.slice(0, hitLimit), ({ position }) => Option.fromNullable(hits.get(position)))
  }))
})

const run = Effect.fnUntraced(function* (
  places: Connections,
  { cursor, directory, limit: asked, query: text }: SearchOptions
) {
  const limit = clamp(asked, 10, 100)
  const time = yield* Clock.currentTimeMillis
  const { head, position } = yield* Indexing.progress(places)
  const [through, now, skip] = cursor === undefined ? [position, time, 0] : yield* cursorOf(cursor)
  const query = yield* parse(text, now)
  const { adjacent, candidates, truncated } = yield* Matching.select(places, query, directory ?? process.cwd(), through)
  const groups = rank(candidates, adjacent, now)
  const items = yield* present(places, groups.slice(skip, skip + limit), query)
  const page = { items, truncated, behind: head - position }
  if (groups.length <= skip + limit) return page satisfies SearchPage
  const next = JSON.stringify([through, now, skip + limit])
  return { ...page, cursor: Buffer.from(next).toString("base64url") } satisfies SearchPage
})

/** Pauses for three times as long as the step took. */
const gentle: Indexing.Paced = (step) =>
  Effect.flatMap(Effect.timed(step), ([took, result]) =>
    Effect.as(Effect.sleep(Duration.max(Duration.times(took, 3), Duration.millis(5))), result)
  )

/** Steps follow each other; the event loop serves others in between. */
const brisk: Indexing.Paced = (step) => Effect.zipLeft(step, Effect.yieldNow())

type Failed<E> = Exclude<E, SqlError> | LogUnavailable

const reading = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Failed<E>> =>
  Effect.mapError(retryBusy(effect), (error) =>
    error instanceof SqlError ? unavailable("search")(error) : (error as Exclude<E, SqlError>)
  )

const make = Effect.gen(function* () {
  const log = yield* ReadSql
  const writer = yield* SqlClient.SqlClient
  const file = yield* Effect.orDie(fileOf(writer))
  const index = yield* openIndex(file === "" ? ":memory:" : searchPath(file))
  const places: Connections = { log, index, shown: yield* Snippets.openTable }
  const alone = (yield* Effect.makeSemaphore(1)).withPermits(1)

  const update = ({ gently = false, onProgress = () => Effect.void }: UpdateOptions = {}) =>
    reading(Indexing.update(places, gently ? gentle : brisk, onProgress))

  return Search.of({
    search: (options) => withSpan("Search.search")(reading(run(places, options))),
    prompts: (options = {}) => withSpan("Search.prompts")(reading(prompts(places, options))),
    update: (options) => withSpan("Search.update")(alone(update(options))),
    rebuild: (options) => withSpan("Search.rebuild")(alone(Effect.zipRight(reading(reset(index)), update(options)))),
    progress: reading(Indexing.progress(places))
  })
})

/** Search over the database in the context. It opens the index, and creates an empty one if there is none. */
export const layer: Layer.Layer<Search, DatabaseError, SqlClient.SqlClient | ReadSql> = Layer.scoped(Search, make)

/** How long new events wait for others, so that they are indexed together. */
const linger = "1 second"

const following = Effect.gen(function* () {
  const [search, log] = [yield* Search, yield* EventLog]
  const changed = yield* log.changes()
  yield* search.update({ gently: true }).pipe(
    Effect.catchAllCause((cause) => Effect.logWarning("the search index was not updated; it is tried again", cause)),
    Effect.zipRight(changed),
    Effect.zipRight(Effect.sleep(linger)),
    Effect.forever,
    Effect.forkScoped
  )
})

/**
 * Keeps the index current in the background until the scope closes. A failed run is logged, and the next event tries again.
 * Without a usable index it logs a warning and does nothing.
 */
export const layerFollowing: Layer.Layer<never, never, EventLog | SqlClient.SqlClient | ReadSql> = Layer.scopedDiscard(
  following
).pipe(
  Layer.provide(layer),
  Layer.catchAll((error) => Layer.effectDiscard(Effect.logWarning(`search is not kept current: ${error.message}`)))
)

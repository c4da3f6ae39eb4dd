/**
 * Implements search on the log's database and its index: queries, snippets, and the history of prompts. Contract:
 * `Search.ts`. Spec: SE-2, SE-6, SE-43, SE-50..SE-53 in specs/storage.md.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Array as Arr, Clock, Duration, Effect, Either, Layer, Option, Schema, ScopedRef } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { EventLog, type LogUnavailable } from "../log/EventLog.ts"
import { selectEvents, toEvent, unavailable } from "../log/EventRow.ts"
import { type DatabaseError, open, ReadSql } from "../storage/Database.ts"
import * as Dialect from "../storage/Dialect.ts"
import { discard, indexPath, makeErasing, openIndex, reset } from "../storage/SearchFile.ts"
import { directly, reasonOf, retryBusy } from "../storage/Transaction.ts"
import { selectBySeq } from "../store/Content.ts"
import { clamp } from "../support/Clamp.ts"
import { withSpan } from "../support/Spans.ts"
import { type Document, documentOf, Role } from "./Document.ts"
import * as Indexing from "./Indexing.ts"
import { type Named, type Places, withNames } from "./Indexing.ts"
import * as Matching from "./Matching.ts"
import { type Group, rank, type Scored } from "./Matching.ts"
import { itemLimit, joined, lengthLimit, markText, parse, promptText, type Query, separated } from "./Query.ts"
import {
  type PastPrompt,
  type PromptsOptions,
  type PromptsPage,
  Search,
  type SearchedSession,
  type SearchHit,
  type SearchOptions,
  type SearchPage,
  type UpdateOptions
} from "./Search.ts"

// Reads the texts of indexed documents back from the log, also those that retention moved to blocks.

/** Where a document's event is. */
export interface EventPlace {
  readonly sessionID: SessionID
  readonly seq: number
  readonly position: number
}

/** The documents by position. Those whose event cannot be read are absent. */
const readDocuments = (
  log: SqlClient.SqlClient,
  places: ReadonlyArray<EventPlace>
): Effect.Effect<ReadonlyMap<number, Document>, SqlError> =>
  Effect.gen(function* () {
    const positions = places.map(({ position }) => position)
    const rows = yield* selectEvents(
      log,
      log`WHERE e.position IN (SELECT value FROM ${Dialect.numbers(log, positions)})`
    )
    const events = Arr.filterMap(rows, (row) => Option.flatMap(toEvent(row), Either.getRight))
    const stored = new Set(events.map(({ position }) => position))
    const pruned = Arr.groupBy(
      places.filter(({ position }) => !stored.has(position)),
      ({ sessionID }) => sessionID
    )
    const kept = yield* Effect.forEach(Object.values(pruned), (some) =>
      selectBySeq(
        log,
        some[0].sessionID,
        some.map(({ seq }) => seq)
      )
    )
    const blocks = kept.flatMap((each) => Arr.filterMap([...each.values()], Either.getRight))
    const documents = Arr.filterMap([...events, ...blocks], documentOf)
    return new Map(documents.map((document) => [document.position, document]))
  })

// Lists the prompts that people typed, the newest first: from the index, so that there is no second copy.

/** Matches that are read at once. */
const portion = 200

const Count = Schema.NumberFromString.pipe(Schema.int(), Schema.nonNegative())

/** The time and the position of the last prompt of a page. */
const PromptCursor = Schema.TemplateLiteralParser(Count, ":", Count)

type Row = { readonly session: number; readonly id: string; readonly directory: string }

type Match = { readonly position: number; readonly session: number; readonly seq: number; readonly created: number }

type Last = Pick<Match, "created" | "position">

/** The next prompts before a prompt, the newest first. An import stores old prompts, so the times decide. */
const selectMatches = (index: Places["index"], match: string | undefined, { created, position }: Last) =>
  index<Match>`SELECT position, session, seq, created FROM document INDEXED BY document_prompt
    WHERE role = 0 AND (created, position) < (${created}, ${position})
      ${match === undefined ? index`` : index`AND position IN (SELECT rowid FROM terms WHERE terms MATCH ${match})`}
    ORDER BY created DESC, position DESC LIMIT ${portion}`

const numbersOf = (log: SqlClient.SqlClient, of: ReadonlyArray<{ readonly session: number }>) =>
  Dialect.numbers(
    log,
    of.map(({ session }) => session)
  )

/** The sessions of matches without those that agents created, and only those of the folder if there is one. */
const selectPromptRows = (log: Places["log"], matches: ReadonlyArray<Match>, directory: string | undefined) =>
  log<Row>`SELECT q.session, s.id, s.directory FROM event_sequence q JOIN session s ON s.id = q.session_id
    WHERE q.session IN (SELECT value FROM ${numbersOf(log, matches)})
      AND s.parent_id IS NULL ${directory === undefined ? log`` : log`AND s.directory = ${directory}`}`

/** The prompts of the matches, in their order. */
const read = Effect.fnUntraced(function* (
  log: Places["log"],
  matches: ReadonlyArray<Match>,
  directory: string | undefined
) {
  const rows = new Map((yield* selectPromptRows(log, matches, directory)).map((row) => [row.session, row]))
  const shown = matches.flatMap((match) => {
    const row = rows.get(match.session)
    return row === undefined ? [] : [{ ...match, row, sessionID: SessionID.make(row.id, { disableValidation: true }) }]
  })
  const documents = yield* readDocuments(log, shown)
  return Arr.filterMap(shown, ({ created, position, row, seq, sessionID }) =>
    Option.map(Option.fromNullable(documents.get(position)), ({ text }) => ({
      place: { created, position },
      prompt: { sessionID, seq, created, directory: row.directory, text: text.trim() } satisfies PastPrompt
    }))
  )
})

const lastOf = (cursor: string) =>
  Schema.decodeUnknown(PromptCursor)(cursor).pipe(
    Effect.map(([created, , position]): Last => ({ created, position })),
    Effect.mapError(
      () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
    )
  )

const newest: Last = { created: Number.MAX_SAFE_INTEGER, position: 0 }

export const prompts = Effect.fnUntraced(function* (
  places: Places,
  { cursor, directory, limit: asked, words = "" }: PromptsOptions
) {
  const limit = clamp(asked, 50, 1_000)
  const terms = words.split(/\s+/).filter((word) => word !== "")
  if (words.length > lengthLimit || terms.length > itemLimit) {
    const details = `use ${lengthLimit} characters and ${itemLimit} words at most`
    return yield* new InvalidInput({ field: "words", details })
  }
  const match = promptText(terms)
  let last = cursor === undefined ? newest : yield* lastOf(cursor)
  const items: Array<PastPrompt> = []
  // The index may belong to another log. The next update empties it.
  if ((yield* Indexing.progress(places)).position === 0) return { items } satisfies PromptsPage
  for (;;) {
    const matches = yield* selectMatches(places.index, match, last)
    for (const { place, prompt } of yield* read(places.log, matches, directory)) {
      if (prompt.text === "" || prompt.text === items.at(-1)?.text) continue
      if (items.length === limit) return { items, cursor: `${last.created}:${last.position}` } satisfies PromptsPage
      items.push(prompt)
      last = place
    }
    const oldest = matches.at(-1)
    if (oldest === undefined || matches.length < portion) return { items } satisfies PromptsPage
    last = oldest
  }
})

// Shows the matches of a text in their surroundings, with the tokenizer that built the index.

const [wordLimit, charLimit] = [24, 320]

/** Invisible characters that no word has. */
const [begin, end] = ["\u2061", "\u2062"]

/** A part of a text, and where its matches are. */
export interface Snippet {
  readonly snippet: string
  readonly marks: ReadonlyArray<readonly [number, number]>
}

export const openTable = Effect.gen(function* () {
  const sql = yield* open({ filename: ":memory:" })
  yield* Effect.orDie(
    sql`CREATE VIRTUAL TABLE shown USING fts5(text, detail=full, tokenize="unicode61 remove_diacritics 2")`
  )
  return sql
}).pipe(Effect.provide(Reactivity.layer))

const unmarked = (text: string): Snippet => {
  const marks: Array<readonly [number, number]> = []
  let [snippet, from] = ["", 0]
  for (const piece of joined(text)
    .replaceAll(/\s+/g, " ")
    .trim()
    .split(/([\u2061\u2062])/)) {
    if (piece === begin) from = snippet.length
    else if (piece === end) marks.push([from, snippet.length])
    else snippet += piece
  }
  if (snippet.length <= charLimit) return { snippet, marks }
  // A word of thousands of characters, such as encoded data.
  const start = Math.max(0, Math.min((marks[0]?.[0] ?? 0) - 40, snippet.length - charLimit))
  const cut = snippet.slice(start, start + charLimit)
  const shift = start > 0 ? start - 1 : 0
  return {
    snippet: `${start > 0 ? "…" : ""}${cut}${start + charLimit < snippet.length ? "…" : ""}`,
    marks: marks.flatMap(([a, b]) =>
      a < start + charLimit ? [[a - shift, Math.min(b, start + charLimit) - shift] as const] : []
    )
  }
}

const plain = (text: string) => unmarked(text.length > charLimit ? `${text.slice(0, charLimit - 1)}…` : text)

const without = (text: string) => text.replaceAll(/[\u2061\u2062]/g, " ").replaceAll("\0", " ")

/** The snippet of each text. Without words to mark, a text's beginning. */
export const makeSnippets = (sql: SqlClient.SqlClient, texts: ReadonlyArray<string>, match: string | undefined) =>
  match === undefined
    ? Effect.succeed(texts.map((text) => plain(without(text))))
    : directly(sql, (statements) => {
        try {
          texts.forEach((text, at) =>
            statements.run("INSERT INTO shown (rowid, text) VALUES (?, ?)", [at + 1, separated(without(text))])
          )
          const found = statements.all<{ readonly at: number; readonly text: string }>(
            `SELECT rowid - 1 AS at, snippet(shown, 0, char(8289), char(8290), '…', ${wordLimit}) AS text
              FROM shown WHERE shown MATCH ?`,
            [match]
          )
          const marked = new Map(found.map(({ at, text }) => [at, text]))
          return texts.map((text, at) => {
            const shown = marked.get(at)
            return shown === undefined ? plain(without(text)) : unmarked(shown)
          })
        } finally {
          statements.run("DELETE FROM shown", [])
        }
      })

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
    WHERE q.session IN (SELECT value FROM ${numbersOf(log, groups)})`

const toHit = (scored: Scored, document: Named, shown: Snippet): SearchHit => ({
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
  const snippets = yield* makeSnippets(shown, texts, markText(query))
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
  const path = yield* Effect.orDie(indexPath(yield* SqlClient.SqlClient))
  const shown = yield* openTable
  const opened = Effect.map(openIndex(path), (index) => {
    const places: Connections = { log, index, shown }
    return { places, erasing: makeErasing(log, index) }
  })
  type Opened = Effect.Effect.Success<typeof opened>
  const current = yield* ScopedRef.fromAcquire(opened)
  const alone = (yield* Effect.makeSemaphore(1)).withPermits(1)
  const renewing = (yield* Effect.makeSemaphore(1)).withPermits(1)

  /** Replaces a damaged index with an empty one, unless another fiber has done that. */
  const renew = (damaged: Opened) =>
    renewing(
      Effect.flatMap(ScopedRef.get(current), (now) =>
        now === damaged ? ScopedRef.set(current, Effect.zipRight(discard(path), opened)) : Effect.void
      )
    )

  /** Uses the index; if it is found to be damaged, again with a new one (SE-5). A damaged log keeps its index. */
  const using = <A, E>(use: (opened: Opened) => Effect.Effect<A, E>) =>
    reading(
      Effect.flatMap(ScopedRef.get(current), (found) =>
        Effect.catchAll(use(found), (error): Effect.Effect<A, E | SqlError> => {
          const again = Effect.zipRight(
            Effect.mapError(renew(found), () => error),
            Effect.flatMap(ScopedRef.get(current), use)
          )
          return reasonOf(error) === "corrupt"
            ? Effect.if(Indexing.isDamaged(found.places.index), {
                onTrue: () => again,
                onFalse: () => Effect.fail(error)
              })
            : Effect.fail(error)
        })
      )
    )

  const update = ({ gently = false, onProgress = () => Effect.void }: UpdateOptions = {}) =>
    using(({ erasing, places }) => Indexing.update(places, erasing, gently ? gentle : brisk, onProgress))

  const emptied = using(({ places }) => reset(places.index))

  return Search.of({
    search: (options) => withSpan("Search.search")(using(({ places }) => run(places, options))),
    prompts: (options = {}) => withSpan("Search.prompts")(using(({ places }) => prompts(places, options))),
    update: (options) => withSpan("Search.update")(alone(update(options))),
    rebuild: (options) => withSpan("Search.rebuild")(alone(Effect.zipRight(emptied, update(options)))),
    progress: using(({ places }) => Indexing.progress(places))
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

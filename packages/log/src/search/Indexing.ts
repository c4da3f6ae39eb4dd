/**
 * Keeps the index current, in small steps: reads events after the index's position, and stores their documents and the
 * new position in one transaction of the index. Any process may take the next step. Spec: SE-1..SE-9, SE-11, SE-60,
 * SE-61.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either, Metric, Option } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { selectEvents, toEvent, unavailable } from "../log/EventRow.ts"
import type * as Connection from "../storage/Connection.ts"
import { ReadSql } from "../storage/Database.ts"
import * as Dialect from "../storage/Dialect.ts"
import { indexPath, openExisting, reset } from "../storage/SearchFile.ts"
import { directly, immediately, reasonOf, retryBusy } from "../storage/Transaction.ts"
import { type Blocks, makeBlocks, selectBySeq, selectKeptParts } from "../store/Content.ts"
import * as Metrics from "../support/Metrics.ts"
import { type Document, documentOf, Role, storedNames } from "./Document.ts"
import { roleTag, separated, sessionTag } from "./Query.ts"

// Finds the tool and the model of documents: their own events do not repeat them.

/** A document with the names of its tool and its model; empty if it has none. */
export type Named = Document & { readonly tool: string; readonly model: string }

interface Row {
  readonly tool: string | null
  readonly messageID: string | null
  /** The event that made the message: its sequence number, and its position, null if it was pruned. */
  readonly seq: number | null
  readonly position: number | null
}

const selectRows = (sql: SqlClient.SqlClient, documents: ReadonlyArray<Document>) => {
  const asked = documents.map(({ callID, messageID, sessionID }) => [sessionID, messageID ?? null, callID ?? null])
  return sql<Row>`SELECT p.name AS tool, j.value ->> 1 AS "messageID", m.seq, e.position
    FROM ${Dialect.rows(sql, asked)}
      LEFT JOIN event_sequence q ON q.session_id = j.value ->> 0
      LEFT JOIN session_part p ON p.session = q.session AND p.message_id = j.value ->> 1 AND p.kind = 'tool'
        AND p.key = j.value ->> 2
      LEFT JOIN session_message m ON m.id = j.value ->> 1 AND m.session = q.session
      LEFT JOIN event e ON e.session = m.session AND e.seq = m.seq
    ORDER BY j.key`
}

const modelOf = (event: SessionEvent): string =>
  event.type === "session.next.step.started" ? `${event.data.model.providerID}/${event.data.model.id}` : ""

type BlocksOf = (sessionID: SessionID) => Blocks

const selectNames = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  documents: ReadonlyArray<Document>,
  rows: ReadonlyArray<Row>,
  blocksOf: BlocksOf
) {
  const [models, tools] = [new Map<string, string>(), new Map<string, string>()]
  const add = (event: Either.Either<SessionEvent, unknown>) => {
    if (Either.isLeft(event) || event.right.type !== "session.next.step.started") return
    models.set(event.right.data.assistantMessageID, modelOf(event.right))
  }
  const positions = [...new Set(rows.flatMap(({ position }) => (position === null ? [] : [position])))]
  if (positions.length > 0) {
    const found = yield* selectEvents(
      sql,
      sql`WHERE e.position IN (SELECT value FROM ${Dialect.numbers(sql, positions)})`
    )
    for (const row of found) {
      const event = toEvent(row)
      if (Option.isSome(event)) add(event.value)
    }
  }
  const pruned = new Map<string, Map<number, string>>()
  rows.forEach(({ messageID, position, seq }, at) => {
    const id = documents[at]?.sessionID
    if (id === undefined || position !== null || seq === null || messageID === null) return
    pruned.set(id, (pruned.get(id) ?? new Map<number, string>()).set(seq, messageID))
  })
  for (const [id, messages] of pruned) {
    const sessionID = SessionID.make(id, { disableValidation: true })
    const blocks = blocksOf(sessionID)
    for (const event of (yield* selectBySeq(sql, sessionID, messages.keys(), blocks)).values()) add(event)
    for (const { key, message, name } of yield* selectKeptParts(blocks, [...messages.keys()])) {
      if (name !== null) tools.set(`${messages.get(message)} ${key}`, name)
    }
  }
  return { models, tools }
})

/** The documents with the names of their tools and models. */
export const withNames = (
  sql: SqlClient.SqlClient,
  documents: ReadonlyArray<Document>,
  blocksOf: BlocksOf = (sessionID) => makeBlocks(sql, sessionID)
): Effect.Effect<ReadonlyArray<Named>, SqlError.SqlError> =>
  documents.length === 0
    ? Effect.succeed([])
    : Effect.gen(function* () {
        const rows = yield* selectRows(sql, documents)
        const { models, tools } = yield* selectNames(sql, documents, rows, blocksOf)
        return documents.map((document, at) => ({
          ...document,
          tool: document.tool ?? rows[at]?.tool ?? tools.get(`${document.messageID} ${document.callID}`) ?? "",
          model: models.get(document.messageID ?? "") ?? ""
        }))
      })

export interface Places {
  readonly log: SqlClient.SqlClient
  readonly index: SqlClient.SqlClient
}

/** What a step reads at most: positions, events, and bytes of payloads; one event may be longer. */
const [span, most, mostBytes] = [4_096, 128, 32 * 1024]

const dayLength = 86_400_000

/** How far the index is, and the last position of the log. */
export interface Progress {
  readonly position: number
  readonly head: number
}

interface State {
  readonly identity: string
  readonly position: number
  readonly compared: number
  readonly checksum: number
}

const selectState = (index: SqlClient.SqlClient) =>
  Effect.map(index<State>`SELECT identity, position, compared, checksum FROM state WHERE one = 1`, ([state]) => state)

type Origin = { readonly identity: string; readonly head: number; readonly checksum: number | null }

/**
 * Where the log is, and the state of the index; none if it is of another log, or of another past of this log, such as a
 * restored copy. The event of the last position may be pruned or removed by now.
 */
const selectOrigin = Effect.fnUntraced(function* ({ index, log }: Places) {
  const state = yield* selectState(index)
  const [origin] = yield* log<Origin>`SELECT identity, ${Dialect.newestPosition(log)} AS head,
      (SELECT checksum FROM event WHERE position = ${state?.compared ?? 0}) AS checksum
    FROM log_identity WHERE one = 1`
  if (origin === undefined) return yield* Effect.dieMessage("the database has no identity")
  const { checksum, head, identity } = origin
  const fits =
    state?.identity === identity && state.position <= head && (checksum === null || checksum === state.checksum)
  return { identity, head, state: fits ? state : undefined, isEmpty: state === undefined }
})

/** How far the index is. One that does not fit the log is as an empty one. */
export const progress = (places: Places): Effect.Effect<Progress, SqlError.SqlError> =>
  Effect.map(selectOrigin(places), ({ head, state }) => ({ position: state?.position ?? 0, head }))

/** Empties an index that does not fit the log. */
const settle = Effect.fnUntraced(function* (places: Places) {
  const { index } = places
  const { identity, isEmpty, state } = yield* selectOrigin(places)
  if (state !== undefined) return
  if (!isEmpty) yield* reset(index)
  yield* retryBusy(index`INSERT INTO state (one, identity, position, compared, checksum)
    VALUES (1, ${identity}, 0, 0, 0) ON CONFLICT DO NOTHING`)
})

type Key = { readonly position: number; readonly bytes: number }

/** The numbers of the names whose events may have a document. */
const selectTypes = (log: SqlClient.SqlClient) =>
  log`SELECT type FROM event_type WHERE name IN (SELECT value FROM ${Dialect.texts(log, storedNames)})`

const selectNext = Effect.fnUntraced(function* (log: SqlClient.SqlClient, after: number, head: number) {
  const end = Math.min(after + span, head)
  const keys = yield* log<Key>`SELECT position, ${log.literal(Dialect.bytesOf(log, "data"))} AS bytes FROM event
    WHERE position > ${after} AND position <= ${end} AND type IN (${selectTypes(log)})
    ORDER BY position LIMIT ${most}`
  let bytes = 0
  const chosen = keys.filter((key, at) => (bytes += key.bytes) <= mostBytes || at === 0)
  const last = chosen.at(-1)
  const isWhole = chosen.length === keys.length && keys.length < most
  return { positions: chosen.map(({ position }) => position), end: isWhole || last === undefined ? end : last.position }
})

/** Events of removed sessions and unreadable ones have no documents. */
const readable = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>): ReadonlyArray<SessionEvent> =>
  Arr.filterMap(rows, (row) => Option.flatMap(toEvent(row), Either.getRight))

const checksums = (rows: ReadonlyArray<Readonly<Record<string, unknown>>>) => {
  const last = rows.at(-1)
  return last === undefined ? undefined : { compared: Number(last["position"]), checksum: Number(last["checksum"]) }
}

/** A move of the index's position; not done if another process has moved it meanwhile. */
interface Move {
  readonly from: number
  readonly to: number
  readonly compared: { readonly compared: number; readonly checksum: number } | undefined
}

interface SessionKey {
  readonly session: number
  readonly session_id: string
  /** The position of its first event. */
  readonly first: number
}

const insert = (index: Connection.Statements, session: number, document: Named) => {
  const { created, model, position, role, seq, text, tool } = document
  const added = index.run(
    "INSERT INTO document (position, session, seq, role, created, size) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    [position, session, seq, Role.literals.indexOf(role), created, text.length]
  )
  if (added === 0) return
  const tag = `${sessionTag(session)} ${roleTag(role)}`
  index.run("INSERT INTO terms (rowid, text, tag, tool, model) VALUES (?, ?, ?, ?, ?)", [
    position,
    separated(text),
    tag,
    separated(tool),
    separated(model)
  ])
  index.run("INSERT INTO session (session) VALUES (?) ON CONFLICT DO NOTHING", [session])
  index.run(
    `INSERT INTO day (day, first, last) VALUES (?, ?, ?)
      ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)`,
    [Math.floor(created / dayLength), position, position]
  )
}

const selectKeys = (log: SqlClient.SqlClient, documents: ReadonlyArray<Document>) => {
  const ids = [...new Set(documents.map(({ sessionID }) => sessionID))]
  if (ids.length === 0) return Effect.succeed([])
  return log<SessionKey>`SELECT session, session_id, coalesce(incarnation, 0) AS first FROM event_sequence
    WHERE session_id IN (SELECT value FROM ${Dialect.texts(log, ids)})`
}

const insertAll = (
  statements: Connection.Statements,
  documents: ReadonlyArray<Named>,
  sessions: ReadonlyArray<SessionKey>,
  move: Move | undefined
) => {
  const [state] = statements.all<State>("SELECT position FROM state WHERE one = 1", [])
  if (move !== undefined && state?.position !== move.from) return
  const keys = new Map(sessions.map((key) => [key.session_id, key]))
  for (const document of documents) {
    const key = keys.get(document.sessionID)
    // An earlier position belongs to a removed session of this id.
    if (key !== undefined && document.position >= key.first) insert(statements, key.session, document)
  }
  if (move === undefined) return
  statements.run("UPDATE state SET position = ? WHERE one = 1", [move.to])
  if (move.compared === undefined) return
  statements.run("UPDATE state SET compared = ?, checksum = ? WHERE one = 1", [
    move.compared.compared,
    move.compared.checksum
  ])
}

/**
 * Stores documents and moves the position. Looks sessions up under the lock: a later removal from a file waits for it. The
 * next update erases the documents of a session that was removed from PostgreSQL meanwhile.
 */
const store = ({ index, log }: Places, documents: ReadonlyArray<Named>, move: Move | undefined) =>
  Effect.scoped(
    // Reserved before the lock, so that nothing waits for the log's connection under it.
    Effect.flatMap(log.reserve, (connection) =>
      immediately(index)(
        Effect.flatMap(
          Effect.provideService(selectKeys(log, documents), SqlClient.TransactionConnection, [connection, 0]),
          (sessions) => directly(index, (statements) => insertAll(statements, documents, sessions, move))
        )
      )
    )
  ).pipe(retryBusy)

/** Indexes the next events. Returns how far the index is then. */
const step = Effect.fnUntraced(function* (places: Places) {
  const { head, position } = yield* progress(places)
  if (position >= head) return { head, position }
  const { end, positions } = yield* selectNext(places.log, position, head)
  const rows =
    positions.length === 0
      ? []
      : yield* selectEvents(
          places.log,
          places.log`WHERE e.position IN (SELECT value FROM ${Dialect.numbers(places.log, positions)}) ORDER BY e.position`
        )
  const documents = yield* withNames(places.log, Arr.filterMap(readable(rows), documentOf))
  yield* store(places, documents, { from: position, to: end, compared: checksums(rows) })
  return { head, position: end }
})

type Floor = { readonly session_id: SessionID; readonly floor: number; readonly position: number }

/** The sessions from which events after the position were pruned before they were indexed. */
const selectFloors = (log: SqlClient.SqlClient, position: number) =>
  log<Floor>`SELECT f.session_id, q.floor, f.position FROM session_floor f
    JOIN event_sequence q ON q.session_id = f.session_id WHERE f.position > ${position}`

/** Indexes what is left of a session's pruned events. */
const indexKept = Effect.fnUntraced(function* (places: Places, { floor, session_id }: Floor, position: number) {
  const blocks = makeBlocks(places.log, session_id)
  for (let after = -1; after < floor;) {
    const block = yield* blocks.next({ from: after, through: floor })
    if (block === undefined) return
    after = block.last
    const rows = Either.match(block.content, { onLeft: () => [], onRight: (content) => content.rows() })
    for (const some of Arr.chunksOf(rows, 64)) {
      const documents = Arr.filterMap(some, (row) =>
        toEvent(row).pipe(
          Option.flatMap(Either.getRight),
          Option.flatMap(documentOf),
          Option.filter((document) => document.position > position)
        )
      )
      if (documents.length === 0) continue
      yield* store(places, yield* withNames(places.log, documents, () => blocks), undefined)
    }
  }
})

/** What runs around each step, for pauses between them. */
export type Paced = <A, E, R>(step: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Erases removed sessions, then indexes until the index has reached the end of the log. */
export const update = Effect.fnUntraced(function* (
  places: Places,
  erasing: Effect.Effect<void, SqlError.SqlError>,
  paced: Paced,
  onProgress: (progress: Progress) => Effect.Effect<void>
) {
  yield* settle(places)
  yield* erasing
  const known = new Map<string, number>()
  while (true) {
    const { position } = yield* progress(places)
    for (const floor of yield* selectFloors(places.log, position)) {
      if (known.get(floor.session_id) === floor.position) continue
      yield* paced(indexKept(places, floor, position))
      known.set(floor.session_id, floor.position)
    }
    const reached = yield* paced(step(places))
    yield* Metric.set(Metrics.searchLag, reached.head - reached.position)
    yield* onProgress(reached)
    if (reached.position >= reached.head) return reached
  }
})

// Compares the index with the log: reports what is missing, left over or damaged, and changes nothing.

/** Documents and events that are compared at once. */
const portion = 512

type Position = { readonly position: number }

const positionsOf = (rows: ReadonlyArray<Position>) => JSON.stringify(rows.map(({ position }) => position))

/** The first damage: an index is built again as a whole. */
const damages = (index: SqlClient.SqlClient) =>
  Effect.map(index.unsafe<Record<string, string>>("PRAGMA integrity_check(1)").values, (rows) =>
    rows.map(([line]) => String(line).replace(/^\*\*\* .* \*\*\*\n/, "")).filter((line) => line !== "ok")
  )

/** Whether SQLite finds damage in the index, or cannot read it. */
export const isDamaged = (index: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.catchIf(
    Effect.map(damages(index), (lines) => lines.length > 0),
    (error) => reasonOf(error) === "corrupt",
    () => Effect.succeed(true)
  )

/** How many documents have no words, or no event in the log: neither stored nor kept by retention. */
const countExtra = Effect.fnUntraced(function* ({ index, log }: Places) {
  // Sessions that were removed from PostgreSQL stay in the index until its next update.
  const awaited = Dialect.isPostgres(log) ? log`q.session IS NULL OR` : log``
  let [after, extra] = [-1, 0]
  while (true) {
    const rows = yield* index<Position & { readonly session: number; readonly seq: number; readonly words: number }>`
      SELECT d.position, d.session, d.seq, z.id IS NOT NULL AS words
        FROM document d LEFT JOIN terms_docsize z ON z.id = d.position
        WHERE d.position > ${after} ORDER BY d.position LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return extra
    after = last.position
    const places = rows.map(({ position, seq, session }) => [position, session, seq])
    const [known] = yield* log<{ readonly count: number }>`SELECT count(*) AS count FROM ${Dialect.rows(log, places)}
      LEFT JOIN event_sequence q ON q.session = CAST(j.value ->> 1 AS BIGINT) AND q.session_id IS NOT NULL
      LEFT JOIN event e ON e.position = CAST(j.value ->> 0 AS BIGINT) AND e.session = q.session
      WHERE ${awaited} e.position IS NOT NULL OR CAST(j.value ->> 2 AS BIGINT) <= q.floor`
    extra += rows.length - (known?.count ?? 0) + rows.filter(({ words }) => words === 0).length
  }
})

/** How many events up to the index's position have a text but no document. */
const countMissing = Effect.fnUntraced(function* ({ index, log }: Places) {
  const [state] = yield* index<Position>`SELECT position FROM state WHERE one = 1`
  const end = state?.position ?? 0
  let [after, missing] = [0, 0]
  while (true) {
    const rows = yield* log<Position>`SELECT position FROM event
      WHERE position > ${after} AND position <= ${end} AND type IN (${selectTypes(log)})
      ORDER BY position LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return missing
    after = last.position
    const without = yield* index<Position>`SELECT value AS position FROM json_each(${positionsOf(rows)})
      WHERE value NOT IN (SELECT position FROM document)`
    // Events without a text, and unreadable ones, have no document. One at a time: they may be long, and there are few.
    for (const { position } of without) {
      const [row] = yield* selectEvents(log, log`WHERE e.position = ${position}`)
      const event = Option.flatMap(Option.fromNullable(row), toEvent)
      if (Option.isSome(Option.flatMap(Option.flatMap(event, Either.getRight), documentOf))) missing += 1
    }
  }
})

const texts = (count: number) => (count === 1 ? "1 text" : `${count} texts`)

const compare = Effect.fnUntraced(function* (places: Places) {
  const damaged = yield* damages(places.index)
  if (damaged.length > 0) return damaged.map((line) => `the search index is damaged: ${line}`)
  // The next update builds an index anew that does not fit the log.
  if ((yield* progress(places)).position === 0) return []
  const [extra, missing] = [yield* countExtra(places), yield* countMissing(places)]
  return Arr.getSomes([
    extra === 0 ? Option.none() : Option.some(`the search index has ${texts(extra)} that the log has not`),
    missing === 0 ? Option.none() : Option.some(`the search index misses ${texts(missing)}`)
  ])
})

/** The problems of the index on this machine, each as a sentence. Without an index there are none. */
export const verify = Effect.gen(function* () {
  const log = yield* ReadSql
  const index = yield* openExisting(yield* indexPath(yield* SqlClient.SqlClient))
  return Option.isNone(index) ? [] : yield* compare({ log, index: index.value })
}).pipe(
  Effect.scoped,
  Effect.catchIf(
    (error): error is SqlError.SqlError => error instanceof SqlError.SqlError,
    (error) =>
      reasonOf(error) === "corrupt"
        ? Effect.succeed(["the search index is damaged: a page of it cannot be read"])
        : unavailable("verify the search index")(error)
  )
)

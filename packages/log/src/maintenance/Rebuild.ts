/**
 * Rebuilds the projected tables from the event rows alone: folds a session's events beside the database (`Fold.ts`), and
 * then replaces the rows that differ, in short steps, so that others append in between. A pruned session starts from the
 * state at its floor, and its rows up to the floor stay: no later event changes them. Rows that the fold does not own
 * stay too: rows of extra projectors. Spec: PJ-8, PJ-12 in specs/storage.md, RT-15 in specs/log.md (RP-7).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Effect, Option } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { type EventRefused, EventUnreadable, LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import { pageSize, selectCheckedPage, toEvent, unavailable } from "../log/EventRow.ts"
import type { AnyRow } from "../projection/Change.ts"
import { columnsOf } from "../projection/SqlTables.ts"
import { selectBase } from "../retention/Prune.ts"
import { forUpdate, placed } from "../storage/Dialect.ts"
import { immediately, retryBusy, snapshot } from "../storage/Transaction.ts"
import * as Fold from "./Fold.ts"
import { created, differing, type Listing } from "./Fold.ts"

/** Errors of a rebuild. The session that fails keeps its rows. */
export type RebuildError = SessionNotFound | EventUnreadable | EventRefused | LogUnavailable

export interface Rebuilt {
  readonly sessions: number
  readonly events: number
}

const nothing: Rebuilt = { sessions: 0, events: 0 }

type Sql = SqlClient.SqlClient

interface Head {
  readonly session: number
  readonly seq: number
  readonly floor: number
  readonly incarnation: number
}

/** Whether the head is locked: then nothing appends to its session until the transaction ends. */
const selectHead = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, locked: boolean) {
  const [head] = yield* sql<Head>`SELECT session, seq, floor, coalesce(incarnation, 0) AS incarnation
    FROM event_sequence WHERE session_id = ${sessionID} AND seq >= 0 ${locked ? forUpdate(sql) : sql.literal("")}`
  return head === undefined ? yield* new SessionNotFound({ sessionID }) : head
})

/** Reads one page of events and verifies their sequence numbers and checksums. */
const readPage = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, after: number) {
  const missing = (seq: number) =>
    new EventUnreadable({ sessionID, seq, type: "unknown", details: "the row is missing" })
  const rows = yield* selectCheckedPage(sql, sessionID, after)
  if (rows.length === 0) return yield* missing(after + 1)
  const events: Array<SessionEvent> = []
  for (const [index, row] of rows.entries()) {
    const seq = after + 1 + index
    if (row["seq"] !== seq) return yield* missing(seq)
    const event = toEvent(row)
    if (Option.isSome(event)) events.push(yield* event.value)
  }
  return { events, cursor: after + rows.length }
})

/** A session that is being rebuilt. */
interface Rebuilding extends Fold.Named {
  /** When the fold began. */
  readonly head: Head
  /** The last folded event. */
  cursor: number
}

/** Folds the events up to a sequence number. */
const foldTo = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, rebuilding: Rebuilding, seq: number) {
  while (rebuilding.cursor < seq) {
    const { cursor, events } = yield* readPage(sql, rebuilding.sessionID, rebuilding.cursor)
    yield* fold.add(rebuilding, events)
    rebuilding.cursor = cursor
  }
})

/** Folds the events that the session has now. */
const foldAll = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, sessionID: SessionID) {
  const { base, head } = yield* snapshot(sql)(
    Effect.gen(function* () {
      const head = yield* selectHead(sql, sessionID, false)
      return { head, base: yield* selectBase(sql, sessionID, head.floor) }
    })
  )
  const rebuilding: Rebuilding = { session: head.session, sessionID, head, cursor: head.floor }
  yield* fold.begin(base?.row)
  yield* foldTo(sql, fold, rebuilding, head.seq)
  return rebuilding
})

/** `foldAll`, and again if a prune removed events meanwhile. */
const folded = (
  sql: Sql,
  fold: Fold.Fold,
  sessionID: SessionID
): Effect.Effect<Rebuilding, RebuildError | SqlError.SqlError> =>
  Effect.flatMap(selectHead(sql, sessionID, false), ({ floor }) =>
    Effect.catchTag(foldAll(sql, fold, sessionID), "EventUnreadable", (error) =>
      Effect.flatMap(selectHead(sql, sessionID, false), (head) =>
        head.floor === floor ? error : folded(sql, fold, sessionID)
      )
    )
  )

/** The rows of each table in the order of its key. */
const listings: ReadonlyArray<Listing> = [{ table: "session_input", order: ["admitted_seq"] }, ...Fold.otherListings]

/** Other columns whose values are unique. */
const unique: { readonly [Name in Listing["table"]]?: ReadonlyArray<string> } = {
  session_input: ["id", "promoted_seq"],
  session_message: ["id"]
}

const keyOf = ({ order }: Listing, row: AnyRow): string => order.map((column) => String(row[column])).join("\n")

/** Compares two rows as the databases order them: texts by their bytes. */
const compare = ({ order }: Listing, one: AnyRow, other: AnyRow): number => {
  for (const column of order) {
    const [a, b] = [one[column], other[column]]
    const by =
      typeof a === "number" && typeof b === "number" ? a - b : Buffer.compare(Buffer.from(`${a}`), Buffer.from(`${b}`))
    if (by !== 0) return by
  }
  return 0
}

/** Deletes the session's rows above the floor that have these values. */
const remove = (
  sql: Sql,
  { floor, listing: { table }, session }: Fold.Page,
  columns: ReadonlyArray<string>,
  row: AnyRow
) => {
  const where = ["session = ?", `${created[table]} > ?`, ...columns.map((column) => `${column} = ?`)].join(" AND ")
  return sql.unsafe(placed(sql, `DELETE FROM ${table} WHERE ${where}`), [
    session,
    floor,
    ...columns.map((column) => row[column])
  ])
}

/** Inserts a row in place of those that have its unique values: they are wrong. */
const insert = Effect.fnUntraced(function* (sql: Sql, page: Fold.Page, row: AnyRow) {
  const { table } = page.listing
  for (const column of unique[table] ?? []) if (row[column] !== null) yield* remove(sql, page, [column], row)
  const columns = columnsOf(table)
  yield* sql.unsafe(
    placed(sql, `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`),
    columns.map((column) => row[column] ?? null)
  )
})

/** Replaces the stored rows of a page that differ from the folded ones. Returns its last row; undefined at the end. */
const mend = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, page: Fold.Page) {
  const { limit, listing } = page
  const [stored, made] = [yield* Fold.selectRows(sql, page), yield* fold.rows(page)]
  const [end] = [stored, made]
    .flatMap((rows) => (rows.length < limit ? [] : rows.slice(-1)))
    .toSorted((a, b) => compare(listing, a, b))
  const isWithin = (row: AnyRow) => end === undefined || compare(listing, row, end) <= 0
  const missing = new Map(made.filter(isWithin).map((row) => [keyOf(listing, row), row]))
  for (const row of stored.filter(isWithin)) {
    const key = keyOf(listing, row)
    const wanted = missing.get(key)
    if (wanted !== undefined && differing(listing.table, row, wanted).length === 0) missing.delete(key)
    else yield* remove(sql, page, listing.order, row)
  }
  yield* Effect.forEach(missing.values(), (row) => insert(sql, page, row), { discard: true })
  return end
})

const mendSession = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, sessionID: SessionID) {
  const [stored, made] = [yield* Fold.selectSession(sql, sessionID), yield* fold.session(sessionID)]
  if (made === undefined || (stored !== undefined && differing("session", stored, made).length === 0)) return
  yield* Fold.writeSession(sql, made)
})

/** Rows of a table that a step compares. */
const stepRows = 128

/** Where the next step begins: in which table, and after which row. */
interface Place {
  readonly listings: ReadonlyArray<Listing>
  readonly after: AnyRow | undefined
}

/** Mends the session's row, and tables up to a full page, while nothing appends to the session. */
const step = (sql: Sql, fold: Fold.Fold, rebuilding: Rebuilding, place: Place) => {
  const { head: before, session, sessionID } = rebuilding
  const work = Effect.gen(function* () {
    const head = yield* selectHead(sql, sessionID, true)
    if (head.incarnation !== before.incarnation) return yield* new SessionNotFound({ sessionID })
    yield* foldTo(sql, fold, rebuilding, head.seq)
    yield* mendSession(sql, fold, sessionID)
    const floor = Math.max(before.floor, head.floor)
    let { after } = place
    for (const [index, listing] of place.listings.entries()) {
      after = yield* mend(sql, fold, { listing, session, floor, after, limit: stepRows })
      if (after !== undefined) return { listings: place.listings.slice(index), after } satisfies Place
    }
    return undefined
  })
  return retryBusy(immediately(sql)(work))
}

const rebuildSession = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, sessionID: SessionID) {
  const rebuilding = yield* retryBusy(folded(sql, fold, sessionID))
  const events = rebuilding.cursor - rebuilding.head.floor
  // Events were appended during the fold. They are folded now, before the first step holds the head.
  yield* foldTo(sql, fold, rebuilding, (yield* selectHead(sql, sessionID, false)).seq)
  let place: Place | undefined = { listings, after: undefined }
  while (place !== undefined) place = yield* step(sql, fold, rebuilding, place)
  return { sessions: 1, events } satisfies Rebuilt
})

const one = (sql: Sql, fold: Fold.Fold, sessionID: SessionID): Effect.Effect<Rebuilt, RebuildError> =>
  Effect.mapError(rebuildSession(sql, fold, sessionID), (error) =>
    error instanceof SqlError.SqlError ? unavailable("rebuild")(error) : error
  )

/** Selects the sessions after an id, in id order. */
export const selectSessions = (sql: SqlClient.SqlClient, after: string, limit: number) =>
  sql<{ readonly session_id: string; readonly seq: number; readonly floor: number }>`
    SELECT session_id, seq, floor FROM event_sequence WHERE session_id > ${after} ORDER BY session_id LIMIT ${limit}`

const all = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold) {
  let rebuilt = nothing
  let after = ""
  for (;;) {
    const rows = yield* Effect.mapError(retryBusy(selectSessions(sql, after, pageSize)), unavailable("rebuild"))
    const last = rows.at(-1)
    if (last === undefined) return rebuilt
    for (const { seq, session_id } of rows) {
      if (seq < 0) continue
      const { events, sessions } = yield* one(sql, fold, SessionID.make(session_id, { disableValidation: true }))
      rebuilt = { sessions: rebuilt.sessions + sessions, events: rebuilt.events + events }
    }
    after = last.session_id
  }
})

const failed = (error: Effect.Effect.Error<ReturnType<typeof Fold.make>>): LogUnavailable =>
  error instanceof SqlError.SqlError
    ? unavailable("rebuild")(error)
    : new LogUnavailable({ operation: "rebuild", reason: "unknown", cause: error })

/**
 * Rebuilds the projected rows of one session, or of all, byte for byte equal to the live rows (RP-7). A session whose events
 * do not fold keeps its rows; the sessions before it are rebuilt. A rebuild that is stopped can be repeated.
 */
export const rebuild = Effect.fn("Rebuild.rebuild")(function* (
  which: SessionID | "all"
): Effect.fn.Return<Rebuilt, RebuildError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* Effect.scoped(
    Effect.flatMap(Effect.mapError(Fold.make(sql), failed), (fold) =>
      which === "all" ? all(sql, fold) : one(sql, fold, which)
    )
  )
})

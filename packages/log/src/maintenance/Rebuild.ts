/**
 * Rebuilds the projected tables from the event rows alone, page by page, with the fold and the writer that appends use.
 * A pruned session starts from the state at its floor, and its rows up to the floor stay: no later event changes them.
 * Rows that the fold does not own stay too: rows of extra projectors. Spec: PJ-8, PJ-12 in specs/storage.md, RT-15
 * in specs/log.md (RP-7).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Option } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventRefused, EventUnreadable, type LogUnavailable, SessionNotFound } from "../log/EventLog.ts"
import { onFilesOnly, pageSize, selectCheckedPage, toEvent, unavailable } from "../log/EventRow.ts"
import { type AnyRow, join, type Joined } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { write } from "../projection/SqlTables.ts"
import { type TableName, tables } from "../projection/Tables.ts"
import { selectBase } from "../retention/Prune.ts"
import { directly, immediately, retryBusy } from "../storage/Transaction.ts"

/** Errors of a rebuild. The session that fails keeps its rows. */
export type RebuildError = SessionNotFound | EventUnreadable | EventRefused | LogUnavailable

export interface Rebuilt {
  readonly sessions: number
  readonly events: number
}

const nothing: Rebuilt = { sessions: 0, events: 0 }

export const created = {
  session_instruction: "seq",
  session_leaf: "seq",
  session_label: "seq",
  session_part: "seq",
  session_message: "seq",
  session_input: "admitted_seq"
} as const satisfies { readonly [Name in Exclude<TableName, "session">]: string }

export const writeSession = (sql: SqlClient.SqlClient, row: AnyRow) => {
  const { columns } = tables.session
  return sql.unsafe(
    `INSERT INTO session (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")}) ` +
      `ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(", ")}`,
    columns.map((column) => row[column] ?? null)
  )
}

/** Writes the changes of one page's events over the existing session row. */
export const writePage = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { session, sessionID }: { readonly session: number; readonly sessionID: SessionID },
  events: ReadonlyArray<SessionEvent>
) {
  const joined = join(events.flatMap(project))
  if (Either.isLeft(joined)) return yield* new EventRefused({ sessionID, ...joined.left })
  const { inserts, updates } = joined.right.session
  yield* Effect.forEach(inserts.values(), (row) => writeSession(sql, row), { discard: true })
  const rest: Joined = { ...joined.right, session: { inserts: new Map(), updates } }
  const refusal = yield* directly(sql, (statements) => write(statements, rest, new Map([[sessionID, session]])))
  if (refusal !== undefined) return yield* new EventRefused({ sessionID, ...refusal })
})

/** Reads one page of events and verifies their sequence numbers and checksums. */
const readPage = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, sessionID: SessionID, after: number) {
  const rows = yield* selectCheckedPage(sql, sessionID, after)
  const events: Array<SessionEvent> = []
  for (const [index, row] of rows.entries()) {
    const seq = after + 1 + index
    if (row["seq"] !== seq) {
      return yield* new EventUnreadable({ sessionID, seq, type: "unknown", details: "the row is missing" })
    }
    const event = toEvent(row)
    if (Option.isSome(event)) events.push(yield* event.value)
  }
  return { events, cursor: after + rows.length }
})

const rebuildSession = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, sessionID: SessionID) {
  const [head] = yield* sql<{ readonly session: number; readonly seq: number; readonly floor: number }>`
    SELECT session, seq, floor FROM event_sequence WHERE session_id = ${sessionID}`
  if (head === undefined || head.seq < 0) return yield* new SessionNotFound({ sessionID })
  const base = yield* selectBase(sql, sessionID, head.floor)
  for (const [table, column] of Object.entries(created)) {
    yield* sql.unsafe(`DELETE FROM ${table} WHERE session = ? AND ${column} > ?`, [head.session, head.floor])
  }
  if (base !== undefined) yield* writeSession(sql, base.row)
  let cursor = head.floor
  while (cursor < head.seq) {
    const page = yield* readPage(sql, sessionID, cursor)
    if (page.cursor === cursor) {
      return yield* new EventUnreadable({ sessionID, seq: cursor + 1, type: "unknown", details: "the row is missing" })
    }
    yield* writePage(sql, { session: head.session, sessionID }, page.events)
    cursor = page.cursor
  }
  return { sessions: 1, events: head.seq - head.floor } satisfies Rebuilt
})

const one = (sql: SqlClient.SqlClient, sessionID: SessionID): Effect.Effect<Rebuilt, RebuildError> =>
  retryBusy(immediately(sql)(rebuildSession(sql, sessionID))).pipe(
    Effect.mapError((error) => (error instanceof SqlError.SqlError ? unavailable("rebuild")(error) : error))
  )

/** Selects the sessions after an id, in id order. */
export const selectSessions = (sql: SqlClient.SqlClient, after: string, limit: number) =>
  sql<{ readonly session_id: string; readonly seq: number; readonly floor: number }>`
    SELECT session_id, seq, floor FROM event_sequence WHERE session_id > ${after} ORDER BY session_id LIMIT ${limit}`

const all = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  let rebuilt = nothing
  let after = ""
  for (;;) {
    const rows = yield* Effect.mapError(retryBusy(selectSessions(sql, after, pageSize)), unavailable("rebuild"))
    const last = rows.at(-1)
    if (last === undefined) return rebuilt
    for (const { seq, session_id } of rows) {
      if (seq < 0) continue
      const { events, sessions } = yield* one(sql, SessionID.make(session_id, { disableValidation: true }))
      rebuilt = { sessions: rebuilt.sessions + sessions, events: rebuilt.events + events }
    }
    after = last.session_id
  }
})

/**
 * Rebuilds the projected rows of one session, or of all, byte for byte equal to the live rows (RP-7). Each session is
 * one write transaction. If a session fails, it keeps its rows; the sessions before it are rebuilt.
 */
export const rebuild = Effect.fn("Rebuild.rebuild")(function* (
  which: SessionID | "all"
): Effect.fn.Return<Rebuilt, RebuildError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* onFilesOnly(sql, "rebuild")
  return yield* which === "all" ? all(sql) : one(sql, which)
})

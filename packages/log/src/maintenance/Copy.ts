/**
 * Copies the sessions of one database to another, of whatever kind. Events keep their ids, times and sequence numbers, and get
 * new positions. Events that the target has must be equal to those of the source, so the next copy continues one that was
 * stopped. Afterwards the copy compares each session: its events by their checksums, and what its readers would get.
 * Spec: PG-30..PG-36 in specs/postgres.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Chunk, type Context, Effect, Option, Schema, Stream } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import {
  EventLog,
  type EventRefused,
  EventUnreadable,
  type ForeignEvent,
  type InvalidDurableEvent,
  type LogUnavailable,
  type ReplayRefused,
  type SessionNotFound
} from "../log/EventLog.ts"
import { checksumOf, pageSize, selectCheckedPage, unavailable } from "../log/EventRow.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { SessionStore } from "../store/SessionStore.ts"
import type { StoreError } from "../store/StoreError.ts"
import { selectSessions } from "./Rebuild.ts"

/** A database with its stores. */
export type Side = Context.Context<EventLog | SessionStore | SqlClient.SqlClient>

/** A session that cannot be copied. What the target has of it stays. */
export class CopyRefused extends Schema.TaggedError<CopyRefused>("@daybook/log/CopyRefused")("CopyRefused", {
  sessionID: SessionID,
  details: Schema.String
}) {
  override get message() {
    return `${this.sessionID} was not copied: ${this.details}`
  }
}

const putBack = "`daybook prune --restore FILE` puts the events of an archive back"

/** A session, and how many of its events are new in the target: none if it was there. */
export interface Copied {
  readonly sessionID: SessionID
  readonly events: number
}

type Failure =
  | CopyRefused
  | EventRefused
  | EventUnreadable
  | InvalidDurableEvent
  | LogUnavailable
  | ReplayRefused
  | SessionNotFound
  | StoreError

const Row = Schema.Struct({
  id: EventID,
  session_id: SessionID,
  seq: Schema.Int,
  type: Schema.String,
  created: Schema.Int,
  checksum: Schema.Int,
  data: Schema.String
})
type Row = typeof Row.Type

const decodeRow = Schema.decodeUnknown(Row)

/** A page of a session's rows, each equal to its checksum. */
const pageOf = Effect.fnUntraced(function* (side: Side, sessionID: SessionID, after: number) {
  const sql = yield* Effect.provide(SqlClient.SqlClient, side)
  const rows = yield* Effect.mapError(retryBusy(selectCheckedPage(sql, sessionID, after)), unavailable("copy"))
  return yield* Effect.forEach(rows, (raw, index) => {
    const seq = after + 1 + index
    const damaged = (details: string) => new EventUnreadable({ sessionID, seq, type: String(raw["type"]), details })
    return Effect.flatMap(
      Effect.mapError(decodeRow(raw), () => damaged("the row cannot be read")),
      (row) =>
        row.seq !== seq
          ? damaged("the row is missing")
          : checksumOf(row) === row.checksum
            ? Effect.succeed(row)
            : damaged("the row does not fit its checksum")
    )
  })
})

const foreignOf = ({ created, data, id, seq, session_id: sessionID, type }: Row): ForeignEvent => ({
  id,
  sessionID,
  seq,
  type,
  created,
  // The checksum fits: this is the text that the log wrote.
  data: JSON.parse(data)
})

/** Compares the rows with those of the target, which has all of them. */
const compare = Effect.fnUntraced(function* (to: Side, sessionID: SessionID, rows: ReadonlyArray<Row>) {
  let at = 0
  while (at < rows.length) {
    const page = yield* pageOf(to, sessionID, (rows[at]?.seq ?? 0) - 1)
    for (const { checksum, seq } of page.slice(0, rows.length - at)) {
      if (rows[at]?.checksum !== checksum) {
        return yield* new CopyRefused({ sessionID, details: `another event ${seq} is in the target` })
      }
      at += 1
    }
    if (page.length === 0) return yield* new CopyRefused({ sessionID, details: "the target lost events" })
  }
})

/** What is read of a session, as text. PostgreSQL replaces U+0000 in projected texts (PG-13). */
const readOf = (side: Side, sessionID: SessionID) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const { queued, session, steers } = yield* store.standing(sessionID)
    const items: Array<unknown> = [session, steers, queued, yield* store.leaf(sessionID)]
    for (let cursor: number | undefined = undefined, more = true; more;) {
      const page: Effect.Effect.Success<ReturnType<typeof store.messages>> = yield* store.messages(
        cursor === undefined ? { sessionID } : { sessionID, cursor }
      )
      items.push(...page.items)
      cursor = page.cursor
      more = cursor !== undefined
    }
    return JSON.stringify(items).replaceAll(String.raw`\u0000`, "\ufffd")
  }).pipe(Effect.provide(side))

const latestOf = (side: Side, sessionID: SessionID) =>
  Effect.provide(
    Effect.flatMap(EventLog, (log) => log.latest(sessionID)),
    side
  )

/** The session's floor; -1 if there is none. */
const floorOf = (side: Side, sessionID: SessionID) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly floor: number }>`SELECT floor FROM event_sequence
      WHERE session_id = ${sessionID}`
    return row?.floor ?? -1
  }).pipe(retryBusy, Effect.mapError(unavailable("copy")), Effect.provide(side))

/** Copies a session up to its last event, and compares it. */
const one = (from: Side, to: Side, sessionID: SessionID): Effect.Effect<Copied, Failure> =>
  Effect.gen(function* () {
    if ((yield* floorOf(to, sessionID)) >= 0) {
      return yield* new CopyRefused({ sessionID, details: `its first events were pruned in the target; ${putBack}` })
    }
    const before = yield* latestOf(to, sessionID)
    const log = yield* Effect.provide(EventLog, to)
    let last = -1
    for (;;) {
      const rows = yield* pageOf(from, sessionID, last)
      if (rows.length === 0) break
      // Nothing is added to a session that differs.
      yield* compare(
        to,
        sessionID,
        rows.filter(({ seq }) => seq <= before)
      )
      const fresh = rows.filter(({ seq }) => seq > before)
      yield* log.replay(fresh.map(foreignOf))
      yield* compare(to, sessionID, fresh)
      last = rows.at(-1)?.seq ?? last
    }
    const there = yield* latestOf(to, sessionID)
    if (there > last) {
      return yield* new CopyRefused({ sessionID, details: `it went on in the target, after event ${last}` })
    }
    const [read, written] = [yield* readOf(from, sessionID), yield* readOf(to, sessionID)]
    // The session may have gone on meanwhile: then the next copy brings the rest.
    if (read !== written && (yield* latestOf(from, sessionID)) === last) {
      return yield* new CopyRefused({ sessionID, details: "its messages are not those of the source" })
    }
    return { sessionID, events: Math.max(0, last - before) }
  })

/** The sessions of a database, in the order of their ids. */
const sessionsOf = (side: Side) =>
  Stream.unwrap(
    Effect.map(Effect.provide(SqlClient.SqlClient, side), (sql) =>
      Stream.paginateChunkEffect("", (after) =>
        Effect.mapError(retryBusy(selectSessions(sql, after, pageSize)), unavailable("copy")).pipe(
          Effect.map((rows) => [Chunk.fromIterable(rows), Option.fromNullable(rows.at(-1)?.session_id)] as const)
        )
      )
    )
  ).pipe(Stream.filter(({ seq }) => seq >= 0))

/** Copies all sessions, one after the other. A session that is refused ends nothing; a database that is away does. */
export const copy = (from: Side, to: Side): Stream.Stream<Copied | CopyRefused, LogUnavailable> =>
  Stream.mapEffect(sessionsOf(from), ({ floor, session_id }) => {
    const sessionID = SessionID.make(session_id, { disableValidation: true })
    const refuse = (details: string) => new CopyRefused({ sessionID, details })
    if (floor >= 0) return Effect.succeed<Copied | CopyRefused>(refuse(`its first events were pruned; ${putBack}`))
    return Effect.catchAll(one(from, to, sessionID), (error): Effect.Effect<Copied | CopyRefused, LogUnavailable> => {
      if (error._tag === "LogUnavailable") return Effect.fail(error)
      return Effect.succeed(error._tag === "CopyRefused" ? error : refuse(error.message))
    })
  })

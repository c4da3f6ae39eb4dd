/**
 * Reading the log: pages, tails and the feed. A tail registers its signal before it reads, pages through rows to the
 * end, says so once, and looks again after each wake: no gap and no repetition between replay and following (TL-1).
 */
import type { SqlClient } from "@effect/sql"
import { Chunk, Effect, Either, Metric, Option, Stream } from "effect"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { SessionID } from "../Identifiers.ts"
import * as Metrics from "../Metrics.ts"
import { retryBusy } from "../storage/Database.ts"
import {
  CursorAhead,
  CursorExpired,
  SessionNotFound,
  type EventUnreadable,
  type LogUnavailable,
  type ReadError,
  type ReplayComplete
} from "./EventLog.ts"
import { pageSize, selectFeedPage, selectPage, toEvents, unavailable } from "./EventRow.ts"
import type { Tail, Tails } from "./Tails.ts"

type Page = { readonly events: ReadonlyArray<SessionEvent>; readonly cursor: number; readonly hasMore: boolean }

const toPage = (
  rows: ReadonlyArray<Record<string, unknown>>,
  after: number,
  limit: number,
  column: "seq" | "position"
): Either.Either<Page, EventUnreadable> =>
  Either.map(toEvents(rows), (events) => {
    const last = rows.at(-1)?.[column]
    return { events, cursor: typeof last === "number" ? last : after, hasMore: rows.length === limit }
  })

/** The session's head and floor; `SessionNotFound` when it has no row. */
export const head = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<{ readonly seq: number; readonly floor: number }>`
    SELECT seq, floor FROM event_sequence WHERE session_id = ${sessionID}`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap(
      ([row]): Effect.Effect<{ readonly seq: number; readonly floor: number }, SessionNotFound> =>
        row === undefined ? new SessionNotFound({ sessionID }) : Effect.succeed(row)
    )
  )

const checkCursor = (sql: SqlClient.SqlClient, sessionID: SessionID, cursor: number) =>
  Effect.flatMap(
    head(sql, sessionID),
    ({ floor, seq }): Effect.Effect<void, CursorAhead | CursorExpired> =>
      cursor > seq
        ? new CursorAhead({ cursor, latest: seq })
        : cursor < floor
          ? new CursorExpired({ cursor, floor })
          : Effect.void
  )

const page = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, limit: number) =>
  selectPage(sql, sessionID, after, limit).pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap((rows) => toPage(rows, after, limit, "seq"))
  )

const feedPage = (sql: SqlClient.SqlClient, after: number) =>
  selectFeedPage(sql, after, pageSize).pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap((rows) => toPage(rows, after, pageSize, "position"))
  )

export const read = (sql: SqlClient.SqlClient) =>
  Effect.fn("EventLog.read")(function* (options: {
    readonly sessionID: SessionID
    readonly after?: number | undefined
    readonly limit?: number | undefined
  }) {
    const after = options.after ?? -1
    const limit = Math.max(1, Math.min(options.limit ?? pageSize, pageSize))
    yield* checkCursor(sql, options.sessionID, after)
    const { cursor, events, hasMore } = yield* page(sql, options.sessionID, after, limit)
    return { events, cursor, hasMore: hasMore && (yield* page(sql, options.sessionID, cursor, 1)).cursor > cursor }
  })

type Seam = "replaying" | "at-the-end" | "following"
type State = { readonly cursor: number; readonly seam: Seam }

/** Pages to the end, the marker once, then a page after each wake. */
const follow = <E>(
  tail: Tail,
  start: number,
  next: (after: number) => Effect.Effect<Page, E>,
  position: (event: SessionEvent) => number
): Stream.Stream<SessionEvent | ReplayComplete, E> =>
  Stream.unfoldChunkEffect<State, SessionEvent | ReplayComplete, E, never>(
    { cursor: start, seam: "replaying" },
    ({ cursor, seam }) => {
      if (seam === "at-the-end") {
        const marker: ReplayComplete = { type: "replay.complete", cursor }
        return Effect.succeedSome([Chunk.of<SessionEvent | ReplayComplete>(marker), { cursor, seam: "following" }])
      }
      const waited = seam === "following" ? tail.wake : Effect.void
      return Effect.gen(function* () {
        yield* waited
        const recent = tail.recent(cursor)
        const last = recent?.at(-1)
        if (recent !== undefined && last !== undefined) {
          yield* Metric.update(Metrics.tailLag, recent.length)
          // More may have come from elsewhere behind what was kept: signals ring for it.
          const state: State = { cursor: position(last), seam: seam === "following" ? "following" : "at-the-end" }
          return Option.some([Chunk.unsafeFromArray(recent), state] as const)
        }
        const found = yield* next(cursor)
        const state: State = found.hasMore
          ? { cursor: found.cursor, seam: seam === "following" ? "replaying" : seam }
          : { cursor: found.cursor, seam: seam === "following" ? "following" : "at-the-end" }
        return Option.some([Chunk.unsafeFromArray<SessionEvent | ReplayComplete>(found.events), state] as const)
      })
    }
  )

export const tailMarked =
  (sql: SqlClient.SqlClient, tails: Tails) =>
  (options: {
    readonly sessionID: SessionID
    readonly after?: number | undefined
  }): Stream.Stream<SessionEvent | ReplayComplete, ReadError> =>
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const { sessionID } = options
        const start = options.after ?? -1
        const tail = yield* tails.follow(sessionID)
        yield* checkCursor(sql, sessionID, start)
        const next = (after: number) =>
          Effect.tap(page(sql, sessionID, after, pageSize), ({ cursor }) =>
            // Woken for nothing: the session may have been removed, or made anew under the same id.
            cursor === after ? checkCursor(sql, sessionID, after) : Effect.void
          )
        return follow(tail, start, next, ({ seq }) => seq)
      })
    )

export const feedMarked =
  (sql: SqlClient.SqlClient, tails: Tails) =>
  (
    options: { readonly after?: number | undefined } = {}
  ): Stream.Stream<SessionEvent | ReplayComplete, CursorAhead | EventUnreadable | LogUnavailable> =>
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const start = options.after ?? 0
        const tail = yield* tails.follow(undefined)
        const [latest] = yield* sql<{ readonly seq: number }>`
          SELECT seq FROM sqlite_sequence WHERE name = 'event'`.pipe(Effect.mapError(unavailable("read")))
        if (start > (latest?.seq ?? 0)) return yield* new CursorAhead({ cursor: start, latest: latest?.seq ?? 0 })
        return follow(tail, start, (after) => feedPage(sql, after), ({ position }) => position)
      })
    )

/** Without the marker. */
export const unmarked = <E>(stream: Stream.Stream<SessionEvent | ReplayComplete, E>): Stream.Stream<SessionEvent, E> =>
  Stream.filterMap(stream, (item) => (item.type === "replay.complete" ? Option.none() : Option.some(item)))

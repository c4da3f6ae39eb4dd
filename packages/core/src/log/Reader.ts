/**
 * Reading the log: pages, tails and the feed. A tail registers its signal before it reads, pages through rows to the
 * end, says so once, and looks again after each wake: no gap and no repetition between replay and following (TL-1).
 */
import type { SqlClient } from "@effect/sql"
import { Chunk, Effect, Either, Option, Stream } from "effect"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { SessionID } from "../Identifiers.ts"
import * as Metrics from "../Metrics.ts"
import { retryBusy } from "../storage/Database.ts"
import {
  CursorAhead,
  CursorExpired,
  EventUnreadable,
  SessionNotFound,
  type LogUnavailable,
  type ReadError,
  type ReplayComplete
} from "./EventLog.ts"
import { beforeLong, pageSize, selectFeedPage, selectPage, toEvents, unavailable } from "./EventRow.ts"
import type { Tail, Tails } from "./Tails.ts"

type Page = {
  readonly events: ReadonlyArray<SessionEvent>
  readonly cursor: number
  /** The position of the row at the cursor, where that is known: another one there is another session. */
  readonly anchor: number | undefined
  readonly hasMore: boolean
}

type Rows = ReadonlyArray<Record<string, unknown>>

const lastOf = (rows: Rows, after: number, column: "seq" | "position"): number => {
  const last = rows.at(-1)?.[column]
  return typeof last === "number" ? last : after
}

const toPage = (rows: Rows, cursor: number, limit: number): Either.Either<Page, EventUnreadable> =>
  Either.map(toEvents(rows), (events) => {
    const position = rows.at(-1)?.["position"]
    const anchor = typeof position === "number" ? position : undefined
    return { events, cursor, anchor, hasMore: rows.length === limit }
  })

/** The session's head and floor; `SessionNotFound` when it has no events, replay claims aside. */
export const head = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<{ readonly seq: number; readonly floor: number }>`
    SELECT seq, floor FROM event_sequence WHERE session_id = ${sessionID}`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap(([row]): Effect.Effect<{ readonly seq: number; readonly floor: number }, SessionNotFound> =>
      row === undefined || row.seq < 0 ? new SessionNotFound({ sessionID }) : Effect.succeed(row)
    )
  )

/** Cursors stand on whole numbers; what is no number at all is refused as ahead of everything. */
const cursorOf = (after: number | undefined, start: number): number => Math.floor(after ?? start)

const checkCursor = (sql: SqlClient.SqlClient, sessionID: SessionID, cursor: number) =>
  Effect.flatMap(head(sql, sessionID), ({ floor, seq }): Effect.Effect<void, CursorAhead | CursorExpired> =>
    !(cursor <= seq)
      ? new CursorAhead({ cursor, latest: seq })
      : cursor < floor
        ? new CursorExpired({ cursor, floor })
        : Effect.void
  )

const select = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, limit: number) =>
  selectPage(sql, sessionID, after, limit).pipe(retryBusy, Effect.mapError(unavailable("read")))

/** The page that the rows make. The head is asked for only when they do not follow the cursor one by one. */
const check = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  after: number,
  limit: number,
  rows: Rows
): Effect.Effect<Page, ReadError> => {
  const cursor = lastOf(rows, after, "seq")
  const found = toPage(rows, cursor, limit)
  if (rows.length > 0 && cursor - after === rows.length) return found
  return Effect.flatMap(
    checkCursor(sql, sessionID, after),
    (): Either.Either<Page, EventUnreadable> | EventUnreadable =>
      rows.length === 0 ? found : missing(sessionID, rows, after)
  )
}

const page = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  after: number,
  most: number
): Effect.Effect<Page, ReadError> =>
  Effect.flatMap(select(sql, sessionID, after, most), (found) => {
    const { limit, rows } = beforeLong(found, most)
    // The next row is a long one: it comes alone.
    return limit === 0 ? page(sql, sessionID, after, 1) : check(sql, sessionID, after, limit, rows)
  })

/**
 * One page of a tail, which knows what it last gave. The row at the cursor is looked at again: where another one stands,
 * or none, the session was removed, and may have been made again under its id (TL-6).
 */
const tailPage =
  (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  (after: number, anchor: number | undefined): Effect.Effect<Page, ReadError> => {
    if (after < 0) return page(sql, sessionID, after, pageSize)
    return Effect.gen(function* () {
      const { limit, rows } = beforeLong(yield* select(sql, sessionID, after - 1, pageSize + 1), pageSize + 1, 1)
      const [first] = rows
      const position = first?.["seq"] === after ? Number(first["position"]) : undefined
      if (position !== undefined && position === (anchor ?? position)) {
        const found =
          limit === 1
            ? yield* page(sql, sessionID, after, 1)
            : yield* check(sql, sessionID, after, limit - 1, rows.slice(1))
        return { ...found, anchor: found.anchor ?? position }
      }
      // Pruning may have taken the row; the floor tells.
      const { floor } = yield* head(sql, sessionID)
      if (anchor !== undefined && floor < after) return yield* new SessionNotFound({ sessionID })
      return yield* page(sql, sessionID, after, pageSize)
    })
  }

/** A hole that no pruning made: the file was changed by other hands. */
const missing = (sessionID: SessionID, rows: Rows, after: number): EventUnreadable => {
  const hole = rows.findIndex((row, index) => row["seq"] !== after + 1 + index)
  return new EventUnreadable({ sessionID, seq: after + 1 + hole, type: "unknown", details: "the row is missing" })
}

const feedPage = (
  sql: SqlClient.SqlClient,
  after: number,
  most: number
): Effect.Effect<Page, EventUnreadable | LogUnavailable> =>
  selectFeedPage(sql, after, most).pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap((found): Effect.Effect<Page, EventUnreadable | LogUnavailable> => {
      const { limit, rows } = beforeLong(found, most)
      if (limit === 0) return feedPage(sql, after, 1)
      const page = toPage(rows, lastOf(rows, after, "position"), limit)
      if (Either.isRight(page)) return page
      // What stands before it can be read: the next page begins with it, and fails.
      const bad = rows.findIndex(({ position }) => position === page.left.position)
      const good = rows.slice(0, Math.max(0, bad))
      return good.length === 0 ? page : toPage(good, lastOf(good, after, "position"), good.length)
    })
  )

export const read = (sql: SqlClient.SqlClient) =>
  Effect.fn("EventLog.read")(function* (options: {
    readonly sessionID: SessionID
    readonly after?: number | undefined
    readonly limit?: number | undefined
  }) {
    const after = cursorOf(options.after, -1)
    // What is no number at all is the default.
    const limit = Math.trunc(Math.max(1, Math.min(options.limit ?? pageSize, pageSize))) || pageSize
    const { cursor, events, hasMore } = yield* page(sql, options.sessionID, after, limit)
    return { events, cursor, hasMore: hasMore && (yield* page(sql, options.sessionID, cursor, 1)).cursor > cursor }
  })

type State = {
  readonly cursor: number
  readonly anchor: number | undefined
  readonly step: "look" | "mark" | "wait"
  readonly marked: boolean
}

type Following<E, Item> = {
  readonly tail: Tail
  readonly start: number
  readonly next: (after: number, anchor: number | undefined) => Effect.Effect<Page, E>
  readonly position: (event: SessionEvent) => number
  /** What stands at the seam between replay and following, if anything. */
  readonly seam: (cursor: number) => Chunk.Chunk<Item>
}

/** Pages to the end, the seam once, then a page after each wake. */
const follow = <E, Item>({
  next,
  position,
  seam,
  start,
  tail
}: Following<E, Item>): Stream.Stream<SessionEvent | Item, E> =>
  Stream.unfoldChunkEffect<State, SessionEvent | Item, E, never>(
    { cursor: start, anchor: undefined, step: "look", marked: false },
    Effect.fnUntraced(function* ({ anchor, cursor, marked, step }: State) {
      if (step === "mark") {
        const state: State = { cursor, anchor, step: "wait", marked: true }
        return Option.some([seam(cursor), state] as const)
      }
      if (step === "wait") yield* tail.wake
      const recent = tail.recent(cursor)
      const last = recent?.at(-1)
      const found =
        recent === undefined || last === undefined
          ? yield* next(cursor, anchor)
          : // More may follow that is not kept: a signal rings for it, then or earlier.
            { events: recent, cursor: position(last), anchor: last.position, hasMore: false }
      if (marked) Metrics.tailLag.unsafeUpdate(found.events.length, [])
      const state: State = {
        cursor: found.cursor,
        anchor: found.anchor,
        step: found.hasMore ? "look" : marked ? "wait" : "mark",
        marked
      }
      return Option.some([Chunk.unsafeFromArray<SessionEvent | Item>(found.events), state] as const)
    })
  )

/** The marker that a tail may ask for, and nothing for one that does not. */
export const marker = (cursor: number): Chunk.Chunk<ReplayComplete> => Chunk.of({ type: "replay.complete", cursor })
export const noMarker = (): Chunk.Chunk<never> => Chunk.empty()

type Seam<Item> = Following<never, Item>["seam"]

export const tail =
  <Item>(sql: SqlClient.SqlClient, tails: Tails, seam: Seam<Item>) =>
  (options: {
    readonly sessionID: SessionID
    readonly after?: number | undefined
  }): Stream.Stream<SessionEvent | Item, ReadError> =>
    Stream.unwrapScoped(
      Effect.map(tails.follow(options.sessionID), (followed) =>
        follow({
          tail: followed,
          start: cursorOf(options.after, -1),
          next: tailPage(sql, options.sessionID),
          position: ({ seq }) => seq,
          seam
        })
      )
    )

/** The newest position that any event ever had. */
const lastPosition = (sql: SqlClient.SqlClient) =>
  sql<{ readonly seq: number }>`SELECT seq FROM sqlite_sequence WHERE name = 'event'`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.map(([latest]) => latest?.seq ?? 0)
  )

export const feed =
  (sql: SqlClient.SqlClient, tails: Tails) =>
  (
    options: { readonly after?: number | undefined } = {}
  ): Stream.Stream<SessionEvent, CursorAhead | EventUnreadable | LogUnavailable> =>
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const start = cursorOf(options.after, 0)
        const followed = yield* tails.follow(undefined)
        const latest = yield* lastPosition(sql)
        if (!(start <= latest)) return yield* new CursorAhead({ cursor: start, latest })
        return follow({
          tail: followed,
          start,
          next: (after) => feedPage(sql, after, pageSize),
          position: ({ position }) => position,
          seam: noMarker
        })
      })
    )

/** One page of all sessions' events, with what `read` says of one session's. */
export const readFeed = (sql: SqlClient.SqlClient) =>
  Effect.fn("EventLog.readFeed")(function* (
    options: { readonly after?: number | undefined; readonly limit?: number | undefined } = {}
  ) {
    const after = cursorOf(options.after, 0)
    const limit = Math.trunc(Math.max(1, Math.min(options.limit ?? pageSize, pageSize))) || pageSize
    const latest = yield* lastPosition(sql)
    if (!(after <= latest)) return yield* new CursorAhead({ cursor: after, latest })
    const { cursor, events, hasMore } = yield* feedPage(sql, after, limit)
    const follows = feedPage(sql, cursor, 1).pipe(
      Effect.map((next) => next.cursor > cursor),
      Effect.catchTag("EventUnreadable", () => Effect.succeed(true))
    )
    return { events, position: cursor, hasMore: hasMore && (yield* follows) }
  })

/**
 * Reads the log: pages, tails and the feed. A tail registers its signal before it reads, pages to the end, marks the
 * seam once, then reads again after each wake. So there is no gap and no repetition between replay and following
 * (TL-1).
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Channel, Chunk, Clock, Effect, Predicate, Schedule, Stream } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { isPostgres, newestPosition } from "../storage/Dialect.ts"
import { retryBusy } from "../storage/Transaction.ts"
import { acquireRelease } from "../support/Closing.ts"
import * as EventLoop from "../support/EventLoop.ts"
import * as Metrics from "../support/Metrics.ts"
import {
  CursorAhead,
  CursorExpired,
  EventUnreadable,
  type From,
  type Head,
  type LogUnavailable,
  type ReadError,
  type ReplayComplete,
  SessionNotFound
} from "./EventLog.ts"
import { ofSession, pageSize, unavailable } from "./EventRow.ts"
import { selectFeedPage, selectPage } from "./Page.ts"
import type { Tail, Tails } from "./Tails.ts"

type Page = {
  readonly events: ReadonlyArray<SessionEvent>
  /** How many rows were read, and the code units of their payloads. */
  readonly read: number
  readonly length: number
  readonly cursor: number
  readonly hasMore: boolean
  /** Pages of one session: the incarnation they belong to. */
  readonly incarnation?: number | undefined
}

type SessionPage = Page & { readonly incarnation: number }

/** Returns the session's head and floor; `SessionNotFound` if it has no events, even if it is claimed for replay. */
export const head = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<{ readonly seq: number; readonly floor: number; readonly incarnation: number | null }>`
    SELECT seq, floor, incarnation FROM event_sequence WHERE session_id = ${sessionID}`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap(([row]): Effect.Effect<Head & { readonly floor: number }, SessionNotFound> =>
      row === undefined || row.seq < 0
        ? new SessionNotFound({ sessionID })
        : Effect.succeed({ ...row, incarnation: row.incarnation ?? 0 })
    )
  )

/** Rounds a cursor down to a whole number. NaN stays NaN and is rejected as ahead of every event. */
const cursorOf = (after: number | undefined, start: number): number => Math.floor(after ?? start)

/** A place in a session. The incarnation is the previous page's or the caller's, if known. */
type SessionCursor = {
  readonly sessionID: SessionID
  readonly after: number
  readonly incarnation: number | undefined
}

const removed = ({ sessionID }: SessionCursor) => new SessionNotFound({ sessionID, removed: true })

/** Checks the place against the session's head, if the rows do not follow it contiguously. */
const checkPlace = (sql: SqlClient.SqlClient, place: SessionCursor) =>
  head(sql, place.sessionID).pipe(
    Effect.catchTag("SessionNotFound", (error) => (place.incarnation === undefined ? error : removed(place))),
    Effect.flatMap((found): Effect.Effect<Head, SessionNotFound | CursorAhead | CursorExpired> => {
      const { floor, incarnation, seq } = found
      if (incarnation !== (place.incarnation ?? incarnation)) return removed(place)
      if (!(place.after <= seq)) return new CursorAhead({ cursor: place.after, latest: seq })
      return place.after < floor ? new CursorExpired({ cursor: place.after, floor }) : Effect.succeed(found)
    })
  )

const page = (sql: SqlClient.SqlClient, place: SessionCursor, most: number): Effect.Effect<SessionPage, ReadError> =>
  Effect.gen(function* () {
    const { after, sessionID } = place
    for (let empty = false; ; empty = true) {
      const found = yield* Effect.mapError(retryBusy(selectPage(sql, sessionID, after, most)), unavailable("read"))
      if (found.follows) {
        const { events, incarnation, latest, length, read, stopped } = found
        if (incarnation !== (place.incarnation ?? incarnation)) return yield* removed(place)
        // The page ends before a long or unreadable row. The next one begins with it, and reads it alone or fails.
        if (read > 0) return { events, read, length, cursor: after + read, incarnation, hasMore: after + read < latest }
        return yield* stopped ?? page(sql, place, 1)
      }
      const { incarnation, seq } = yield* checkPlace(sql, place)
      if (found.found > 0) return yield* missing(place)
      if (seq <= after) return { events: [], read: 0, length: 0, cursor: after, incarnation, hasMore: false }
      // Either an event arrived after the first look, or its row is missing and a second look does not find it.
      if (empty) return yield* missing(place)
    }
  })

/** A gap that pruning did not make: something outside Daybook changed the file. */
const missing = ({ after, sessionID }: SessionCursor): EventUnreadable =>
  new EventUnreadable({ sessionID, seq: after + 1, type: "unknown", details: "the row is missing" })

type FeedError = CursorExpired | EventUnreadable | LogUnavailable

/** A page of the feed. With `gaps` it leaves out pruned events instead of failing. */
const feedPage = (sql: SqlClient.SqlClient, after: number, most: number, gaps = false) =>
  selectFeedPage(sql, after, most).pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.flatMap((found): Effect.Effect<Page, FeedError> => {
      if (!gaps && after < found.floor) return new CursorExpired({ cursor: after, floor: found.floor })
      const { events, length, position = after, read, stopped } = found
      // The page ends before a long or unreadable row. The next one begins with it, and reads it alone or fails.
      if (read === 0 && found.found > 0) return stopped ?? feedPage(sql, after, 1, gaps)
      return Effect.succeed({ events, read, length, cursor: position, hasMore: read < found.found || read === most })
    })
  )

export const read = (sql: SqlClient.SqlClient) =>
  Effect.fn("EventLog.read")(function* (options: From & { readonly limit?: number | undefined }) {
    const place: SessionCursor = {
      sessionID: options.sessionID,
      after: cursorOf(options.after, -1),
      incarnation: options.incarnation
    }
    // NaN becomes the default.
    const limit = Math.trunc(Math.max(1, Math.min(options.limit ?? pageSize, pageSize))) || pageSize
    const { cursor, events, hasMore, incarnation } = yield* page(sql, place, limit)
    return { events, cursor, incarnation, hasMore }
  })

type Following<E, Item> = {
  readonly tails: Tails
  /** Undefined: the feed. */
  readonly sessionID?: SessionID
  readonly start: number
  /** Checks the start before the first page. */
  readonly check?: Effect.Effect<void, E>
  readonly incarnation?: number | undefined
  readonly next: (after: number, incarnation: number | undefined, most: number) => Effect.Effect<Page, E>
  /** The marker between replay and following, if any. */
  readonly seam: (cursor: number) => Chunk.Chunk<Item>
}

/** The code units of a tail's page, and its rows. */
const [pageLength, fewestRows, mostRows] = [1_048_576, 64, 1024]

/** The most rows of the page after this one, if its rows are as long: long rows together take memory. */
const rowsAfter = ({ length, read }: Page): number =>
  length === 0 ? pageSize : Math.max(fewestRows, Math.min(mostRows, Math.floor((pageLength * read) / length)))

const isAway = (error: unknown): boolean =>
  Predicate.isTagged(error, "LogUnavailable") && Predicate.hasProperty(error, "reason") && error.reason === "away"

const untilBack = Schedule.exponential("50 millis", 2).pipe(
  Schedule.union(Schedule.spaced("2 seconds")),
  Schedule.jittered
)

/** Waits while a database on the other side of a connection does not answer (PG-14). A file is always there. */
const untilThere = <E>(sql: SqlClient.SqlClient, next: Following<E, never>["next"]): Following<E, never>["next"] =>
  isPostgres(sql)
    ? (after, incarnation, most) => Effect.retry(next(after, incarnation, most), { schedule: untilBack, while: isAway })
    : next

/**
 * Returns the next events at each run: pages up to the end of the log, then the seam, then the events of each commit. The cursor moves
 * in the same step that returns events, so a run that was interrupted returns the same events again.
 */
const pullOf = <E, Item>(
  tail: Tail,
  following: Following<E, Item>
): Effect.Effect<Chunk.Chunk<SessionEvent | Item>, E> => {
  let [cursor, incarnation, rows] = [following.start, following.incarnation, pageSize]
  let [isBehind, isLive] = [true, false]

  const read = EventLoop.sharing(
    Effect.suspend(() => {
      tail.look()
      return following.next(cursor, incarnation, rows)
    })
  )
  const look = Effect.map(read, (page): Chunk.Chunk<SessionEvent | Item> => {
    ;({ cursor, hasMore: isBehind, incarnation } = page)
    rows = rowsAfter(page)
    tail.moved(cursor, incarnation)
    if (isLive) Metrics.tailLag.unsafeUpdate(page.events.length, [])
    return Chunk.unsafeFromArray(page.events)
  })
  const wait = Effect.flatMap(tail.next, (recent) => {
    if (recent === undefined) return look
    cursor = recent.cursor
    tail.moved(cursor, incarnation, recent.rings)
    Metrics.tailLag.unsafeUpdate(Chunk.size(recent.events), [])
    return Effect.succeed(recent.events)
  })

  return Effect.suspend(() => {
    if (isBehind) return look
    if (isLive) return wait
    isLive = true
    return Effect.succeed(following.seam(cursor))
  })
}

const register = <E, Item>({ incarnation, sessionID, start, tails }: Following<E, Item>): Tail => {
  const tail = tails.follow(sessionID)
  tail.moved(start, incarnation)
  return tail
}

/** A tail's stream: a flat channel, because each layer of one costs as much as the rest of a wake. */
const follow = <E, Item>(following: Following<E, Item>): Stream.Stream<SessionEvent | Item, E> =>
  Stream.suspend(() => {
    let tail: Tail | undefined
    const opened = Channel.suspend(() => {
      const pull = pullOf((tail = register(following)), following)
      const next: Channel.Channel<Chunk.Chunk<SessionEvent | Item>, unknown, E> = Channel.flatMap(
        Channel.fromEffect(pull),
        (events) => Channel.flatMap(Channel.write(events), () => next)
      )
      return Channel.flatMap(Channel.fromEffect(following.check ?? Effect.void), () => next)
    })
    return Stream.fromChannel(
      Channel.ensuring(
        opened,
        Effect.sync(() => tail?.close())
      )
    )
  })

/** The seam marker for tails that request it; `noMarker` is for the others. */
export const marker = (cursor: number): Chunk.Chunk<ReplayComplete> => Chunk.of({ type: "replay.complete", cursor })
export const noMarker = (): Chunk.Chunk<never> => Chunk.empty()

type Seam<Item> = Following<never, Item>["seam"]

const following = <Item>(
  sql: SqlClient.SqlClient,
  tails: Tails,
  seam: Seam<Item>,
  { after, incarnation, sessionID }: From
): Following<ReadError, Item> => ({
  tails,
  sessionID,
  start: cursorOf(after, -1),
  incarnation,
  next: untilThere(sql, (after, incarnation, most) => page(sql, { sessionID, after, incarnation }, most)),
  seam
})

export const tail =
  <Item>(sql: SqlClient.SqlClient, tails: Tails, seam: Seam<Item>) =>
  (from: From): Stream.Stream<SessionEvent | Item, ReadError> =>
    follow(following(sql, tails, seam, from))

/** The pull of a tail, until the scope closes. */
export const pull = (sql: SqlClient.SqlClient, tails: Tails) => (from: From) => {
  const followed = following(sql, tails, noMarker, from)
  const registered = acquireRelease(
    Effect.sync(() => register(followed)),
    (tail) => Effect.sync(tail.close)
  )
  return Effect.map(registered, (tail) => pullOf(tail, followed))
}

const lastPosition = (sql: SqlClient.SqlClient) =>
  sql<{ readonly seq: number }>`SELECT ${newestPosition(sql)} AS seq`.pipe(
    retryBusy,
    Effect.mapError(unavailable("read")),
    Effect.map(([latest]) => latest?.seq ?? 0)
  )

export const feed =
  (sql: SqlClient.SqlClient, tails: Tails) =>
  (options: { readonly after?: number | undefined } = {}): Stream.Stream<SessionEvent, CursorAhead | FeedError> => {
    const start = cursorOf(options.after, 0)
    const check = Effect.flatMap(lastPosition(sql), (latest) =>
      start <= latest ? Effect.void : new CursorAhead({ cursor: start, latest })
    )
    return follow<CursorAhead | FeedError, never>({
      tails,
      start,
      check,
      next: untilThere(sql, (after, _, most) => feedPage(sql, after, most)),
      seam: noMarker
    })
  }

/** The session's last event up to a position; -1 if there is none. */
const seqAt = (sql: SqlClient.SqlClient, sessionID: SessionID, position: number) =>
  Effect.map(
    sql<{ readonly seq: number }>`SELECT e.seq FROM event e
      WHERE ${ofSession(sql, sessionID)} AND e.position <= ${position} ORDER BY e.seq DESC LIMIT 1`,
    ([row]) => row?.seq ?? -1
  )

export const tailing = (sql: SqlClient.SqlClient, tails: Tails) => (sessionID: SessionID) =>
  Effect.gen(function* () {
    const { feed, session } = tails.readers(sessionID, yield* Clock.currentTimeMillis)
    const behind = feed.length === 0 ? [] : [yield* seqAt(sql, sessionID, Math.min(...feed))]
    return [...session, ...behind]
  }).pipe(retryBusy, Effect.mapError(unavailable("read")))

/** Reads one page of all sessions' events. Options as for `read`. */
export const readFeed = (sql: SqlClient.SqlClient) =>
  Effect.fn("EventLog.readFeed")(function* (
    options: {
      readonly after?: number | undefined
      readonly limit?: number | undefined
      readonly gaps?: boolean | undefined
    } = {}
  ) {
    const after = cursorOf(options.after, 0)
    const limit = Math.trunc(Math.max(1, Math.min(options.limit ?? pageSize, pageSize))) || pageSize
    const latest = yield* lastPosition(sql)
    if (!(after <= latest)) return yield* new CursorAhead({ cursor: after, latest })
    const { cursor, events, hasMore } = yield* feedPage(sql, after, limit, options.gaps)
    const follows = feedPage(sql, cursor, 1, options.gaps).pipe(
      Effect.map((next) => next.cursor > cursor),
      // The next page fails with it.
      Effect.catchTags({ EventUnreadable: () => Effect.succeed(true), CursorExpired: () => Effect.succeed(true) })
    )
    return { events, position: cursor, hasMore: hasMore && (yield* follows) }
  })

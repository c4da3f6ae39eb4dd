/**
 * The events of live shells, of one session or of all, for viewers in a terminal and a browser: pages, and a stream of what the
 * log has after a cursor, then of what any process appends. The reader sets the pace: a page is read when the one before it was
 * written. Spec: SL-113..SL-116, SL-221, SL-223 in specs/shell.md.
 *
 *   page -> texts -> page -> ... -> caught-up -> wait for a change or a heartbeat -> page
 */
import { Chunk, Duration, Effect, Option, type Scope, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type SessionNotFound
} from "@daybook/log/log/EventLog"
import * as LocalServer from "@daybook/server/http/LocalServer"
import { isShellEvent, type ShellEvent } from "@daybook/shell/record/ShellList"

export type ShellFeedError = CursorAhead | CursorExpired | EventUnreadable | LogUnavailable | SessionNotFound

/** A page. Events of other types move the cursor. */
export interface ShellPage {
  readonly events: ReadonlyArray<ShellEvent>
  /** The start of the next page. */
  readonly cursor: number
  readonly hasMore: boolean
}

export interface ShellFeed {
  /** The events after a cursor, without pruned ones; -1 is the beginning. */
  readonly page: (after: number) => Effect.Effect<ShellPage, ShellFeedError>
  /** The cursor behind an event: its `seq` in a session, else its position. */
  readonly cursorOf: (event: ShellEvent) => number
  /** Registers for changes, before the first page is read; the inner effect waits for one. */
  readonly changes: Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
}

/** Rows of a page. A row has at most 64 KiB, or is alone in its page. */
const limit = 256

/** One session, from its floor on if older events were pruned. */
export const ofSession = Effect.fnUntraced(function* (sessionID: SessionID) {
  const log = yield* EventLog
  const { incarnation } = yield* log.head(sessionID)
  const read = (after: number) => log.read({ sessionID, after, incarnation, limit })
  const feed: ShellFeed = {
    changes: log.changes(sessionID),
    cursorOf: ({ seq }) => seq,
    page: (after) =>
      Effect.map(
        Effect.catchTag(read(after), "CursorExpired", ({ floor }) => read(floor)),
        ({ cursor, events, hasMore }) => ({ events: events.filter(isShellEvent), cursor, hasMore })
      )
  }
  return feed
})

/** All sessions. */
export const ofAll = Effect.map(EventLog, (log): ShellFeed => ({
  changes: log.changes(),
  cursorOf: ({ position }) => position,
  page: (after) =>
    Effect.map(log.readFeed({ after, gaps: true, limit }), ({ events, hasMore, position }) => ({
      events: events.filter(isShellEvent),
      cursor: position,
      hasMore
    }))
}))

const caughtUp = "caught-up"

/** Milliseconds after which a reader connects again. */
const retry = 1_000
const heartbeatEvery = Duration.seconds(15)

interface StreamPosition {
  readonly cursor: number
  /** Events were sent, or the stream has begun, since the reader last heard that it is caught up. */
  readonly behind: boolean
  /** The log had no more: waits before it reads. */
  readonly waits: boolean
  /** Read already. */
  readonly page?: ShellPage
}

export interface Format {
  readonly contentType: string
  readonly opening: string
  readonly event: (cursor: number, event: ShellEvent) => string
  readonly caughtUp: (cursor: number) => string
  readonly heartbeat: (cursor: number) => string
}

export const serverSentEvents: Format = {
  contentType: LocalServer.sseType,
  opening: LocalServer.sseOpening(retry),
  event: (id, event) => LocalServer.sseFrame({ id, data: JSON.stringify(event) }),
  caughtUp: (id) => LocalServer.sseFrame({ id, event: caughtUp, data: "{}" }),
  heartbeat: LocalServer.sseHeartbeat
}

const line = (frame: object): string => `${JSON.stringify(frame)}\n`

/** The frames of the HTTP API, for the page's follower. */
export const lines: Format = {
  contentType: "application/x-ndjson",
  opening: "\n",
  event: (cursor, event) => line({ frame: "event", cursor: String(cursor), event }),
  caughtUp: (cursor) => line({ frame: "replay.complete", cursor: String(cursor) }),
  heartbeat: () => "\n"
}

/** The frames of a page, and the place behind it. */
const framed = (
  { cursorOf }: ShellFeed,
  format: Format,
  place: StreamPosition,
  { cursor, events, hasMore }: ShellPage
) => {
  const frames = events.map((event) => format.event(cursorOf(event), event))
  const behind = place.behind || frames.length > 0
  if (behind && !hasMore) frames.push(format.caughtUp(cursor))
  return [frames, { cursor, behind: behind && hasMore, waits: !hasMore }] as const
}

/** The texts after a cursor. Fails if the first page cannot be read; ends if a later page cannot be read. */
export const stream = (
  feed: ShellFeed,
  after: number,
  format: Format
): Effect.Effect<Stream.Stream<string>, ShellFeedError, Scope.Scope> =>
  Effect.gen(function* () {
    // Registered before the first read, so that no event is missed between reading and waiting.
    const changed = yield* feed.changes
    const start: StreamPosition = { cursor: after, behind: true, waits: false, page: yield* feed.page(after) }
    const next = Effect.fnUntraced(function* (place: StreamPosition) {
      const isChanged = !place.waits || Option.isSome(yield* Effect.timeoutOption(changed, heartbeatEvery))
      // After a heartbeat it reads too: a change that nothing announced waits no longer than that.
      const [frames, then] = isChanged
        ? framed(feed, format, place, place.page ?? (yield* feed.page(place.cursor)))
        : [[format.heartbeat(place.cursor)], { ...place, waits: false }]
      return [Chunk.unsafeFromArray(LocalServer.joined(frames)), Option.some<StreamPosition>(then)] as const
    })
    return Stream.make(format.opening).pipe(
      Stream.concat(Stream.paginateChunkEffect(start, next)),
      // A reader whose stream ended connects again, and gets the reason as a status.
      Stream.catchAll(() => Stream.empty),
      // One text at a time: each waits until the reader takes it.
      Stream.rechunk(1)
    )
  })

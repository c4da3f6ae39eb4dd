/**
 * The events of live shells as server-sent events: what the log has after a cursor, then what any process appends. The reader
 * sets the pace: a page is read when the one before it was written. Spec: SL-221, SL-223 in specs/shell.md.
 *
 *   page -> texts -> page -> ... -> caught-up -> wait for a change or a heartbeat -> page
 */
import { Chunk, Duration, Effect, Option, type Scope, Stream } from "effect"
import * as LocalServer from "@daybook/server/http/LocalServer"
import type { ShellFeed, ShellFeedError, ShellPage } from "./ShellFeed.ts"

/** The type of the event after which a reader has all that the log has. */
const caughtUp = "caught-up"

/** Milliseconds after which a reader connects again. */
const retry = 1_000
const heartbeatEvery = Duration.seconds(15)

/** Where the stream is. */
interface Place {
  readonly cursor: number
  /** Events were sent, or the stream has begun, since the reader last heard that it is caught up. */
  readonly behind: boolean
  /** The log had no more: waits before it reads. */
  readonly waits: boolean
  /** Read already. */
  readonly page?: ShellPage
}

/** The frames of a page, and the place behind it. */
const framed = ({ cursorOf }: ShellFeed, place: Place, { cursor, events, hasMore }: ShellPage) => {
  const frames = events.map((event) => LocalServer.sseFrame({ id: cursorOf(event), data: JSON.stringify(event) }))
  const behind = place.behind || frames.length > 0
  if (behind && !hasMore) frames.push(LocalServer.sseFrame({ id: cursor, event: caughtUp, data: "{}" }))
  return [frames, { cursor, behind: behind && hasMore, waits: !hasMore }] as const
}

/** The texts after a cursor. Fails at once if the first page cannot be read; the stream ends if a later one cannot. */
export const make = (
  feed: ShellFeed,
  after: number
): Effect.Effect<Stream.Stream<string>, ShellFeedError, Scope.Scope> =>
  Effect.gen(function* () {
    // Registered before the first read, so that no event is missed between reading and waiting.
    const changed = yield* feed.changes
    const start: Place = { cursor: after, behind: true, waits: false, page: yield* feed.page(after) }
    const next = Effect.fnUntraced(function* (place: Place) {
      const isChanged = !place.waits || Option.isSome(yield* Effect.timeoutOption(changed, heartbeatEvery))
      // After a heartbeat it reads too: a change that nothing announced waits no longer than that.
      const [frames, then] = isChanged
        ? framed(feed, place, place.page ?? (yield* feed.page(place.cursor)))
        : [[LocalServer.sseHeartbeat(place.cursor)], { ...place, waits: false }]
      return [Chunk.unsafeFromArray(LocalServer.joined(frames)), Option.some<Place>(then)] as const
    })
    return Stream.make(LocalServer.sseOpening(retry)).pipe(
      Stream.concat(Stream.paginateChunkEffect(start, next)),
      // A reader whose stream ended connects again, and gets the reason as a status.
      Stream.catchAll(() => Stream.empty),
      // One text at a time: each waits until the reader takes it.
      Stream.rechunk(1)
    )
  })

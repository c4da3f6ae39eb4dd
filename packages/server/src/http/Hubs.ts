/**
 * Shares one tail of the log among all readers that follow the same events. Each reader reads the stored events itself,
 * then attaches at its position and receives new events from the hub. A reader that falls behind is detached, and reads
 * stored events again. Spec: HT-40, HT-49, HT-50 in specs/http.md.
 */
import { Chunk, Context, Data, Effect, Layer, Option, RcMap, type Scope, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type ReadError
} from "@daybook/log/log/EventLog"

// stored pages -> attached -> (reader is slow) detached -> stored pages -> attached

/** Gets events while it is attached. Both are called synchronously. */
export interface Reader<E> {
  readonly take: (events: ReadonlyArray<SessionEvent>) => void
  /** No events come any more. */
  readonly fail: (error: E) => void
}

export interface Hub<E> {
  /**
   * Attaches a reader that has all events up to a position: it gets all later ones. False if some of those were already given
   * out: read them first.
   */
  readonly attach: (reader: Reader<E>, position: number) => boolean
  readonly detach: (reader: Reader<E>) => void
}

export interface Followed<E> {
  readonly latest: Effect.Effect<number, E>
  /** Gives the later events, a chunk at each run. */
  readonly pull: (after: number) => Effect.Effect<Effect.Effect<Chunk.Chunk<SessionEvent>, E>, never, Scope.Scope>
  readonly positionOf: (event: SessionEvent) => number
}

/** A stream that ends only by failing, pulled: one that runs has a second fiber. */
export const pullOf = <E>(stream: Stream.Stream<SessionEvent, E>) =>
  Effect.map(
    Stream.toPull(stream),
    Effect.catchAll(Option.match({ onNone: () => Effect.never, onSome: (error: E) => Effect.fail(error) }))
  )

export const makeHub = <E>({ latest, positionOf, pull }: Followed<E>): Effect.Effect<Hub<E>, E, Scope.Scope> =>
  Effect.gen(function* () {
    /** The readers, and where each was attached: the tail may still be before that. */
    const readers = new Map<Reader<E>, number>()
    let [position, failure]: [number, { readonly error: E } | undefined] = [yield* latest, undefined]
    const give = (chunk: Chunk.Chunk<SessionEvent>) => {
      const events = Chunk.toReadonlyArray(chunk)
      const [first, last] = [events[0], events.at(-1)]
      if (first === undefined || last === undefined) return
      position = positionOf(last)
      for (const [reader, from] of readers) {
        if (from < positionOf(first)) reader.take(events)
        else if (from < position) reader.take(events.filter((event) => positionOf(event) > from))
      }
    }
    const fail = (error: E) => {
      failure = { error }
      for (const reader of readers.keys()) reader.fail(error)
      readers.clear()
    }
    const next = yield* pull(position)
    const giving: Effect.Effect<never, E> = Effect.flatMap(next, (chunk) => {
      give(chunk)
      return giving
    })
    yield* giving.pipe(
      Effect.catchAll((error) => Effect.sync(() => fail(error))),
      Effect.forkScoped
    )
    return {
      attach: (reader, from) => {
        if (failure !== undefined) {
          reader.fail(failure.error)
          return true
        }
        if (from < position) return false
        readers.set(reader, from)
        return true
      },
      detach: (reader) => void readers.delete(reader)
    }
  })

// The hubs of the followed sessions and of the feed: each exists while it has readers.

export type FeedError = CursorAhead | CursorExpired | EventUnreadable | LogUnavailable

interface Life {
  readonly sessionID: SessionID
  readonly incarnation: number
}

export class Hubs extends Context.Tag("@daybook/server/Hubs")<
  Hubs,
  {
    readonly session: (life: Life) => Effect.Effect<Hub<ReadError>, ReadError, Scope.Scope>
    readonly feed: Effect.Effect<Hub<FeedError>, FeedError, Scope.Scope>
    /** The position of the latest event of all sessions. */
    readonly latest: Effect.Effect<number, EventUnreadable | LogUnavailable>
  }
>() {}

class Key extends Data.Class<Life> {}

const makeHubs = Effect.gen(function* () {
  const log = yield* EventLog
  // A cursor ahead of the latest event names it.
  const latest = log.readFeed({ after: Number.MAX_SAFE_INTEGER, gaps: true, limit: 1 }).pipe(
    Effect.map(({ position }) => position),
    Effect.catchTags({
      CursorAhead: ({ latest }) => Effect.succeed(latest),
      CursorExpired: ({ floor }) => Effect.succeed(floor)
    })
  )
  const sessions = yield* RcMap.make({
    lookup: ({ incarnation, sessionID }: Key) =>
      makeHub<ReadError>({
        latest: Effect.map(log.head(sessionID), ({ seq }) => seq),
        pull: (after) => log.pull({ sessionID, incarnation, after }),
        positionOf: ({ seq }) => seq
      })
  })
  const feeds = yield* RcMap.make({
    lookup: (_key: "feed") =>
      makeHub<FeedError>({
        latest,
        pull: (after) => pullOf(log.feed({ after })),
        positionOf: ({ position }) => position
      })
  })
  return Hubs.of({
    session: ({ incarnation, sessionID }) => RcMap.get(sessions, new Key({ incarnation, sessionID })),
    feed: RcMap.get(feeds, "feed"),
    latest
  })
})

/** No hub exists at first. */
export const layer = Layer.scoped(Hubs, makeHubs)

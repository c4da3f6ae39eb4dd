/** The verbs that are streams, over connections that break. Spec: HT-60..HT-62 in specs/http.md. */
import type * as HttpClient from "@effect/platform/HttpClient"
import { type Duration, Effect, Option, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { DurableType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type {
  CursorAhead,
  CursorExpired,
  EventUnreadable,
  From,
  LogUnavailable,
  ReadError,
  ReplayComplete,
  SessionNotFound
} from "@daybook/log/log/EventLog"
import { type ConnectionError, UnexpectedAnswer } from "./connection/ClientError.ts"
import { isSessionID, noSession } from "./connection/OfSession.ts"
import type { StreamError } from "./events/Connecting.ts"
import * as Following from "./events/Following.ts"
import * as Place from "./events/Place.ts"

/** What to follow: one session, or all, from a cursor on. */
export interface FollowOptions {
  /** Absent for the feed of all sessions. */
  readonly sessionID?: SessionID | undefined
  /** A cursor of an earlier item. Default: before the first event. */
  readonly after?: string | undefined
  /** Also deltas of running turns, of one session. */
  readonly live?: boolean | undefined
  /** Only events of these types; the cursor passes the others. `shellTypes` are those of live shells. */
  readonly types?: ReadonlyArray<DurableType> | undefined
  /** False ends the stream where stored events end. */
  readonly follow?: boolean | undefined
}

/** Where a session's log ends: to follow from now on, begin after it. */
export interface Head {
  readonly seq: number
  readonly cursor: string
}

export interface Streams {
  /** Where the session's log ends now. */
  readonly head: (sessionID: SessionID) => Effect.Effect<Head, SessionNotFound | LogUnavailable | ConnectionError>
  /** Events with their cursors, for callers that keep cursors: they are opaque, and valid in this database alone. */
  readonly follow: (options: FollowOptions) => Stream.Stream<Following.Item, StreamError | ConnectionError>
  /** `session.next.*` events after the number, then new ones (TL-1). */
  readonly events: (options: From) => Stream.Stream<SessionEvent, ReadError | ConnectionError>
  /** `events` with one marker where replay ends (TL-9). */
  readonly eventsMarked: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError | ConnectionError>
  /** `eventsMarked` with the creation of the session, as the log has it (TL-9). */
  readonly tail: (options: From) => Stream.Stream<SessionEvent | ReplayComplete, ReadError | ConnectionError>
  /** Deltas of the running turn. A connection that breaks loses some: the stored text has them all. */
  readonly live: (sessionID: SessionID) => Stream.Stream<LiveEvent, ReadError | ConnectionError>
  /** The events of all sessions after a position, in global order, then new ones (LG-42). */
  readonly feed: (options?: {
    readonly after?: number | undefined
  }) => Stream.Stream<SessionEvent, CursorAhead | CursorExpired | EventUnreadable | LogUnavailable | ConnectionError>
}

const pathOf = (sessionID: SessionID | undefined): string =>
  sessionID === undefined ? "/events" : `/sessions/${encodeURIComponent(sessionID)}/events`

const notOfFeed = ({ message }: SessionNotFound) => new UnexpectedAnswer({ status: 404, details: message })

/** The streams over a connection. */
export const make = (
  http: HttpClient.HttpClient,
  giveUpAfter: Duration.DurationInput,
  head: Streams["head"]
): Streams => {
  // An id of another form names no session.
  const from = (sessionID: SessionID | undefined, place: Readonly<Record<string, string>>, query = {}) =>
    sessionID === undefined || isSessionID(sessionID)
      ? Following.follow(http, { path: pathOf(sessionID), from: place, query }, giveUpAfter)
      : Stream.fromEffect(noSession(sessionID))

  const follow: Streams["follow"] = ({ after, follow = true, live = false, sessionID, types }) =>
    from(sessionID, after === undefined ? {} : { after }, {
      ...(live ? { live: "1" } : {}),
      ...(types === undefined ? {} : { type: types.join(",") }),
      ...(follow ? {} : { follow: "0" })
    })

  const tail: Streams["tail"] = ({ sessionID, ...place }) =>
    from(sessionID, Place.queryOf(place)).pipe(
      Stream.mapConcatEffect((item): Effect.Effect<ReadonlyArray<SessionEvent | ReplayComplete>, UnexpectedAnswer> => {
        if (item.frame === "event") return Effect.succeed([item.event])
        if (item.frame === "live") return Effect.succeed([])
        return Effect.map(Place.read(item.cursor), ({ position }) => [{ type: "replay.complete", cursor: position }])
      }),
      Stream.mapError(Place.asGiven(place.after))
    )

  // Creation is not part of the `session.next.*` events of the facade.
  const eventsMarked: Streams["eventsMarked"] = (options) =>
    Stream.filter(tail(options), ({ type }) => type !== "session.created")

  return {
    head,
    follow,
    tail,
    eventsMarked,
    events: (options) =>
      Stream.filter(eventsMarked(options), (item): item is SessionEvent => item.type !== "replay.complete"),
    live: (sessionID) =>
      Stream.unwrap(Effect.map(head(sessionID), ({ cursor }) => follow({ sessionID, after: cursor, live: true }))).pipe(
        Stream.filterMap((item) => (item.frame === "live" ? Option.some(item.live) : Option.none()))
      ),
    feed: ({ after } = {}) =>
      from(undefined, Place.queryOf({ after })).pipe(
        Stream.filterMap((item) => (item.frame === "event" ? Option.some(item.event) : Option.none())),
        Stream.mapError((error) => (error._tag === "SessionNotFound" ? notOfFeed(error) : error)),
        Stream.mapError(Place.asGiven(after))
      )
  }
}

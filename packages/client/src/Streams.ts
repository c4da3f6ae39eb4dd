/** The verbs that are streams, over connections that break. Spec: HT-40..HT-48, HT-60..HT-62 in specs/http.md. */
import * as Sse from "@effect/experimental/Sse"
import * as HttpApiError from "@effect/platform/HttpApiError"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Chunk, Duration, Effect, Either, Option, Predicate, Schedule, Schema, Stream } from "effect"
import * as Access from "@daybook/api/wire/Access"
import * as Cursor from "@daybook/api/wire/Cursor"
import { Expired, ForeignCursor } from "@daybook/api/wire/Cursor"
import * as EventFrames from "@daybook/api/wire/EventFrames"
import { type End, mediaTypes } from "@daybook/api/wire/EventFrames"
import { failures } from "@daybook/api/wire/Failure"
import { isSessionID, type SessionID } from "@daybook/log/domain/Identifiers"
import { durableDefinitions, type DurableType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import {
  CursorAhead,
  type CursorExpired,
  EventUnreadable,
  type Followed,
  type From,
  LogUnavailable,
  type ReadError,
  type ReplayComplete,
  SessionNotFound
} from "@daybook/log/log/EventLog"
import { keyOf, textOf, withText } from "@daybook/log/log/Follow"
import { forAtMost } from "@daybook/log/support/ForAtMost"
import { type ConnectionError, noSession, ServerUnreachable, translated, UnexpectedAnswer } from "./ClientError.ts"

// Positions of callers as texts of requests, and back.

/** The greatest number that a request can have: ahead of every log. Its negative is before every log. */
const most = 999_999_999_999_999

/** A number as a cursor; the log itself refuses a cursor that is ahead of the log. */
export const textOfPlace = (after: number | undefined): string | undefined =>
  after === undefined
    ? undefined
    : String(Number.isNaN(after) ? most : Math.min(most, Math.max(-most, Math.floor(after))))

/** A number that is none of a log is refused as the caller gave it. */
export const asGiven =
  (after: number | undefined) =>
  <E>(error: E): E | CursorAhead =>
    error instanceof CursorAhead && after !== undefined
      ? new CursorAhead({ cursor: after, latest: error.latest })
      : error

/** The position and the life of a session in a cursor of the server. */
export const readPlace = (text: string): Effect.Effect<{ position: number; incarnation: number }, UnexpectedAnswer> => {
  const cursor = Cursor.read(text)
  return cursor === undefined
    ? new UnexpectedAnswer({ details: "a cursor has another form" })
    : Effect.succeed({ position: cursor.position, incarnation: cursor.incarnation ?? 0 })
}

// Reads the frames of one connection: server-sent events, their data as schemas.

export type Frame = EventFrames.Frame | { readonly frame: "unknown"; readonly cursor: string }

/** The largest frame in characters: larger than any event that a log keeps. */
const maxEventSize = 256 * 1024 * 1024

const known: ReadonlySet<string> = new Set(durableDefinitions.map(({ type }) => type))

const Json = Schema.parseJson()
const decodeEvent = Schema.decodeUnknown(SessionEvent)
const decodeLive = Schema.decodeUnknownOption(LiveEvent)
const decodeSeam = Schema.decodeUnknown(EventFrames.Seam)
const decodeEnd = Schema.decodeUnknown(EventFrames.End)

const isKnown = (event: unknown): boolean =>
  Predicate.hasProperty(event, "type") && typeof event.type === "string" && known.has(event.type)

/** What a server-sent event says; nothing for a kind that this build does not know. */
const frameOf = Effect.fnUntraced(
  function* ({ data, event, id: cursor }: Sse.Event) {
    const value = yield* Schema.decodeUnknown(Json)(data)
    switch (event) {
      case "event":
        if (cursor === undefined) return yield* new UnexpectedAnswer({ details: "an event has no cursor" })
        if (!isKnown(value)) return Option.some<Frame>({ frame: "unknown", cursor })
        return Option.some<Frame>({ frame: "event", cursor, event: yield* decodeEvent(value) })
      case "replay.complete":
        return Option.some<Frame>({ frame: "replay.complete", ...(yield* decodeSeam(value)) })
      case "live":
        return Option.map(decodeLive(value), (live): Frame => ({ frame: "live", live }))
      case "end":
        return Option.some<Frame>({ frame: "end", ...(yield* decodeEnd(value)) })
      default:
        return Option.none<Frame>()
    }
  },
  Effect.catchTag("ParseError", ({ message }) => new UnexpectedAnswer({ details: message }))
)

const parsed = <E>(text: Stream.Stream<string, E>): Stream.Stream<Frame, E | UnexpectedAnswer> =>
  Stream.suspend(() => {
    const events: Array<Sse.Event> = []
    const parser = Sse.makeParser(
      (event) => {
        if (event._tag === "Event") events.push(event)
      },
      { maxEventSize }
    )
    return text.pipe(
      Stream.mapConcatEffect((piece) => {
        const fault = parser.feed(piece)
        if (fault !== undefined) return new UnexpectedAnswer({ details: fault.message })
        return Effect.forEach(events.splice(0), frameOf)
      }),
      Stream.filterMap((frame) => frame)
    )
  })

// Reads one connection to its end; an early end is an error, like a refusal.

/** Why events are not read. An expired cursor comes with one to go on from, and the path of a snapshot. */
export const StreamError = Schema.Union(SessionNotFound, CursorAhead, Expired, EventUnreadable, LogUnavailable)
export type StreamError = typeof StreamError.Type

/** Why a stream of events fails. */
const StreamFailure = Schema.Union(
  failures(StreamError),
  failures(Schema.Union(ForeignCursor, ...Access.Refused.members)),
  HttpApiError.HttpApiDecodeError
)

type StreamRequest = { readonly path: string; readonly query: Readonly<Record<string, string>> }

/** A connection that carries no byte for this long is dead: three heartbeats are missing (HT-47). */
const silence = Duration.seconds(45)

const decodeFailure = Schema.decodeUnknownEither(StreamFailure)

export type Failure = StreamError | ConnectionError

const failureOf = (status: number, body: unknown): Failure =>
  Either.match(decodeFailure(body), {
    onLeft: () => new UnexpectedAnswer({ status, details: "StatusCode" }),
    onRight: (failure) => (failure._tag === "HttpApiDecodeError" ? translated(failure) : failure)
  })

const unreachable = (details: string) => new ServerUnreachable({ details })

const refused = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.flatMap(
    Effect.orElseSucceed(response.json, () => undefined),
    (body) => Effect.fail(failureOf(response.status, body))
  )

const ended = ({ error, reason }: End): Stream.Stream<never, Failure> => {
  if (reason === "complete") return Stream.empty
  return Stream.fail(reason === "draining" ? new Access.Stopping() : failureOf(200, error))
}

const untilEnd = (frames: Stream.Stream<Frame, Failure>): Stream.Stream<Frame, Failure> =>
  frames.pipe(
    Stream.takeUntil(({ frame }) => frame === "end"),
    Stream.flatMap((frame) => (frame.frame === "end" ? ended(frame) : Stream.succeed(frame)))
  )

const isStream = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  headers["content-type"]?.startsWith(mediaTypes.sse) === true

/** Something else than a server of the API answers there. */
const noStream = new UnexpectedAnswer({ status: 200, details: "the answer is not an event stream" })

/** The bytes of the response, or why there are none. */
const opened = (http: HttpClient.HttpClient, { path, query }: StreamRequest) =>
  HttpClientRequest.get(path).pipe(
    HttpClientRequest.setUrlParams(query),
    HttpClientRequest.accept(mediaTypes.sse),
    http.execute,
    Effect.mapError(translated),
    Effect.timeoutFail({ duration: silence, onTimeout: () => unreachable("it did not answer for 45 seconds") }),
    Effect.flatMap((response) => {
      if (response.status !== 200) return refused(response)
      return isStream(response) ? Effect.succeed(response.stream) : Effect.fail(noStream)
    })
  )

/** Frames up to the end of the connection. A stream without a frame `end` was cut off. */
const connect = (http: HttpClient.HttpClient, request: StreamRequest): Stream.Stream<Frame, Failure> =>
  opened(http, request).pipe(
    Effect.map((bytes) =>
      bytes.pipe(
        Stream.mapError(() => unreachable("the connection was cut")),
        Stream.timeoutFail(() => unreachable("the connection carried nothing for 45 seconds"), silence),
        Stream.decodeText(),
        parsed
      )
    ),
    Stream.unwrap,
    Stream.concat(Stream.fail(unreachable("the connection was cut"))),
    untilEnd
  )

// Follows events over connections that break: reconnects with the cursor of the last frame, after a growing, random
// delay.

export interface Following {
  readonly path: string
  readonly after: string | undefined
  /** What every request has. */
  readonly query: Readonly<Record<string, string>>
}

/** An event with its cursor, the seam, or a delta. */
export type Item = Exclude<EventFrames.Frame, { readonly frame: "end" }>

/** Whether a new connection can succeed with the same cursor. */
const isTransient = (error: Failure): boolean => {
  switch (error._tag) {
    case "ServerUnreachable":
    case "LogUnavailable":
    case "Stopping":
    case "TooManyRequests":
      return true
    case "UnexpectedAnswer":
      // 408: a server that was stopped meanwhile read nothing of the request in time.
      return error.status !== undefined && (error.status >= 500 || error.status === 408)
    default:
      return false
  }
}

/** A server says how long a client that asks too often has to wait. */
const atLeast = (error: Failure, delay: Duration.Duration): Duration.Duration =>
  error._tag === "TooManyRequests" ? Duration.max(delay, Duration.seconds(error.retryAfterSeconds)) : delay

/** The delays between connections, up to ten seconds, until none succeeded for so long. */
const reconnecting = (giveUpAfter: Duration.DurationInput) =>
  Schedule.identity<Failure>().pipe(
    Schedule.zipLeft(Schedule.exponential("100 millis").pipe(Schedule.union(Schedule.spaced("10 seconds")))),
    Schedule.jitteredWith({ min: 0.5, max: 1.5 }),
    Schedule.modifyDelay(atLeast),
    Schedule.whileInput(isTransient),
    forAtMost(giveUpAfter)
  )

const isItem = (frame: Frame): frame is Item =>
  frame.frame === "event" || frame.frame === "replay.complete" || frame.frame === "live"

/**
 * Leaves out what a reader has of a text. Each connection gives an open text from its beginning.
 */
const makeNewDeltas = () => {
  /** Code units of each text that the reader has, and that came over this connection. */
  const [had, came] = [new Map<string, number>(), new Map<string, number>()]
  return {
    connected: () => came.clear(),
    take: (item: Item): Option.Option<Item> => {
      if (item.frame === "event") {
        // The next step's texts are others.
        if (/^session\.next\.step\.(?:ended|failed)$/.test(item.event.type)) had.clear()
        return Option.some(item)
      }
      if (item.frame !== "live") return Option.some(item)
      const [key, text] = [keyOf(item.live), textOf(item.live)]
      const [before, known] = [came.get(key) ?? 0, had.get(key) ?? 0]
      came.set(key, before + text.length)
      if (before + text.length <= known) return Option.none()
      had.set(key, before + text.length)
      return Option.some(before >= known ? item : { ...item, live: withText(item.live, text.slice(known - before)) })
    }
  }
}

/** The items from the cursor on, over as many connections as needed, with one seam, and each delta once. */
const followEvents = (
  http: HttpClient.HttpClient,
  { after, path, query }: Following,
  giveUpAfter: Duration.DurationInput
): Stream.Stream<Item, Failure> =>
  Stream.suspend(() => {
    let place = after
    let isPastSeam = false
    const deltas = makeNewDeltas()
    const moved = (frames: Chunk.Chunk<Frame>) => {
      for (const frame of frames) {
        if ("cursor" in frame && frame.cursor !== undefined) place = frame.cursor
      }
      return frames
    }
    const isNew = ({ frame }: Item): boolean => {
      if (frame !== "replay.complete") return true
      const isFirst = !isPastSeam
      isPastSeam = true
      return isFirst
    }
    return Stream.suspend(() => {
      deltas.connected()
      return connect(http, { path, query: place === undefined ? query : { ...query, after: place } })
    }).pipe(
      Stream.mapChunks(moved),
      Stream.retry(reconnecting(giveUpAfter)),
      Stream.filter(isItem),
      Stream.filter(isNew),
      Stream.filterMap(deltas.take)
    )
  })

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
  /** The life of the session, if the cursor is a number. */
  readonly incarnation?: number | undefined
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
  readonly follow: (options: FollowOptions) => Stream.Stream<Item, StreamError | ConnectionError>
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

const isDelta = (item: Followed): item is LiveEvent => !("seq" in item) && item.type !== "replay.complete"

/** Creation is not part of the `session.next.*` events of the facade. */
export const isOfFacade = ({ type }: Followed): boolean => type !== "session.created"

/** What a log gives its readers, with numbers as cursors. */
export const plain = (
  follow: Streams["follow"],
  { after, incarnation, sessionID }: From,
  live: boolean
): Stream.Stream<Followed, Failure> =>
  follow({ sessionID, after: textOfPlace(after), incarnation, live }).pipe(
    Stream.mapEffect((item): Effect.Effect<Followed, UnexpectedAnswer> => {
      if (item.frame === "event") return Effect.succeed(item.event)
      if (item.frame === "live") return Effect.succeed(item.live)
      return Effect.map(readPlace(item.cursor), ({ position }) => ({ type: "replay.complete", cursor: position }))
    }),
    Stream.mapError(asGiven(after))
  )

const notOfFeed = ({ message }: SessionNotFound) => new UnexpectedAnswer({ status: 404, details: message })

export const makeStreams = (
  http: HttpClient.HttpClient,
  giveUpAfter: Duration.DurationInput,
  head: Streams["head"]
): Streams => {
  // An id of another form names no session.
  const from = (sessionID: SessionID | undefined, after: string | undefined, query = {}) =>
    sessionID === undefined || isSessionID(sessionID)
      ? followEvents(http, { path: pathOf(sessionID), after, query }, giveUpAfter)
      : Stream.fromEffect(noSession(sessionID))

  const follow: Streams["follow"] = ({ after, follow = true, incarnation, live = false, sessionID, types }) =>
    from(sessionID, after, {
      ...(incarnation === undefined ? {} : { incarnation: String(incarnation) }),
      ...(live ? { live: "1" } : {}),
      ...(types === undefined ? {} : { type: types.join(",") }),
      ...(follow ? {} : { follow: "0" })
    })

  const tail: Streams["tail"] = (options) =>
    Stream.filter(plain(follow, options, false), (item): item is SessionEvent | ReplayComplete => !isDelta(item))

  const eventsMarked: Streams["eventsMarked"] = (options) => Stream.filter(tail(options), isOfFacade)

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
      from(undefined, textOfPlace(after)).pipe(
        Stream.filterMap((item) => (item.frame === "event" ? Option.some(item.event) : Option.none())),
        Stream.mapError((error) => (error._tag === "SessionNotFound" ? notOfFeed(error) : error)),
        Stream.mapError(asGiven(after))
      )
  }
}

/**
 * Opens one connection for events and reads it to its end. A refusal is the error of the endpoint; an end of the stream is
 * an error too, except that of a replay which was not to be followed. Spec: HT-40..HT-48 in specs/http.md.
 */
import * as HttpApiError from "@effect/platform/HttpApiError"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Duration, Effect, Either, Schema, Stream } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { Expired, ForeignCursor } from "@daybook/api/wire/Cursor"
import type { End } from "@daybook/api/wire/EventFrames"
import { mediaTypes } from "@daybook/api/wire/EventFrames"
import { failures } from "@daybook/api/wire/Failure"
import { CursorAhead, EventUnreadable, LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { translated } from "../connection/Answered.ts"
import { type ConnectionError, ServerUnreachable, UnexpectedAnswer } from "../connection/ClientError.ts"
import * as Frames from "./Frames.ts"

/** Why events are not read. An expired cursor comes with one to go on from, and the path of a snapshot. */
export const StreamError = Schema.Union(SessionNotFound, CursorAhead, Expired, EventUnreadable, LogUnavailable)
export type StreamError = typeof StreamError.Type

/** Why a stream of events fails. */
const StreamFailure = Schema.Union(
  failures(StreamError),
  failures(Schema.Union(ForeignCursor, ...Access.Refused.members)),
  HttpApiError.HttpApiDecodeError
)

/** The stream, and where it begins. */
export interface Request {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

/** A connection that carries no byte for this long is dead: three heartbeats are missing (HT-47). */
const silence = Duration.seconds(45)

const decodeFailure = Schema.decodeUnknownEither(StreamFailure)

/** Why a connection, or its stream, ended. */
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

const untilEnd = (frames: Stream.Stream<Frames.Frame, Failure>): Stream.Stream<Frames.Frame, Failure> =>
  frames.pipe(
    Stream.takeUntil(({ frame }) => frame === "end"),
    Stream.flatMap((frame) => (frame.frame === "end" ? ended(frame) : Stream.succeed(frame)))
  )

const isStream = ({ headers }: HttpClientResponse.HttpClientResponse): boolean =>
  headers["content-type"]?.startsWith(mediaTypes.sse) === true

/** Something else than a server of the API answers there. */
const noStream = new UnexpectedAnswer({ status: 200, details: "the answer is not an event stream" })

/** The bytes of the response, or why there are none. */
const opened = (http: HttpClient.HttpClient, { path, query }: Request) =>
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
export const connect = (http: HttpClient.HttpClient, request: Request): Stream.Stream<Frames.Frame, Failure> =>
  opened(http, request).pipe(
    Effect.map((bytes) =>
      bytes.pipe(
        Stream.mapError(() => unreachable("the connection was cut")),
        Stream.timeoutFail(() => unreachable("the connection carried nothing for 45 seconds"), silence),
        Stream.decodeText(),
        Frames.parsed
      )
    ),
    Stream.unwrap,
    Stream.concat(Stream.fail(unreachable("the connection was cut"))),
    untilEnd
  )

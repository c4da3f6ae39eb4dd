/**
 * Why a server did not answer as the API says, and which requests are not sent at all. Errors of the verbs themselves
 * are those of `Sessions` (core). Spec: HT-3, HT-10, HT-60, HT-500 in specs/http.md.
 */
import type * as HttpApiError from "@effect/platform/HttpApiError"
import * as HttpClientError from "@effect/platform/HttpClientError"
import { Effect, ParseResult, Predicate, Schema } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { ForeignCursor } from "@daybook/api/wire/Cursor"
import { isSessionID, type SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput, invalidAt, validate } from "@daybook/log/domain/InvalidInput"
import { SessionNotFound } from "@daybook/log/log/EventLog"
import { unansweredWords } from "@daybook/log/support/SystemError"

/** The server cannot be reached, or the connection broke before it answered. */
export class ServerUnreachable extends Schema.TaggedError<ServerUnreachable>("@daybook/client/ServerUnreachable")(
  "ServerUnreachable",
  { details: Schema.String }
) {
  override get message() {
    return `the server cannot be reached: ${this.details}`
  }
}

/** The answer is not one of the API: the server failed, another program listens there, or its version differs. */
export class UnexpectedAnswer extends Schema.TaggedError<UnexpectedAnswer>("@daybook/client/UnexpectedAnswer")(
  "UnexpectedAnswer",
  { status: Schema.optionalWith(Schema.Int, { exact: true }), details: Schema.String }
) {
  override get message() {
    const status = this.status === undefined ? "" : ` ${this.status}`
    return `the server's answer${status} is not one of the API: ${this.details}`
  }
}

/**
 * Every error of a connection. `InvalidInput`: an argument does not fit its schema, and nothing was changed.
 * `ForeignCursor`: the server has another database than before.
 */
export const ConnectionError = Schema.Union(
  ServerUnreachable,
  UnexpectedAnswer,
  InvalidInput,
  ForeignCursor,
  ...Access.Refused.members
)
export type ConnectionError = typeof ConnectionError.Type

// Translates the failures of a derived client to errors that callers can act on.

/** What a derived client fails with besides the errors of its endpoint. */
export type Failure = HttpClientError.HttpClientError | HttpApiError.HttpApiDecodeError | ParseResult.ParseError

const isFailure = (error: unknown): error is Failure =>
  HttpClientError.isHttpClientError(error) ||
  ParseResult.isParseError(error) ||
  Predicate.isTagged(error, "HttpApiDecodeError")

const causeOf = ({ cause, message }: HttpClientError.RequestError): string =>
  cause instanceof Error ? unansweredWords(cause) || message : message

const foreignBody = "the body has another form"

/** The error for callers. It has no header of the request, and so no token. */
export const translated = (error: Failure): InvalidInput | ServerUnreachable | UnexpectedAnswer => {
  switch (error._tag) {
    case "ParseError":
      return invalidAt(undefined, ParseResult.ArrayFormatter.formatErrorSync(error))
    case "HttpApiDecodeError":
      return invalidAt(undefined, error.issues)
    case "RequestError":
      return new ServerUnreachable({ details: causeOf(error) })
    case "ResponseError":
      // Of a whole answer, only JSON that is none has a cause.
      return error.cause === undefined || error.cause instanceof SyntaxError
        ? new UnexpectedAnswer({ status: error.response.status, details: foreignBody })
        : new ServerUnreachable({ details: "the connection was cut" })
  }
}

/** An answer that does not decode is the server's fault, not the fault of an argument. */
export const decoded = (answer: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> =>
  Effect.mapError(answer, (error) => {
    if (!ParseResult.isParseError(error)) return error
    const [{ message, path } = { message: "", path: [] }] = ParseResult.ArrayFormatter.formatErrorSync(error)
    return new UnexpectedAnswer({ details: `${foreignBody}: ${[...path, message].join(" ")}` })
  })

/** The result of a request, with the errors of its endpoint and of the connection. */
export const answered = <A, E, R>(
  request: Effect.Effect<A, E | Failure, R>
): Effect.Effect<A, E | InvalidInput | ServerUnreachable | UnexpectedAnswer, R> =>
  Effect.mapError(request, (error) => (isFailure(error) ? translated(error) : error))

// Requests about one session: a request with an invalid id is not sent.

/** Where a session is in the API. */
export const at = (sessionID: SessionID) => ({ path: { sessionID } })

export const noSession = (sessionID: unknown): Effect.Effect<never, InvalidInput | SessionNotFound> =>
  Effect.flatMap(validate("sessionID", Schema.String, sessionID), (sessionID) => new SessionNotFound({ sessionID }))

export const ofSession = <A, E>(
  sessionID: SessionID,
  request: (options: ReturnType<typeof at>) => Effect.Effect<A, E | Failure>
): Effect.Effect<A, E | InvalidInput | ServerUnreachable | UnexpectedAnswer | SessionNotFound> =>
  isSessionID(sessionID) ? answered(request(at(sessionID))) : noSession(sessionID)

/** Translates the failures of a derived client to errors that callers can act on. Spec: HT-3, HT-10 in specs/http.md. */
import type * as HttpApiError from "@effect/platform/HttpApiError"
import * as HttpClientError from "@effect/platform/HttpClientError"
import { Effect, ParseResult, Predicate } from "effect"
import { invalidAt, type InvalidInput } from "@daybook/log/domain/InvalidInput"
import { ServerUnreachable, UnexpectedAnswer } from "./ClientError.ts"

/** What a derived client fails with besides the errors of its endpoint. */
export type Failure = HttpClientError.HttpClientError | HttpApiError.HttpApiDecodeError | ParseResult.ParseError

const isFailure = (error: unknown): error is Failure =>
  HttpClientError.isHttpClientError(error) ||
  ParseResult.isParseError(error) ||
  Predicate.isTagged(error, "HttpApiDecodeError")

const causeOf = ({ cause, message }: HttpClientError.RequestError): string => {
  const inner = cause instanceof Error ? (cause.cause ?? cause) : undefined
  return inner instanceof Error && inner.message !== "" ? inner.message : message
}

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
        ? new UnexpectedAnswer({ status: error.response.status, details: error.reason })
        : new ServerUnreachable({ details: "the connection was cut" })
  }
}

/** An answer that does not decode is the server's fault, not that of an argument. */
export const decoded = (answer: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> =>
  Effect.mapError(answer, (error) =>
    ParseResult.isParseError(error) ? new UnexpectedAnswer({ details: error.message }) : error
  )

/** The result of a request, with the errors of its endpoint and those of the connection. */
export const answered = <A, E, R>(
  request: Effect.Effect<A, E | Failure, R>
): Effect.Effect<A, E | InvalidInput | ServerUnreachable | UnexpectedAnswer, R> =>
  Effect.mapError(request, (error) => (isFailure(error) ? translated(error) : error))

/** Responses that no endpoint makes: refusals before an endpoint, failures of the server, and pages. Spec: HT-10, HT-11. */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { MultipartError } from "@effect/platform/Multipart"
import { Cause, Effect, Option, Schema } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { failures, statuses } from "@daybook/api/wire/Failure"

const Failing = Schema.Union(
  Access.BodyTooLarge,
  Access.BodyUnreadable,
  Access.EndpointNotFound,
  Access.InternalError,
  Access.RequestAmbiguous,
  Access.SiteRefused,
  Access.Stopping,
  Access.TooManyRequests
)
type Failing = typeof Failing.Type

const encode = Schema.encodeSync(failures(Failing))

/** A failure as a response. */
export const failed = (error: Failing): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(encode(error), { status: statuses[error._tag] })

/** Writes a failure, and closes the connection behind it. */
export const refuse = (response: ServerResponse, error: Failing): void => {
  if (error._tag === "TooManyRequests") response.setHeader("retry-after", error.retryAfterSeconds)
  response.writeHead(statuses[error._tag], { "content-type": "application/json", connection: "close" })
  response.end(JSON.stringify(encode(error)))
}

/** The path of a request, without its query. */
export const pathOf = ({ url = "/" }: IncomingMessage): string => url.split("?", 1)[0] ?? ""

/** The response to what no endpoint expects. A client that has left gets none. */
export const unexpected = (
  cause: Cause.Cause<unknown>,
  mostBody: number
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error instanceof HttpServerError.RouteNotFound) return Effect.succeed(failed(new Access.EndpointNotFound()))
  const defect = error ?? Option.getOrUndefined(Cause.dieOption(cause))
  // Besides an unreadable body, nothing of a request fails like this.
  if (defect instanceof MultipartError) return Effect.succeed(failed(new Access.BodyUnreadable()))
  if (defect instanceof HttpServerError.RequestError) {
    const isFaulty = defect.cause instanceof SyntaxError
    return Effect.succeed(failed(isFaulty ? new Access.BodyUnreadable() : new Access.BodyTooLarge({ most: mostBody })))
  }
  return Effect.as(Effect.logError("A request failed", cause), failed(new Access.InternalError()))
}

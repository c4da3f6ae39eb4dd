/** Responses that no endpoint makes: refusals, failures of the server, pages. Spec: HT-3, HT-10, HT-11, HT-502. */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as HttpApi from "@effect/platform/HttpApi"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { MultipartError } from "@effect/platform/Multipart"
import { Cause, Effect, Option, Schema } from "effect"
import { Api } from "@daybook/api"
import * as Access from "@daybook/api/wire/Access"
import { failures, statuses } from "@daybook/api/wire/Failure"

// What the router does not say: the methods of a path, and which endpoints take no query.

interface Route {
  readonly method: string
  /** With its parameters, as `/sessions/:sessionID`. */
  readonly path: string
}

const routes: Array<Route & { readonly pattern: RegExp }> = []
const withoutQuery = new Set<string>()
const nameOf = ({ method, path }: Route): string => `${method} ${path}`
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { method, path, urlParamsSchema } }) => {
    routes.push({ method, path, pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`) })
    if (Option.isNone(urlParamsSchema)) withoutQuery.add(nameOf({ method, path }))
  }
})

const methodsOf = (path: string): ReadonlyArray<string> => {
  const found = routes.flatMap(({ method, pattern }) => (pattern.test(path) ? [method] : []))
  return [...new Set(found.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))]
}

/** Refuses the parameters in the query of an endpoint that takes none: a misspelt or misplaced one would have no effect. */
export const refusedQuery = (route: Route, url: string): HttpApiDecodeError | undefined => {
  const at = url.indexOf("?")
  if (at < 0 || !withoutQuery.has(nameOf(route))) return undefined
  const issues = [...new Set(new URLSearchParams(url.slice(at)).keys())].map((name) => ({
    _tag: "Unexpected" as const,
    path: [name],
    message: "is unexpected: the endpoint takes no query"
  }))
  return issues.length === 0 ? undefined : new HttpApiDecodeError({ issues, message: "the query is unexpected" })
}

const Failing = Schema.Union(
  Access.BodyTooLarge,
  Access.BodyUnreadable,
  Access.EndpointNotFound,
  Access.InternalError,
  Access.MethodNotAllowed,
  Access.RequestAmbiguous,
  Access.SiteRefused,
  Access.Stopping,
  Access.TooManyRequests
)
type Failing = typeof Failing.Type

const encode = Schema.encodeSync(failures(Failing))

const headersOf = (error: Failing): Readonly<Record<string, string>> => {
  if (error._tag === "TooManyRequests") return { "retry-after": String(error.retryAfterSeconds) }
  return error._tag === "MethodNotAllowed" ? { allow: error.allow.join(", ") } : {}
}

export const failed = (error: Failing): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(encode(error), { status: statuses[error._tag], headers: headersOf(error) })

/** Says when a client that got a 503 may come back (CL-805). */
export const comingBack = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  response.status === 503 ? HttpServerResponse.setHeader(response, "retry-after", "1") : response

export const refuse = (response: ServerResponse, error: Failing): void => {
  const headers = { "content-type": "application/json", connection: "close", ...headersOf(error) }
  response.writeHead(statuses[error._tag], headers)
  response.end(JSON.stringify(encode(error)))
}

/** The path of a request, without its query. */
export const pathOf = ({ url = "/" }: Pick<IncomingMessage, "url">): string => url.split("?", 1)[0] ?? ""

/** No endpoint has the method and the path of the request, or a part of the path is not well encoded. */
const notRouted = (request: { readonly method: string; readonly url: string }): Failing => {
  const allow = methodsOf(pathOf(request))
  return allow.length === 0 || allow.includes(request.method)
    ? new Access.EndpointNotFound()
    : new Access.MethodNotAllowed({ allow })
}

/** The response to what no endpoint expects. A client that has left gets none. */
export const unexpected = (cause: Cause.Cause<unknown>, mostBody: number) => {
  if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error instanceof HttpServerError.RouteNotFound) return Effect.succeed(failed(notRouted(error.request)))
  const defect = error ?? Option.getOrUndefined(Cause.dieOption(cause))
  // Besides an unreadable body, nothing of a request fails like this.
  if (defect instanceof MultipartError) return Effect.succeed(failed(new Access.BodyUnreadable()))
  if (defect instanceof HttpServerError.RequestError) {
    if (defect.cause instanceof Access.BodyUnreadable) return Effect.succeed(failed(defect.cause))
    const isFaulty = defect.cause instanceof SyntaxError
    return Effect.succeed(failed(isFaulty ? new Access.BodyUnreadable() : new Access.BodyTooLarge({ most: mostBody })))
  }
  return Effect.as(Effect.logError("A request failed", cause), failed(new Access.InternalError()))
}

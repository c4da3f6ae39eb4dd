/** Decides whether a token may use an endpoint. Spec: HT-20, HT-21, HT-28, HT-29 in specs/http.md. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Clock, Context, Effect, Layer, Metric } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { isSessionID } from "@daybook/log/domain/Identifiers"
import type { Clients } from "./Clients.ts"
import { refusedQuery } from "./Answers.ts"
import type { AccessToken } from "./AccessToken.ts"
import { callerOf } from "./Tokens.ts"

const rank = (scope: Access.Scope): number => Access.Scope.literals.indexOf(scope)

/** A token for one session reaches only endpoints whose path names that session. */
const permits = ({ scope, sessionID }: Access.Caller, needs: Access.Scope, path: string | undefined): boolean =>
  rank(scope) >= rank(needs) && (sessionID === undefined || (isSessionID(path) && path === sessionID))

/** Whose token a header has; undefined for one that is not valid. */
const callerIn = (secret: AccessToken, authorization: string, now: number): Access.Caller | undefined =>
  // The library takes what follows any word of six letters.
  /^bearer /i.test(authorization) ? callerOf(secret, tokenIn(authorization), now) : undefined

const tokenIn = (authorization: string): string => authorization.slice("bearer ".length)

/** Requests that were refused as too many, by reason. */
const refused = Metric.counter("daybook_http_limited_total", { incremental: true })
const refusedFor = {
  token: Metric.tagged(refused, "reason", "token"),
  rate: Metric.tagged(refused, "reason", "rate")
}

/** Gives the response of a refused request a header. */
const withHeader = (name: string, value: string) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    NodeHttpServerRequest.toServerResponse(request).setHeader(name, value)
  })

/** Says which token a request needs, as RFC 6750 has it. */
const challenge = (...why: ReadonlyArray<string>) =>
  withHeader("www-authenticate", ['Bearer realm="daybook"', ...why].join(", "))

/** Refuses a request that came too soon. */
const tooMany = Effect.fnUntraced(function* (wait: number, reason: keyof typeof refusedFor) {
  yield* Metric.increment(refusedFor[reason])
  yield* withHeader("retry-after", String(wait))
  return yield* new Access.TooManyRequests({ retryAfterSeconds: wait })
})

/** Refuses a token; an absent one is none that is invalid. */
const unauthorized = (authorization: string | undefined) =>
  Effect.zipRight(
    challenge(...(authorization === undefined ? [] : ['error="invalid_token"'])),
    new Access.Unauthorized()
  )

/** Refuses what the token does not permit. */
const forbidden = ({ sessionID }: Access.Caller, needs: Access.Scope) =>
  Effect.zipRight(
    challenge('error="insufficient_scope"', `scope="${needs}"`),
    new Access.Forbidden({ needs, ...(sessionID === undefined ? {} : { sessionID }) })
  )

/** Slows those who guess; a valid token is never refused for the wrong ones of others at its address. */
const wrong = Effect.fnUntraced(function* ({ addressOf, wrongToken }: Clients, now: number) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const wait = wrongToken(addressOf(NodeHttpServerRequest.toIncomingMessage(request)), now)
  return yield* wait === undefined ? unauthorized(request.headers["authorization"]) : tooMany(wait, "token")
})

/** What endpoints need, and whether their requests count against the rate of the token. */
type Need = { readonly scope: Access.Scope; readonly isRated: boolean }

type Refusal = Access.Forbidden | Access.TooManyRequests | Access.Unauthorized | HttpApiDecodeError

const judge = (secret: AccessToken, clients: Clients, { isRated, scope: needs }: Need) => ({
  // One step, because every request passes here.
  bearer: () =>
    Effect.withFiberRuntime<Access.Caller, Refusal, HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext>(
      ({ currentContext, currentDefaultServices }) => {
        const now = Context.get(currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()
        const { headers, url } = Context.unsafeGet(currentContext, HttpServerRequest.HttpServerRequest)
        const authorization = headers["authorization"] ?? ""
        const caller = callerIn(secret, authorization, now)
        if (caller === undefined) return wrong(clients, now)
        const wait = isRated ? clients.rated(tokenIn(authorization), now) : undefined
        if (wait !== undefined) return tooMany(wait, "rate")
        const { params, route } = Context.unsafeGet(currentContext, HttpRouter.RouteContext)
        if (!permits(caller, needs, params["sessionID"])) return forbidden(caller, needs)
        return refusedQuery(route, url) ?? Effect.succeed(caller)
      }
    )
})

/** A request for work of a session, as its headers and its path have it. */
export interface WorkRequest {
  readonly authorization: string | undefined
  readonly sessionID: string
}

/** Decides without an effect about requests that prompt. Whom it does not let through, the guard of the endpoint answers. */
export const prompting = (secret: AccessToken, clients: Clients) => ({
  /** Whether the token permits the request. Counts nothing. */
  permits: ({ authorization = "", sessionID }: WorkRequest, now: number): boolean => {
    const caller = callerIn(secret, authorization, now)
    return caller !== undefined && permits(caller, "prompt", sessionID)
  },
  /** Counts a permitted request; false, and nothing is counted, if the token sent too many. */
  counts: ({ authorization = "" }: WorkRequest, now: number): boolean =>
    clients.rated(tokenIn(authorization), now) === undefined
})

/** The guards of all endpoints, for the server's own token. */
export const layer = (secret: AccessToken, clients: Clients) =>
  Layer.mergeAll(
    Layer.succeed(Access.Reading, judge(secret, clients, { scope: "read", isRated: true })),
    Layer.succeed(Access.Following, judge(secret, clients, { scope: "read", isRated: false })),
    Layer.succeed(Access.Prompting, judge(secret, clients, { scope: "prompt", isRated: true })),
    Layer.succeed(Access.Administering, judge(secret, clients, { scope: "admin", isRated: true }))
  )

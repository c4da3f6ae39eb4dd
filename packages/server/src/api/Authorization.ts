/** Decides whether a token may use an endpoint. Spec: HT-20, HT-21, HT-28, HT-29 in specs/http.md. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Context, Effect, Layer, Metric, Redacted, Schema } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { AccessToken } from "../http/AccessToken.ts"
import type { Clients } from "./Clients.ts"
import { callerOf } from "./Tokens.ts"

const rank = (scope: Access.Scope): number => Access.Scope.literals.indexOf(scope)

const isSession = Schema.is(SessionID)

/** A token for one session reaches only endpoints whose path names that session. */
const permits = ({ scope, sessionID }: Access.Caller, needs: Access.Scope, path: string | undefined): boolean =>
  rank(scope) >= rank(needs) && (sessionID === undefined || (isSession(path) && path === sessionID))

/** Requests that were refused as too many, by reason. */
const refused = Metric.counter("daybook_http_limited_total", { incremental: true })
const refusedFor = {
  token: Metric.tagged(refused, "reason", "token"),
  rate: Metric.tagged(refused, "reason", "rate")
}

/** Refuses a request that came too soon. */
const tooMany = (wait: number, reason: keyof typeof refusedFor) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* Metric.increment(refusedFor[reason])
    NodeHttpServerRequest.toServerResponse(request).setHeader("retry-after", String(wait))
    return yield* new Access.TooManyRequests({ retryAfterSeconds: wait })
  })

/** Slows those who guess; a valid token is never refused for the wrong ones of others at its address. */
const wrong = ({ addressOf, wrongToken }: Clients, now: number) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const wait = wrongToken(addressOf(NodeHttpServerRequest.toIncomingMessage(request)), now)
    return yield* wait === undefined ? new Access.Unauthorized() : tooMany(wait, "token")
  })

/** What endpoints need, and whether their requests count against the rate of the token. */
interface Need {
  readonly scope: Access.Scope
  readonly isRated: boolean
}

type Refusal = Access.Forbidden | Access.TooManyRequests | Access.Unauthorized

const judge = (secret: AccessToken, clients: Clients, { isRated, scope: needs }: Need) => ({
  // One step, because every request passes here.
  bearer: (token: Redacted.Redacted) =>
    Effect.withFiberRuntime<Access.Caller, Refusal, HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext>(
      ({ currentContext, currentDefaultServices }) => {
        const now = Context.get(currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()
        const { headers } = Context.unsafeGet(currentContext, HttpServerRequest.HttpServerRequest)
        // The library takes what follows any word of six letters.
        const isBearer = /^bearer /i.test(headers["authorization"] ?? "")
        const caller = isBearer ? callerOf(secret, Redacted.value(token), now) : undefined
        if (caller === undefined) return wrong(clients, now)
        const wait = isRated ? clients.rated(Redacted.value(token), now) : undefined
        if (wait !== undefined) return tooMany(wait, "rate")
        const { sessionID } = Context.unsafeGet(currentContext, HttpRouter.RouteContext).params
        if (permits(caller, needs, sessionID)) return Effect.succeed(caller)
        return new Access.Forbidden({
          needs,
          ...(caller.sessionID === undefined ? {} : { sessionID: caller.sessionID })
        })
      }
    )
})

/** The guards of all endpoints, for the server's own token. */
export const layer = (
  secret: AccessToken,
  clients: Clients
): Layer.Layer<Access.Reading | Access.Following | Access.Prompting | Access.Administering> =>
  Layer.mergeAll(
    Layer.succeed(Access.Reading, judge(secret, clients, { scope: "read", isRated: true })),
    Layer.succeed(Access.Following, judge(secret, clients, { scope: "read", isRated: false })),
    Layer.succeed(Access.Prompting, judge(secret, clients, { scope: "prompt", isRated: true })),
    Layer.succeed(Access.Administering, judge(secret, clients, { scope: "admin", isRated: true }))
  )

/** Decides whether a token may use an endpoint. Spec: HT-20, HT-21 in specs/http.md. */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
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

/** Slows those who guess; a valid token is never refused for the wrong ones of others at its address. */
const wrong = ({ addressOf, wrongToken }: Clients) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const address = addressOf(NodeHttpServerRequest.toIncomingMessage(request))
    const wait = wrongToken(address, yield* Clock.currentTimeMillis)
    if (wait === undefined) return yield* new Access.Unauthorized()
    NodeHttpServerRequest.toServerResponse(request).setHeader("retry-after", String(wait))
    return yield* new Access.TooManyRequests({ retryAfterSeconds: wait })
  })

const judge = (secret: AccessToken, clients: Clients, needs: Access.Scope) => ({
  bearer: (token: Redacted.Redacted) =>
    Effect.gen(function* () {
      const caller = callerOf(secret, Redacted.value(token), yield* Clock.currentTimeMillis)
      if (caller === undefined) return yield* wrong(clients)
      const { sessionID } = yield* HttpRouter.params
      if (permits(caller, needs, sessionID)) return caller
      return yield* new Access.Forbidden({
        needs,
        ...(caller.sessionID === undefined ? {} : { sessionID: caller.sessionID })
      })
    })
})

/** The guards of all endpoints, for the server's own token. */
export const layer = (
  secret: AccessToken,
  clients: Clients
): Layer.Layer<Access.Reading | Access.Prompting | Access.Administering> =>
  Layer.mergeAll(
    Layer.succeed(Access.Reading, judge(secret, clients, "read")),
    Layer.succeed(Access.Prompting, judge(secret, clients, "prompt")),
    Layer.succeed(Access.Administering, judge(secret, clients, "admin"))
  )

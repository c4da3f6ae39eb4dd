/**
 * Admits prompts without the routes of `HttpApiBuilder`, which run three times the steps of an admission. It takes only requests
 * that the endpoint would answer in the same way: a permitted token, and a small body that conforms to the payload. All
 * others are left to the endpoint, with the body. Spec: HT-30 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Clock, Context, Effect, Metric, Option, Runtime, Schema } from "effect"
import { PromptFailure, PromptPayload } from "@daybook/api/group/WorkApi"
import { statuses } from "@daybook/api/wire/Failure"
import { Sessions } from "@daybook/core/session/Sessions"
import { isSessionID, type SessionID } from "@daybook/log/domain/Identifiers"
import { Input } from "@daybook/log/domain/Message"
import { compile } from "@daybook/log/support/Conforms"
import { isTraced } from "@daybook/log/support/Spans"
import type { AccessToken } from "./AccessToken.ts"
import * as Answering from "./Answering.ts"
import { comingBack, unexpected } from "./Answers.ts"
import * as Authorization from "./Authorization.ts"
import type { Clients } from "./Clients.ts"

/** Bytes of a body. */
const most = 65_536

/** Prompts that were answered here. */
const taken = Metric.counter("daybook_http_direct_prompts_total", { incremental: true })

type Payload = typeof PromptPayload.Type

const conforms = compile(PromptPayload.ast)
const isPayload = (value: unknown): value is Payload => conforms(value)

const payloadOf = (bytes: Buffer): Payload | undefined => {
  try {
    const value = Answering.parsed(bytes.toString("utf8"))
    return isPayload(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The session of a request for a prompt with a small JSON body; undefined for another request. */
const sessionOf = ({ headers, method, url = "" }: IncomingMessage): SessionID | undefined => {
  if (method !== "POST" || !url.startsWith("/sessions/") || !url.endsWith("/prompts")) return undefined
  const { "content-length": length = "0", "content-type": type = "application/json" } = headers
  if (type !== "application/json" || !(Number(length) > 0 && Number(length) <= most)) return undefined
  // Its place is taken by the endpoint.
  if (headers["idempotency-key"] !== undefined) return undefined
  const sessionID = url.slice("/sessions/".length, -"/prompts".length)
  return isSessionID(sessionID) ? sessionID : undefined
}

const isInput = compile(Input.ast)
const encodeInput = Schema.encodeSync(Input)
const encodeFailure = Schema.encodeSync(PromptFailure)

const admitted = (input: Input) => HttpServerResponse.unsafeJson(isInput(input) ? input : encodeInput(input))

/** Admits the prompt if it can; false leaves the request to the endpoint. */
type Admit = (request: IncomingMessage, response: ServerResponse) => boolean

/** A failure as the endpoint answers it. */
const refused = (cause: Cause.Cause<typeof PromptFailure.Type>, mostBody: number) =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => unexpected(cause, mostBody),
    onSome: (error) =>
      Effect.succeed(comingBack(HttpServerResponse.unsafeJson(encodeFailure(error), { status: statuses[error._tag] })))
  })

/** Admits prompts with the clock and the scheduler of this effect. `otherwise` answers a request whose body has been read. */
export const make = (
  secret: AccessToken,
  clients: Clients,
  mostBody: number,
  otherwise: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void
): Effect.Effect<Admit, never, Sessions> =>
  Effect.withFiberRuntime((fiber) =>
    Effect.map(Effect.all([Effect.runtime<never>(), Sessions]), ([runtime, sessions]): Admit => {
      // A request has a span of its own.
      if (isTraced(fiber)) return () => false
      const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
      const fork = Runtime.runFork(runtime)
      const { counts, permits } = Authorization.prompting(secret, clients)
      return (request, response) => {
        const sessionID = sessionOf(request)
        if (sessionID === undefined) return false
        const asked = { authorization: request.headers.authorization, sessionID }
        if (!permits(asked, clock.unsafeCurrentTimeMillis())) return false
        Answering.collect(request, most, {
          whole: (bytes) => {
            const payload = payloadOf(bytes)
            if (payload === undefined || !counts(asked, clock.unsafeCurrentTimeMillis())) {
              return otherwise(request, response, bytes)
            }
            taken.unsafeUpdate(1, [])
            const answer = Effect.map(sessions.prompt({ ...payload, sessionID }), admitted)
            Answering.follow(response, fork(Effect.catchAllCause(answer, (cause) => refused(cause, mostBody))))
          },
          // Node reads no more than the length that the request says.
          tooLong: () => response.destroy()
        })
        return true
      }
    })
  )

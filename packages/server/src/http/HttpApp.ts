/** The HTTP API of one runtime, as an application of a server. Spec: specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Effect, Layer, Option, Schema } from "effect"
import { Api } from "@daybook/api"
import type { OfferedModels } from "@daybook/api/group/ServerApi"
import type { Budget } from "@daybook/log/domain/Values"
import type { Search } from "@daybook/log/search/Search"
import { byField, sentences } from "@daybook/log/support/Issues"
import * as Asks from "../shared/Asks.ts"
import type { AccessToken } from "./AccessToken.ts"
import * as Authorization from "./Authorization.ts"
import * as Clients from "./Clients.ts"
import * as EventsHandlers from "./EventsHandlers.ts"
import * as Hubs from "./Hubs.ts"
import * as ServerHandlers from "./ServerHandlers.ts"
import * as SessionHandlers from "./SessionHandlers.ts"
import * as Streams from "./Streams.ts"

// Says for people which arguments do not fit; the library prints their whole schemas.

const encode = Schema.encodeSync(HttpApiDecodeError)

const refused = ({ issues }: HttpApiDecodeError): HttpServerResponse.HttpServerResponse => {
  const plain = new HttpApiDecodeError({ issues: byField(issues), message: sentences(issues, "the body") })
  return HttpServerResponse.unsafeJson(encode(plain), { status: 400 })
}

/** Answers requests whose arguments do not fit. */
const misfitLayer = HttpApiBuilder.middleware((app) =>
  Effect.catchAllCause(app, (cause) => {
    const error: unknown = Option.getOrUndefined(Cause.failureOption(cause))
    return error instanceof HttpApiDecodeError ? Effect.succeed(refused(error)) : Effect.failCause(cause)
  })
)

export interface Options extends ServerHandlers.Server {
  /** The server's own token. */
  readonly token: AccessToken
  readonly asks?: Asks.Asks | undefined
  /** The folders that sessions may work in, with those below them; every folder by default. */
  readonly roots?: ReadonlyArray<string> | undefined
  /** The budget of the runtime's sessions that have none of their own. */
  readonly budget?: Budget | undefined
  /** Searches the texts of sessions; without it, searches are refused. */
  readonly search?: typeof Search.Service | undefined
  /** The models that sessions can be given; without it, requests for them are refused. */
  readonly models?: Effect.Effect<OfferedModels> | undefined
  /** Figures of the database, and live shells; without them, requests for them are refused. */
  readonly machine?: Partial<ServerHandlers.Machine> | undefined
}

/** The API. It requires the facade and the log of a runtime. */
export const layer = (options: Options, clients = Clients.make(Clients.defaultLimits, false)) => {
  const roots = SessionHandlers.makeRoots(options.roots ?? [])
  return HttpApiBuilder.api(Api).pipe(
    Layer.provide([
      SessionHandlers.sessionsLayer(roots, options.budget),
      SessionHandlers.choicesLayer(roots, options.models),
      SessionHandlers.transcriptLayer,
      SessionHandlers.workLayer,
      SessionHandlers.questionsLayer,
      SessionHandlers.permissionsLayer(options.asks ?? Asks.make()),
      ServerHandlers.searchLayer(options.search),
      ServerHandlers.machineLayer(options.machine),
      EventsHandlers.layer,
      ServerHandlers.serverLayer(options)
    ]),
    Layer.provide(Authorization.layer(options.token, clients)),
    Layer.provide([Streams.layer, Hubs.layer]),
    Layer.provideMerge(Streams.drainLayer),
    Layer.merge(misfitLayer)
  )
}

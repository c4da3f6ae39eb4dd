/**
 * The HTTP API of one runtime, as an application of a server. Spec: specs/http.md.
 *
 * @module @daybook/server/api/HttpApp
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { type Effect, Layer } from "effect"
import { Api } from "@daybook/api"
import type { OfferedModels } from "@daybook/api/group/ChoicesApi"
import type { Budget } from "@daybook/log/domain/Values"
import type { Search } from "@daybook/log/search/Search"
import * as Asks from "../ask/Asks.ts"
import type { AccessToken } from "../http/AccessToken.ts"
import * as Authorization from "./Authorization.ts"
import * as ChoicesHandlers from "./ChoicesHandlers.ts"
import * as Clients from "./Clients.ts"
import * as Drain from "./Drain.ts"
import * as EventsHandlers from "./EventsHandlers.ts"
import * as MachineHandlers from "./MachineHandlers.ts"
import * as Misfit from "./Misfit.ts"
import * as PermissionsHandlers from "./PermissionsHandlers.ts"
import * as QuestionsHandlers from "./QuestionsHandlers.ts"
import * as Roots from "./Roots.ts"
import * as SearchHandlers from "./SearchHandlers.ts"
import * as ServerHandlers from "./ServerHandlers.ts"
import * as SessionsHandlers from "./SessionsHandlers.ts"
import * as Hubs from "./Hubs.ts"
import * as Streams from "./Streams.ts"
import * as TranscriptHandlers from "./TranscriptHandlers.ts"
import * as WorkHandlers from "./WorkHandlers.ts"

export interface Options {
  /** The server's own token. */
  readonly token: AccessToken
  readonly version: string
  /** Connects permissions of the runtime with clients; without it, clients see no permissions. */
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
  readonly machine?: Partial<MachineHandlers.Machine> | undefined
}

/** The API. It requires the facade and the log of a runtime. */
export const layer = (options: Options, clients = Clients.make(Clients.defaultLimits, false)) => {
  const roots = Roots.make(options.roots ?? [])
  return HttpApiBuilder.api(Api).pipe(
    Layer.provide([
      SessionsHandlers.layer(roots, options.budget),
      ChoicesHandlers.layer(roots, options.models),
      TranscriptHandlers.layer,
      WorkHandlers.layer,
      QuestionsHandlers.layer,
      PermissionsHandlers.layer(options.asks ?? Asks.make()),
      SearchHandlers.layer(options.search),
      MachineHandlers.layer(options.machine),
      EventsHandlers.layer,
      ServerHandlers.layer(options.version)
    ]),
    Layer.provide(Authorization.layer(options.token, clients)),
    Layer.provide([Streams.layer, Hubs.layer]),
    Layer.provideMerge(Drain.layer),
    Layer.merge(Misfit.layer)
  )
}

/**
 * The HTTP API of one runtime, as an application of a server. Spec: specs/http.md.
 *
 * @module @daybook/server/api/HttpApp
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Layer } from "effect"
import { Api } from "@daybook/api"
import type { AccessToken } from "../http/AccessToken.ts"
import * as Authorization from "./Authorization.ts"
import * as EventsHandlers from "./EventsHandlers.ts"
import * as QuestionsHandlers from "./QuestionsHandlers.ts"
import * as SessionsHandlers from "./SessionsHandlers.ts"
import * as Streams from "./Streams.ts"
import * as TranscriptHandlers from "./TranscriptHandlers.ts"
import * as WorkHandlers from "./WorkHandlers.ts"

export interface Options {
  /** The server's own token. */
  readonly token: AccessToken
  readonly version: string
}

const serverHandlers = ({ version }: Options) =>
  HttpApiBuilder.group(Api, "server", (handlers) =>
    handlers.handle("health", () => Effect.succeed({ status: "ok", version }))
  )

/** The API. It requires the facade and the log of a runtime. */
export const layer = (options: Options) =>
  HttpApiBuilder.api(Api).pipe(
    Layer.provide([
      SessionsHandlers.layer,
      TranscriptHandlers.layer,
      WorkHandlers.layer,
      QuestionsHandlers.layer,
      EventsHandlers.layer,
      serverHandlers(options)
    ]),
    Layer.provide(Authorization.layer(options.token)),
    Layer.provideMerge(Streams.layer)
  )

/**
 * Sessions of a server: the same names, arguments, results and errors as `Sessions` (core), and the errors of the
 * connection. Runs wherever there is `fetch`. Spec: HT-60..HT-64 in specs/http.md.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Context, type Duration, Effect, Layer, type Redacted } from "effect"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import { ofSession } from "./connection/OfSession.ts"
import * as Machine from "./Machine.ts"
import * as Streams from "./Streams.ts"
import * as Verbs from "./Verbs.ts"

export type { Measuring } from "./Machine.ts"

/** How to reach a server. */
export interface Options {
  /** For example `http://127.0.0.1:4310`. */
  readonly baseUrl: string
  readonly token: string | Redacted.Redacted
  /** How long a stream tries to connect again before it fails. Default: two minutes. */
  readonly giveUpAfter?: Duration.DurationInput
}

/** The sessions of one server. */
export class DaybookClient extends Context.Tag("@daybook/client/DaybookClient")<
  DaybookClient,
  Verbs.Verbs & Streams.Streams & Machine.Machine
>() {}

/** A client on the given way to send requests. */
export const make = ({ baseUrl, giveUpAfter = "2 minutes", token }: Options) =>
  Effect.gen(function* () {
    const http = HttpClient.mapRequest(yield* HttpClient.HttpClient, (request) =>
      request.pipe(HttpClientRequest.prependUrl(baseUrl), HttpClientRequest.bearerToken(token))
    )
    const api = yield* Verbs.derived(http)
    const head: Streams.Streams["head"] = (sessionID) => ofSession(sessionID, api.events.head)
    return DaybookClient.of({
      ...Verbs.make(api, yield* Identifiers.Identifiers),
      ...Streams.make(http, giveUpAfter, head),
      ...Machine.make(api)
    })
  })

/** A client on `fetch`. */
export const layer = (options: Options): Layer.Layer<DaybookClient> =>
  Layer.effect(DaybookClient, make(options)).pipe(Layer.provide([FetchHttpClient.layer, Identifiers.layer]))

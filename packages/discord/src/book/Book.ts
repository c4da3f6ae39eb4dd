/**
 * The sessions that the bot works with: those of a Daybook server, which may be one in this process. Spec: DI-2 in
 * specs/discord.md.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Context, Effect, Layer, type Redacted } from "effect"
import type { ConnectionError } from "@daybook/client/connection/ClientError"
import * as Client from "@daybook/client/DaybookClient"
import { answered } from "@daybook/client/connection/Answered"
import * as Verbs from "@daybook/client/Verbs"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import type { EventUnreadable, LogUnavailable } from "@daybook/log/log/EventLog"

export class Book extends Context.Tag("@daybook/discord/Book")<
  Book,
  Client.DaybookClient["Type"] & {
    /** The cursor behind the newest event. */
    readonly feedHead: Effect.Effect<string, EventUnreadable | LogUnavailable | ConnectionError>
  }
>() {}

export interface Options {
  readonly url: string
  readonly token: Redacted.Redacted
}

/** The sessions of this server. */
export const layer = ({ token, url }: Options): Layer.Layer<Book> =>
  Layer.effect(
    Book,
    Effect.gen(function* () {
      const client = yield* Client.make({ baseUrl: url, token })
      const http = HttpClient.mapRequest(yield* HttpClient.HttpClient, (request) =>
        request.pipe(HttpClientRequest.prependUrl(url), HttpClientRequest.bearerToken(token))
      )
      const { events } = yield* Verbs.derived(http)
      return Book.of({
        ...client,
        feedHead: Effect.map(answered(events.feedHead()), ({ cursor }) => cursor)
      })
    })
  ).pipe(Layer.provide([FetchHttpClient.layer, Identifiers.layer]))

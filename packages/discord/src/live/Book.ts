/** The bot's sessions: those of a Daybook server, which may be in this process. Spec: DI-2, DI-3. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Context, Effect, Layer, type Redacted, Schedule } from "effect"
import * as Client from "@daybook/client/DaybookClient"
import { answered, type ConnectionError } from "@daybook/client/ClientError"
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

export const layer = ({ token, url }: Options): Layer.Layer<Book> =>
  Layer.effect(
    Book,
    Effect.gen(function* () {
      const client = yield* Client.make({ baseUrl: url, token })
      const http = HttpClient.mapRequest(yield* HttpClient.HttpClient, (request) =>
        request.pipe(HttpClientRequest.prependUrl(url), HttpClientRequest.bearerToken(token))
      )
      const { events } = yield* Client.derived(http)
      return Book.of({
        ...client,
        feedHead: Effect.map(answered(events.feedHead()), ({ cursor }) => cursor)
      })
    })
  ).pipe(Layer.provide([FetchHttpClient.layer, Identifiers.layer]))

// Says when a server is asked again, and after which pauses.

const away = ["ServerUnreachable", "LogUnavailable", "Stopping", "TooManyRequests"]

/** A server that fails, or that did not read the request in time (408): nothing was done. */
const isLater = (status: number): boolean => status >= 500 || status === 408

/** Whether the server may answer later. */
export const isAway = (error: { readonly _tag: string; readonly status?: unknown }): boolean =>
  away.includes(error._tag) ||
  (error._tag === "UnexpectedAnswer" && typeof error.status === "number" && isLater(error.status))

/** Growing pauses, up to half a minute, without end. */
export const patiently = Schedule.exponential("500 millis", 2).pipe(
  Schedule.union(Schedule.spaced("30 seconds")),
  Schedule.jittered
)

/** Waits for a server that is away: a message is never lost because of it. */
export const whenever = <A, E extends { readonly _tag: string; readonly message: string }, R>(
  work: Effect.Effect<A, E, R>
) =>
  work.pipe(
    Effect.tapError((error) => (isAway(error) ? Effect.logWarning(error.message) : Effect.void)),
    Effect.retry({ schedule: patiently, while: isAway })
  )

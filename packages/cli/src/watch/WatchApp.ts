/**
 * Answers the requests of the live page of all shells: its document, style, script and icon, and the stream of events. Reads the
 * log and changes nothing. Spec: SL-217..SL-222 in specs/shell.md.
 */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Schema, Stream } from "effect"
import { policy } from "@daybook/inspector/Inspector"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { AccessToken } from "@daybook/server/http/AccessToken"
import { guarded, sentence } from "@daybook/server/http/LocalGuard"
import * as ServerSentEvents from "@daybook/server/http/ServerSentEvents"
import { document } from "./Document.ts"
import { icon } from "./Icon.ts"
import * as ShellEventStream from "./ShellEventStream.ts"
import type { ShellFeed, ShellFeedError } from "./ShellFeed.ts"

export interface WatchOptions {
  readonly token: AccessToken
  readonly feed: ShellFeed
  /** Where a page starts. */
  readonly after: number
  /** The only session that is shown, if there is one. */
  readonly session: SessionID | undefined
  readonly script: string
  readonly style: string
}

/** Streams at a time: a page has one. */
const mostStreams = 16

const Cursor = Schema.String.pipe(
  Schema.pattern(/^(?:-1|0|[1-9]\d{0,15})$/),
  Schema.compose(Schema.NumberFromString),
  Schema.filter(Number.isSafeInteger)
)
const decodeQuery = HttpServerRequest.schemaSearchParams(
  Schema.Struct({ after: Schema.optional(Cursor), token: Schema.String })
)
const decodeHeaders = HttpServerRequest.schemaHeaders(Schema.Struct({ "last-event-id": Schema.optional(Cursor) }))

/** Where a reader continues. `Last-Event-ID` is newer than `after` in the address. */
const cursor = Effect.gen(function* () {
  const { after } = yield* decodeQuery
  const { "last-event-id": last } = yield* decodeHeaders
  return last ?? after
})

/** The status tells a page what to do: start again after 409, give up after 410, else try again. */
const failed = (error: ShellFeedError) => {
  switch (error._tag) {
    case "CursorAhead":
      return sentence(409, error.message)
    case "SessionNotFound":
      return sentence(410, error.message)
    case "CursorExpired":
    case "EventUnreadable":
    case "LogUnavailable":
      return sentence(500, error.message)
  }
}

const full = HttpServerResponse.setHeader(
  sentence(503, `${mostStreams} pages are connected, and no more can be: close one`),
  "retry-after",
  "10"
)

/** The stream of events, within the limit; a stream has its place until the response ends. */
const events = ({ after, feed }: WatchOptions) => {
  let open = 0
  const place = Effect.acquireRelease(
    Effect.sync(() => ++open <= mostStreams),
    () => Effect.sync(() => open--)
  )
  return Effect.gen(function* () {
    const from = Math.max(after, (yield* cursor) ?? after)
    if (!(yield* place)) return full
    const texts = yield* ShellEventStream.make(feed, from)
    return HttpServerResponse.stream(Stream.encodeText(texts), { contentType: ServerSentEvents.contentType })
  }).pipe(
    Effect.catchTag("ParseError", () =>
      Effect.succeed(sentence(400, "after and Last-Event-ID are whole numbers from -1 on: give the id of an event"))
    ),
    Effect.catchAll((error) => Effect.succeed(failed(error)))
  )
}

const fixed = (contentType: string, text: string) => HttpServerResponse.text(text, { contentType })

/** The app, behind the guard. */
export const make = (options: WatchOptions) =>
  HttpRouter.empty.pipe(
    HttpRouter.get("/", Effect.succeed(fixed("text/html; charset=utf-8", document(options)))),
    HttpRouter.get("/page.css", Effect.succeed(fixed("text/css; charset=utf-8", options.style))),
    HttpRouter.get("/page.js", Effect.succeed(fixed("text/javascript; charset=utf-8", options.script))),
    HttpRouter.get("/icon.svg", Effect.succeed(fixed("image/svg+xml", icon))),
    HttpRouter.get("/events", events(options)),
    Effect.catchTag("RouteNotFound", () => Effect.succeed(sentence(404, "there is no such page here"))),
    guarded(options.token, policy)
  )

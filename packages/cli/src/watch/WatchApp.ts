/**
 * Serves the live page of all shells until a signal: its document, style, script and icon, which are the inspector's, and the
 * stream of events. Reads the log and changes nothing. Spec: SL-215..SL-222 in specs/shell.md.
 *
 *   signal -> connections are closed -> the database closes
 */
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Schema, Stream } from "effect"
import { icon, policy, shellsDocument } from "@daybook/inspector/Inspector"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import * as LocalServer from "@daybook/server/http/LocalServer"
import { type ShellFeed, type ShellFeedError, lines, serverSentEvents, stream } from "./ShellFeed.ts"
import { AccessToken, fresh } from "@daybook/server/http/AccessToken"
import { guarded, sentence } from "@daybook/server/http/LocalServer"
import { jsonLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"

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
const decodeHeaders = HttpServerRequest.schemaHeaders(
  Schema.Struct({ accept: Schema.optional(Schema.String), "last-event-id": Schema.optional(Cursor) })
)

/** Where a reader continues, and what it reads. `Last-Event-ID` is newer than `after` in the address. */
const asked = Effect.gen(function* () {
  const { after } = yield* decodeQuery
  const { accept, "last-event-id": last } = yield* decodeHeaders
  return { cursor: last ?? after, format: accept === lines.contentType ? lines : serverSentEvents }
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
    const { cursor = after, format } = yield* asked
    if (!(yield* place)) return full
    const texts = yield* stream(feed, Math.max(after, cursor), format)
    return HttpServerResponse.stream(Stream.encodeText(texts), { contentType: format.contentType })
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
    HttpRouter.get("/", Effect.succeed(fixed("text/html; charset=utf-8", shellsDocument(options)))),
    HttpRouter.get("/page.css", Effect.succeed(fixed("text/css; charset=utf-8", options.style))),
    HttpRouter.get("/page.js", Effect.succeed(fixed("text/javascript; charset=utf-8", options.script))),
    HttpRouter.get("/icon.svg", Effect.succeed(fixed("image/svg+xml", icon))),
    HttpRouter.get("/events", events(options)),
    Effect.catchTag("RouteNotFound", () => Effect.succeed(sentence(404, "there is no such page here"))),
    guarded(options.token, policy)
  )

// The build defines them: the inspector's script and style.
declare const DAYBOOK_INSPECTOR_SCRIPT: string
declare const DAYBOOK_INSPECTOR_STYLE: string

interface Request {
  readonly feed: ShellFeed
  readonly session: SessionID | undefined
  readonly after: number
  readonly port: number
  readonly json: boolean
}

const decodeToken = Schema.decodeUnknown(AccessToken)

/** The operator's token, for an address that stays the same when the server is started again; else a new token. */
const token = Effect.suspend(() => {
  const given = process.env["DAYBOOK_WATCH_TOKEN"] ?? ""
  return given === ""
    ? fresh
    : Effect.mapError(
        decodeToken(given),
        () => new UsageError({ message: "DAYBOOK_WATCH_TOKEN: expected 22 to 128 letters, digits, - or _" })
      )
})

export const serve = Effect.fn("Command.shell.watch.serve")(function* ({ after, feed, json, port, session }: Request) {
  const signal = yield* Signal.first
  const output = yield* Output
  const secret = yield* token
  const served = Effect.gen(function* () {
    const app = make({
      token: secret,
      feed,
      after,
      session,
      script: DAYBOOK_INSPECTOR_SCRIPT,
      style: DAYBOOK_INSPECTOR_STYLE
    })
    yield* LocalServer.serve(app)
    const url = `http://127.0.0.1:${yield* LocalServer.port}/?token=${secret}`
    const line = json ? jsonLine({ type: "ready", url }, output.terminal) : url
    // Serving continues without a reader of stdout.
    yield* Effect.catchTag(output.write(`${line}\n`), "OutputClosed", () => Effect.void)
    if (!json) yield* output.note("open the page in a browser; Ctrl-C ends it\n")
    yield* signal
  })
  yield* Effect.provide(Effect.scoped(served), LocalServer.layer(port))
}, Effect.scoped)

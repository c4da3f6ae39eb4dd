/** An HTTP server at 127.0.0.1 whose end ends its connections. Spec: SL-215..SL-219, SL-221, SL-223. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Layer } from "effect"
import { fairly } from "@daybook/log/support/EventLoop"
import { type AccessToken, matches } from "./AccessToken.ts"
import { PortUnusable, unusable } from "./HttpListener.ts"
import { foreignPart, type Site } from "./Site.ts"

// Decides which requests a server on the loopback address answers: `Host` and `Origin` refuse pages of other sites, the
// token refuses other processes.

/** A tunnel may listen at another port. */
const here: Site = { host: "127.0.0.1", names: [], scheme: "http", origins: [] }

/** The parts of a request that decide. */
export interface RequestHead {
  readonly method: string
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly tokens: ReadonlyArray<string>
}

export interface Refusal {
  readonly status: 401 | 403 | 405
  readonly reason: string
}

/** The refusal of a request, or undefined for one that may be answered. The token is compared last. */
export const refusal = ({ host, method, origin, tokens }: RequestHead, token: AccessToken): Refusal | undefined => {
  switch (foreignPart(here, { host, origin })) {
    case "host":
      return { status: 403, reason: "this server answers only at 127.0.0.1 and localhost" }
    case "origin":
      return { status: 403, reason: "this server answers no page of another origin" }
    case undefined:
  }
  if (method !== "GET" && method !== "HEAD") return { status: 405, reason: "this server only answers GET and HEAD" }
  const [given, ...more] = tokens
  // Compared also if none was given: the time says nothing about the token.
  const isRight = matches(token, given ?? "")
  return isRight && more.length === 0
    ? undefined
    : {
        status: 401,
        reason: "the address has no token, or one that is no longer valid: use the address that the command printed"
      }
}

const asked = (request: HttpServerRequest.HttpServerRequest): RequestHead => ({
  method: request.method,
  host: request.headers["host"],
  origin: request.headers["origin"],
  tokens: new URLSearchParams(request.url.slice(request.url.split("?", 1)[0]?.length)).getAll("token")
})

/** The headers of every response: not stored, not embedded, no referrer, only what its policy permits. */
export const headers = (policy: string) => ({
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
})

/** A response in words. */
export const sentence = (status: number, reason: string) => HttpServerResponse.text(`${reason}\n`, { status })

export const guarded =
  (token: AccessToken, policy: string) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.gen(function* () {
      const refused = refusal(asked(yield* HttpServerRequest.HttpServerRequest), token)
      if (refused === undefined) return yield* app
      const { reason, status } = refused
      const answer = sentence(status, reason)
      return status === 405 ? HttpServerResponse.setHeader(answer, "allow", "GET, HEAD") : answer
    }).pipe(Effect.map(HttpServerResponse.setHeaders(headers(policy))))

// Encodes server-sent events.

/** One event. Without `data` a reader gets nothing, but remembers the `id`. */
export interface Frame {
  /** What a reader sends as `Last-Event-ID` when it connects again; a number has no line break. */
  readonly id: number
  /** The type that a page listens to; `message` by default. */
  readonly event?: string
  /** One line, such as JSON. */
  readonly data?: string
}

export const sseType = "text/event-stream; charset=utf-8"

export const sseFrame = ({ data, event, id }: Frame): string =>
  `${event === undefined ? "" : `event: ${event}\n`}id: ${id}\n${data === undefined ? "" : `data: ${data}\n`}\n`

/** The start of a stream: the headers leave with its first bytes. `retry`: the reader's pause before it connects again. */
export const sseOpening = (retry: number): string => `retry: ${retry}\n: open\n\n`

/** Shows that the connection lives, and moves what the reader remembers. */
export const sseHeartbeat = (id: number): string => `: alive\n${sseFrame({ id })}`

/** Joins frames to texts of at most `length` code units; a longer frame stays alone. Fewer writes, each of bounded size. */
export const joined = (frames: ReadonlyArray<string>, length = 65_536): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (const each of frames) {
    const last = texts.at(-1)
    if (last === undefined || last.length + each.length > length) texts.push(each)
    else texts[texts.length - 1] = last + each
  }
  return texts
}

export { PortUnusable }

/** More are closed at once. A page has up to six. */
const mostConnections = 256

/** The server; port 0 takes a free one. A client that is connected at the end is disconnected. */
export const layer = (port: number): Layer.Layer<HttpServer.HttpServer, PortUnusable> =>
  Layer.scoped(
    HttpServer.HttpServer,
    Effect.gen(function* () {
      const server = createServer()
      server.maxConnections = mostConnections
      const served = yield* NodeHttpServer.make(() => server, { host: "127.0.0.1", port })
      // Runs before the server's own finalizer, which waits for the end of every connection.
      yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return served
    })
  ).pipe(Layer.catchAll(({ cause }) => Layer.fail(unusable(port, cause))))

/** Answers requests with the app until the scope closes. One answer that reads for long blocks no other one (EX-14). */
export const serve = <E, R>(app: HttpApp.Default<E, R>) => fairly(HttpServer.serveEffect(app))

export const port: Effect.Effect<number, never, HttpServer.HttpServer> = HttpServer.addressWith((address) =>
  Effect.succeed(address._tag === "TcpAddress" ? address.port : 0)
)

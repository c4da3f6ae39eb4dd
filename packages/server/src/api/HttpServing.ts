/**
 * Serves the API of a runtime at an address until the scope closes, then lets requests end. Spec: specs/http.md.
 *
 *   end: no new connections and requests -> streams end with their cursor -> requests have ten seconds -> connections close
 *
 * @module @daybook/server/api/HttpServing
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpIncomingMessage from "@effect/platform/HttpIncomingMessage"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer, Option, Schema } from "effect"
import { fairly } from "@daybook/log/support/FairScheduler"
import { isTraced } from "@daybook/log/support/Spans"
import { type Certificate, type HttpListener, listen, type Timeouts } from "../http/HttpListener.ts"
import { inUrl, isLoopback } from "../http/Site.ts"
import * as Count from "../support/Count.ts"
import { unexpected } from "./Answers.ts"
import * as Clients from "./Clients.ts"
import * as Documents from "./Documents.ts"
import { Drain } from "./Drain.ts"
import * as Gate from "./Gate.ts"
import * as HttpApp from "./HttpApp.ts"

/** The address can be reached from other machines, and what passes could be read there. */
export class BindingRefused extends Schema.TaggedError<BindingRefused>("@daybook/server/BindingRefused")(
  "BindingRefused",
  { host: Schema.String }
) {
  override get message() {
    return `${this.host} can be reached from other machines: give a certificate (--tls-cert, --tls-key), or --behind-proxy`
  }
}

export interface ServeOptions extends HttpApp.Options {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  readonly certificate?: Certificate | undefined
  /** A proxy that encrypts stands before the server. */
  readonly behindProxy?: boolean | undefined
  /** Other names of the server in `Host`. */
  readonly names?: ReadonlyArray<string> | undefined
  /** What one client may hold, besides the defaults. */
  readonly limits?: Partial<Clients.Limits> | undefined
  /** How long a client may take to send a request, besides the defaults. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** Further pages. */
  readonly pages?: Gate.Pages | undefined
}

/** Where the API is served, such as `http://127.0.0.1:4310`. */
export interface ServedHttp {
  readonly url: string
}

const maxConnections = 16_384

/** How long requests may take when the server ends. */
const lastRequests = Duration.seconds(10)

const end = ({ close, server }: HttpListener, running: Count.Count, drain: Effect.Effect<void>) =>
  Effect.gen(function* () {
    yield* drain
    yield* close
    yield* Effect.timeoutOption(Effect.interruptible(running.none), lastRequests)
    server.closeAllConnections()
  })

/** A body of unknown length is read up to the limit. */
const bounded = (mostBody: number) =>
  Effect.provideService(HttpIncomingMessage.MaxBodySize, Option.some(FileSystem.Size(mostBody)))

/** Without a tracer, the span of a request would cost more than many a request. */
const untraced: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = (work) =>
  Effect.withFiberRuntime((fiber) =>
    isTraced(fiber) ? work : HttpMiddleware.withTracerDisabledWhenEffect(work, () => true)
  )

/** Serves until the scope closes. */
export const serve = Effect.fn("HttpServing.serve")(function* (options: ServeOptions) {
  const { behindProxy = false, certificate, host, names = [], port } = options
  if (!isLoopback(host) && certificate === undefined && !behindProxy) return yield* new BindingRefused({ host })
  const scheme = certificate === undefined ? "http" : "https"
  const limits = { ...Clients.defaultLimits, ...options.limits }
  const { body: mostBody } = limits
  const clients = Clients.make(limits, behindProxy)
  const context = yield* Layer.build(
    Layer.mergeAll(
      HttpApp.layer(options, clients),
      HttpApiBuilder.Router.Live,
      HttpApiBuilder.Middleware.layer,
      NodeHttpServer.layerContext
    )
  )
  const app = yield* Effect.provide(HttpApiBuilder.httpApp, context)
  const handle = yield* NodeHttpServer.makeHandler(
    bounded(mostBody)(Effect.catchAllCause(app, (cause) => unexpected(cause, mostBody)))
  ).pipe(fairly, untraced, Effect.provide(context))
  const drain = yield* Effect.provide(Drain, context)
  const listener = yield* listen({ host, port, certificate, maxConnections, timeouts: options.timeouts })
  const running = Count.make()
  let ends = false
  const answered = Gate.make({
    site: { host, names, scheme: behindProxy ? "any" : scheme },
    pages: new Map([...Documents.pages, ...(options.pages ?? [])]),
    ends: () => ends,
    clients,
    mostBody
  })
  listener.server.on("connection", (socket) => {
    const left = clients.connection(socket.remoteAddress ?? "")
    if (left === undefined) socket.destroy()
    else socket.once("close", left)
  })
  listener.server.on("request", (request, response) => {
    running.begin()
    response.once("close", running.end)
    if (!answered(request, response)) handle(request, response)
  })
  const begin = Effect.zipRight(
    Effect.sync(() => void (ends = true)),
    drain.begin
  )
  yield* Effect.addFinalizer(() => end(listener, running, begin))
  return { url: `${scheme}://${inUrl(host)}:${listener.port}` } satisfies ServedHttp
})

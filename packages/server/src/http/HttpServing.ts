/**
 * Serves the API of a runtime at an address until the scope closes, then lets requests end. Spec: HT-58, HT-542 in specs/http.md.
 *
 *   end: no new connections and requests -> streams end with their cursor -> requests have ten seconds -> connections close
 *
 * @module @daybook/server/http/HttpServing
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import { Context, Duration, Effect, FiberRef, Layer, LogLevel, Metric, Runtime, Schema } from "effect"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { Patience } from "@daybook/log/storage/Transaction"
import { fairly } from "@daybook/log/support/EventLoop"
import * as Count from "../shared/Count.ts"
import * as Answering from "./Answering.ts"
import { comingBack, pathOf, unexpected } from "./Answers.ts"
import * as Clients from "./Clients.ts"
import * as DirectPrompts from "./DirectPrompts.ts"
import * as Documents from "./Documents.ts"
import * as Gate from "./Gate.ts"
import * as HttpApp from "./HttpApp.ts"
import {
  type Certificate,
  type HttpListener,
  listen,
  makePipelines,
  maxHeaderBytes,
  type Timeouts
} from "./HttpListener.ts"
import { inUrl, isLoopback } from "./Site.ts"
import { Drain } from "./Streams.ts"

// Counts and logs the answered requests, without their queries, which hold what people search for.

const requests = Metric.counter("daybook_http_requests_total", {
  description: "answered requests of HTTP, by status",
  incremental: true
})

/** The client left before anything was sent: as other servers log it. */
const leftStatus = 499

/** Follows a request to its end. */
type Follow = (request: IncomingMessage, response: ServerResponse) => void

const makeAccessLog = (clients: Clients.Clients, isLogged: boolean): Effect.Effect<Follow> =>
  Effect.gen(function* () {
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const lowest = yield* FiberRef.get(FiberRef.currentMinimumLogLevel)
    const logs = isLogged && LogLevel.lessThanEqual(lowest, LogLevel.Info)
    const counters = new Map<number, Metric.Metric.Counter<number>>()
    const count = (status: number) => {
      const counter = counters.get(status) ?? Metric.tagged(requests, "status", String(status))
      counters.set(status, counter)
      counter.unsafeUpdate(1, [])
    }
    return (request, response) => {
      const began = performance.now()
      // The address is unknown once the connection is closed.
      const client = logs ? clients.addressOf(request) : ""
      response.once("close", () => {
        const status = response.headersSent ? response.statusCode : leftStatus
        count(status)
        if (!logs) return
        const line = Effect.logInfo(`${request.method ?? ""} ${pathOf(request)} ${status}`)
        fork(Effect.annotateLogs(line, { ms: Math.round(performance.now() - began), client }))
      })
    }
  })

// Takes up what dead processes left, because a server has no client that would wake its sessions.

/** Sessions at a time. */
const atOnce = 16

/** How long a session counts as one of them: one that waits for a person must not hold up the others. */
const longest = Duration.seconds(10)

/** The failure of one session does not concern the others. */
const each = <E>(
  sessions: ReadonlyArray<{ readonly id: SessionID }>,
  work: (id: SessionID) => Effect.Effect<unknown, E>
) =>
  Effect.forEach(
    sessions,
    ({ id }) =>
      Effect.catchAllCause(work(id), (cause) =>
        Effect.annotateLogs(Effect.logWarning("what a dead process left could not be taken up", cause), { session: id })
      ),
    { concurrency: atOnce, discard: true }
  )

/**
 * Settles runs that were cut off, as interrupted, then runs the prompts that wait and that no living process owns. Goes on in
 * the background until the scope closes: it can take a lease's time to find out whether an owner is alive.
 */
export const recover = Effect.gen(function* () {
  const [execution, sessions] = [yield* SessionExecution, yield* Sessions]
  yield* Effect.forkScoped(execution.takeUp(execution.wake))
  yield* each(yield* sessions.interrupted, sessions.settle)
  yield* each(yield* sessions.waiting, (id) =>
    Effect.zipRight(execution.wake(id), Effect.timeoutOption(execution.settled(id), longest))
  )
}).pipe(
  Effect.catchAllCause((cause) => Effect.logError("taking up what dead processes left failed", cause)),
  Effect.withSpan("Recovery.recover"),
  Effect.forkScoped
)

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
  /** The server is behind a proxy that terminates TLS. */
  readonly behindProxy?: boolean | undefined
  /** Other names of the server in `Host`. */
  readonly names?: ReadonlyArray<string> | undefined
  /** Origins of other sites whose pages may use the server. Default: none. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** What one client may hold, besides the defaults. */
  readonly limits?: Partial<Clients.Limits> | undefined
  /** How long a client may take to send a request, besides the defaults. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** Further pages. */
  readonly pages?: Gate.Pages | undefined
  readonly accessLog?: boolean | undefined
}

/** Where the API is served, such as `http://127.0.0.1:4310`. */
export interface ServedHttp {
  readonly url: string
}

const maxConnections = 16_384

/** How long requests may take when the server ends. */
const lastRequests = Duration.seconds(10)

const end = Effect.fnUntraced(function* (
  { close, server }: HttpListener,
  running: Count.Count,
  drain: Effect.Effect<void>
) {
  yield* drain
  yield* close
  yield* Effect.timeoutOption(Effect.interruptible(running.none), lastRequests)
  server.closeAllConnections()
})

/** How long a request waits for a database that is away. Then the client gets 503 (CL-805). */
const patience = Duration.seconds(2)

/** Provides a context in place of the one around: each request copies it, so that it should hold nothing else. */
const within =
  <R>(context: Context.Context<R>) =>
  <A, E>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E> =>
    Effect.mapInputContext(effect, () => context)

/** Serves until the scope closes. */
export const serve = Effect.fn("HttpServing.serve")(function* (options: ServeOptions) {
  const { behindProxy = false, certificate, host, names = [], origins = [], port } = options
  if (!isLoopback(host) && certificate === undefined && !behindProxy) return yield* new BindingRefused({ host })
  const scheme = certificate === undefined ? "http" : "https"
  const limits = { ...Clients.defaultLimits, ...options.limits }
  const { body: mostBody } = limits
  const clients = Clients.make(limits, behindProxy)
  const files = yield* Layer.build(NodeHttpServer.layerContext)
  const context = yield* Layer.build(
    Layer.mergeAll(HttpApp.layer(options, clients), HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer)
  )
  // By default the router finds no endpoint for a part of a path beyond 100 characters. Headers are bounded, and so are paths.
  const app = yield* HttpApiBuilder.httpApp.pipe(
    Effect.provide(context),
    HttpRouter.withRouterConfig({ maxParamLength: maxHeaderBytes })
  )
  const handle = yield* Answering.make(
    Effect.map(
      Effect.catchAllCause(app, (cause) => unexpected(cause, mostBody)),
      comingBack
    ),
    mostBody
  ).pipe(fairly, within(Context.add(files, Patience, patience)))
  const admits = yield* DirectPrompts.make(options.token, clients, mostBody, handle).pipe(
    fairly,
    Effect.provideService(Patience, patience)
  )
  const drain = yield* Effect.provide(Drain, context)
  const listener = yield* listen({ host, port, certificate, maxConnections, timeouts: options.timeouts })
  const running = Count.make()
  let ends = false
  const answered = Gate.make({
    site: { host, names, scheme: behindProxy ? "any" : scheme, origins },
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
  const pipelines = makePipelines(limits.pipelined)
  const follow = yield* makeAccessLog(clients, options.accessLog === true)
  listener.server.on("request", (request, response) => {
    if (!pipelines.begin(request, response)) return
    running.begin()
    response.once("close", running.end)
    follow(request, response)
    if (!answered(request, response) && !admits(request, response)) handle(request, response)
  })
  const begin = Effect.zipRight(
    Effect.sync(() => void (ends = true)),
    drain.begin
  )
  yield* Effect.addFinalizer(() => end(listener, running, begin))
  return { url: `${scheme}://${inUrl(host)}:${listener.port}` } satisfies ServedHttp
})

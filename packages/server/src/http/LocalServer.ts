/** An HTTP server at 127.0.0.1 whose end ends its connections. Spec: SL-215, SL-216, SL-223 in specs/shell.md. */
import { createServer } from "node:http"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import { fairly } from "@daybook/log/support/EventLoop"
import { PortUnusable, unusable } from "./HttpListener.ts"

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

/** The port that the server listens at. */
export const port: Effect.Effect<number, never, HttpServer.HttpServer> = HttpServer.addressWith((address) =>
  Effect.succeed(address._tag === "TcpAddress" ? address.port : 0)
)

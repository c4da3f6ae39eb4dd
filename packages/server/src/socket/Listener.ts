/**
 * Listens on a Unix socket and makes a connection for each client, up to a limit. `SocketPath.ts` owns the path and its
 * permissions, `Connection.ts` one client. Spec: SO-70..SO-77 in specs/socket.md.
 */
import { createServer, type Server, type Socket } from "node:net"
import { Cause, Effect, FiberSet, type Scope } from "effect"
import * as Count from "../support/Count.ts"
import { encodeFrame, errorFrame } from "../wire/Wire.ts"
import { type Connection, make as makeConnection } from "./Connection.ts"
import { clear, type Place, prepare, publish, SocketBusy, SocketUnusable, unpublish } from "./SocketPath.ts"

export { SocketBusy, SocketUnusable }

/** Where to listen, and for how many clients. */
export interface ListenOptions extends Place {
  /** The maximum of concurrent clients; further ones get EBUSY. 256 by default. */
  readonly maxConnections?: number
}

/** A listening socket. */
export interface Listener {
  /** The host path of the socket. */
  readonly path: string
  /** The number of connected clients. */
  readonly connections: Effect.Effect<number>
  /** Waits until no client is connected. */
  readonly idle: Effect.Effect<void>
}

const defaultMaxConnections = 256
const readAhead = 65_536
/** Milliseconds for a rejected client to read the reason and close its side. */
const turnAwayMs = 1000

const full = encodeFrame(
  errorFrame({ code: "EBUSY", message: "too many clients are connected here: try again when one has gone" })
)

const broken = encodeFrame(
  errorFrame({ code: "EIO", message: "an internal error ended this connection; it is in the server's log" })
)
const lastWords = "1 second"

/** Writes the rejection if the client still reads, and closes the connection. */
const turnAway = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), turnAwayMs)
  socket.once("close", () => clearTimeout(timer))
  socket.resume()
  socket.end(full)
}

/** Binds the server at a temporary path and publishes it; the end of the scope removes it. */
const bind = (
  server: Server,
  { path, temporary }: { readonly path: string; readonly temporary: string },
  place: Place
) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      yield* clear(path)
      yield* Effect.async<void, SocketUnusable>((resume) => {
        const failed = (cause: Error) =>
          resume(new SocketUnusable({ path, message: `${path}: cannot listen there: ${cause.message}` }))
        server.once("error", failed)
        server.listen({ path: temporary }, () => {
          server.off("error", failed)
          resume(Effect.void)
        })
      })
      return yield* publish(temporary, path, place).pipe(Effect.onError(() => Effect.sync(() => server.close())))
    }),
    (published) =>
      Effect.zipRight(
        unpublish(path, published),
        Effect.sync(() => server.close())
      )
  )

/**
 * Listens until the scope closes. Each connection is handled in its own fiber, and finished when `handle` ends. The end
 * of the scope interrupts the remaining handlers.
 */
export const listen: <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) => Effect.Effect<Listener, SocketBusy | SocketUnusable, Scope.Scope | R> = Effect.fn("Listener.listen")(function* <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) {
  const max = options.maxConnections ?? defaultMaxConnections
  const prepared = yield* prepare(options)
  const { path } = prepared
  const run = yield* FiberSet.makeRuntime<R, void, never>()
  const connected = Count.make()
  let accepted = 0

  const attend = (socket: Socket, id: number) =>
    Effect.scoped(
      Effect.flatMap(makeConnection(socket, id), (connection) =>
        handle(connection).pipe(
          Effect.catchAllCause((cause) =>
            Cause.isInterruptedOnly(cause)
              ? Effect.failCause(cause)
              : Effect.zipRight(
                  Effect.logError("A client's connection failed", cause),
                  Effect.ignore(Effect.timeout(connection.write(broken), lastWords))
                )
          ),
          Effect.zipRight(connection.finish)
        )
      )
    ).pipe(
      Effect.catchAllCause(() => Effect.void),
      Effect.ensuring(Effect.sync(connected.end))
    )

  const server = createServer({ allowHalfOpen: true, highWaterMark: readAhead }, (socket) => {
    // Immediately: an unhandled error event would end the process.
    socket.on("error", () => {})
    if (connected.now() >= max) return turnAway(socket)
    connected.begin()
    run(attend(socket, ++accepted))
  })
  // A client that cannot be accepted for lack of descriptors stays in the backlog.
  server.on("error", () => {})
  yield* bind(server, prepared, options)
  return { path, connections: Effect.sync(connected.now), idle: connected.none }
})

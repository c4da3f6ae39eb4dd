/**
 * A Unix socket that only its owner can reach, and a connection for each client, up to a bound. Where the socket lies is
 * `SocketPath.ts`; one client is `Connection.ts`. Spec: SO-70..SO-79 in specs/socket.md.
 */
import { createServer, type Server, type Socket } from "node:net"
import { Cause, Effect, FiberSet, type Scope } from "effect"
import { make as makeConnection, type Connection } from "./Connection.ts"
import { clear, prepare, publish, SocketBusy, SocketUnusable, temporaryPath, unpublish } from "./SocketPath.ts"
import { encodeFrame, errorFrame } from "./Wire.ts"

export { SocketBusy, SocketUnusable }

export interface ListenOptions {
  /** The layout's root, as an absolute host path. */
  readonly root: string
  /** The socket below it, such as `agent/coder.sock`. */
  readonly name: string
  /** How many clients at once; beyond it they are told EBUSY. 256 by default. */
  readonly maxConnections?: number
}

export interface Listener {
  /** The host path of the socket. */
  readonly path: string
  /** How many clients are connected now. */
  readonly connections: Effect.Effect<number>
}

const defaultMaxConnections = 256
const readAhead = 65_536
/** How long one that is turned away may take to read why, and to close its side. */
const turnAwayMs = 1000

const full = encodeFrame(
  errorFrame({ code: "EBUSY", message: "too many clients are connected here: try again when one has gone" })
)

/** Tells a client that there is no room, as far as it listens, and lets go of it. */
const turnAway = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), turnAwayMs)
  socket.once("close", () => clearTimeout(timer))
  socket.resume()
  socket.end(full)
}

/** Binds the server under a name of its own, and publishes it; the end of the scope takes it away. */
const bind = (server: Server, path: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      yield* clear(path)
      const temporary = temporaryPath(path)
      yield* Effect.async<void, SocketUnusable>((resume) => {
        const failed = (cause: Error) =>
          resume(new SocketUnusable({ path, message: `${path}: cannot listen there: ${cause.message}` }))
        server.once("error", failed)
        server.listen({ path: temporary }, () => {
          server.off("error", failed)
          resume(Effect.void)
        })
      })
      return yield* publish(temporary, path).pipe(Effect.onError(() => Effect.sync(() => server.close())))
    }),
    (published) =>
      Effect.zipRight(
        unpublish(path, published),
        Effect.sync(() => server.close())
      )
  )

/**
 * Listens for as long as the scope lasts. Each client's connection is handed to `handle` in a fiber of its own, and
 * closed when that ends, once what was written has gone out. The end of the scope interrupts those that go on.
 */
export const listen: <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) => Effect.Effect<Listener, SocketBusy | SocketUnusable, Scope.Scope | R> = Effect.fn("Listener.listen")(function* <R>(
  options: ListenOptions,
  handle: (connection: Connection) => Effect.Effect<void, never, R>
) {
  const max = options.maxConnections ?? defaultMaxConnections
  const path = yield* prepare(options.root, options.name)
  const run = yield* FiberSet.makeRuntime<R, void, never>()
  let connected = 0
  let accepted = 0

  const attend = (socket: Socket, id: number) =>
    Effect.scoped(
      Effect.flatMap(makeConnection(socket, id), (connection) => Effect.zipRight(handle(connection), connection.finish))
    ).pipe(
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logError("A client's connection failed", cause)
      ),
      Effect.ensuring(Effect.sync(() => connected--))
    )

  const server = createServer({ allowHalfOpen: true, highWaterMark: readAhead }, (socket) => {
    // Before anything else can happen to it: a fault that nobody listens to would end the process.
    socket.on("error", () => {})
    if (connected >= max) return turnAway(socket)
    connected++
    run(attend(socket, ++accepted))
  })
  // What cannot be accepted for want of descriptors stays with its client.
  server.on("error", () => {})
  yield* bind(server, path)
  return { path, connections: Effect.sync(() => connected) }
})

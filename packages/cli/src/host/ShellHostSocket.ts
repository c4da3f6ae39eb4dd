/**
 * The socket of a host of live shells: at most one process listens at a path, only its user can connect, and the number of
 * connections is bounded. Spec: SL-171, SL-174 in specs/shell.md.
 */
import type * as Socket from "@effect/platform/Socket"
import type * as SocketServer from "@effect/platform/SocketServer"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, Option, Scope } from "effect"
import { clear, prepare, publish, type SocketBusy, SocketUnusable, unpublish } from "@daybook/server/socket/SocketPath"
import type { ShellHostPlace } from "./ShellHostPlace.ts"

const mostConnections = 256

/** Closes the connection of a handler. */
const closed = Effect.map(
  Effect.serviceOption(NodeSocket.NetSocket),
  Option.map((net) => net.destroy())
)

/** Closes connections beyond the limit. */
const limited = (server: SocketServer.SocketServer["Type"]): SocketServer.SocketServer["Type"] => {
  let connections = 0
  return {
    ...server,
    run: <R, E, A>(handler: (socket: Socket.Socket) => Effect.Effect<A, E, R>) =>
      server.run((socket): Effect.Effect<unknown, E, R> =>
        Effect.suspend((): Effect.Effect<unknown, E, R> => {
          if (connections >= mostConnections) return closed
          connections += 1
          return Effect.ensuring(
            handler(socket),
            Effect.sync(() => (connections -= 1))
          )
        })
      )
  }
}

/**
 * Listens until `scope` ends. The path is published last and removed with this effect's own scope, which ends after that one.
 */
export const listen = Effect.fn("ShellHostSocket.listen")(function* (
  { name, root }: Pick<ShellHostPlace, "name" | "root">,
  scope: Scope.Scope
): Effect.fn.Return<SocketServer.SocketServer["Type"], SocketBusy | SocketUnusable, Scope.Scope> {
  const { path, temporary } = yield* prepare({ root, name })
  yield* clear(path)
  const server = yield* NodeSocketServer.make({ path: temporary }).pipe(
    Effect.mapError(({ message }) => new SocketUnusable({ path, message: `${path}: cannot listen there: ${message}` })),
    Scope.extend(scope)
  )
  yield* Effect.acquireRelease(publish(temporary, path), (published) => unpublish(path, published))
  return limited(server)
})

/**
 * Runs a host of live shells: until a signal, or until no shell has been open for a minute. Spec: SL-170..SL-177 in specs/shell.md.
 *
 *   signal | idle -> new shells are refused -> shells close (shutdown) -> connections end -> the socket is removed
 */
import { homedir } from "node:os"
import * as SocketServer from "@effect/platform/SocketServer"
import { Context, Effect, Exit, Layer, Option, Scope } from "effect"
import type * as Socket from "@effect/platform/Socket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as Garbage from "@daybook/log/support/Garbage"
import { clear, prepare, publish, SocketBusy, SocketUnusable, unpublish } from "@daybook/server/socket/SocketPath"
import * as Shells from "@daybook/shell/Shells"
import * as HostServer from "@daybook/shell/host/HostServer"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as Signal from "../support/Signal.ts"
import { standard } from "../support/Stream.ts"
import { Output } from "../terminal/Output.ts"
import * as Logs from "../terminal/Logs.ts"
import { placeOf, type ShellHostPlace } from "./ShellHostPlace.ts"
import * as ShellsHost from "./ShellsHost.ts"

const mostConnections = 256

const closed = Effect.map(
  Effect.serviceOption(NodeSocket.NetSocket),
  Option.map((net) => net.destroy())
)

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

/** Listens until `scope` ends. The path is published last and removed with this effect's own scope, which ends last. */
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

// The build defines it.
declare const DAYBOOK_VERSION: string

/** How long the host stays without a shell; tests set another time. */
const linger = Effect.sync(() => {
  const given = Number(process.env["DAYBOOK_SHELL_LINGER_MS"])
  return Number.isSafeInteger(given) && given > 0 ? given : 60_000
})

/** A client that reads nothing cannot keep the host. */
const closeWithin = "2 seconds"

export const run = Effect.fn("Command.shell.host")(
  function* () {
    const signal = yield* Signal.first
    const output = yield* Output
    const place = placeOf((yield* DatabasePath.writable).path)
    const ofShells = yield* Scope.make()
    const ofServer = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Effect.zipRight(Scope.close(ofShells, exit), Scope.close(ofServer, exit)))
    const context = yield* Layer.buildWithScope(ShellsHost.layer("daybook shell"), ofShells)
    const server = yield* HostServer.make({
      hello: { version: DAYBOOK_VERSION, pid: process.pid, database: place.database },
      shells: Context.get(context, Shells.Shells),
      linger: yield* linger
    })
    const socket = yield* Effect.mapError(listen(place, ofServer), (error) =>
      error._tag === "SocketBusy"
        ? new SocketBusy({ path: error.path, message: `a host listens at ${error.path}` })
        : error
    )
    yield* server.serve.pipe(Effect.provideService(SocketServer.SocketServer, socket), Scope.extend(ofServer))
    // The folder that it was started in may be removed, or on a disk that is taken out.
    yield* Effect.ignore(Effect.try(() => process.chdir(homedir())))
    yield* output.print("ready\n")
    yield* Garbage.started
    yield* Effect.raceFirst(signal, server.idle)
    yield* server.refuse
    yield* Scope.close(ofShells, Exit.void)
    // Callers get the ends of their commands.
    const closed = Effect.zipRight(server.settled, Scope.close(ofServer, Exit.void))
    yield* Effect.ignore(Effect.timeout(Effect.disconnect(closed), closeWithin))
  },
  Effect.scoped,
  Effect.provide(Logs.limited((line) => void standard().stderr.write(line, () => undefined)))
)

/**
 * Runs a host of live shells: until a signal, or until no shell has been open for a minute. Spec: SL-170..SL-177 in specs/shell.md.
 *
 *   signal | idle -> new shells are refused -> shells close (shutdown) -> connections end -> the socket is removed
 */
import { homedir } from "node:os"
import * as SocketServer from "@effect/platform/SocketServer"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import * as HostServer from "@daybook/shell/host/HostServer"
import { SocketBusy } from "@daybook/server/socket/SocketPath"
import * as Shells from "@daybook/shell/Shells"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as Garbage from "../support/Garbage.ts"
import * as Signal from "../support/Signal.ts"
import { standard } from "../support/Stream.ts"
import { Output } from "../terminal/Output.ts"
import * as ShellHostLog from "./ShellHostLog.ts"
import { placeOf } from "./ShellHostPlace.ts"
import * as ShellHostSocket from "./ShellHostSocket.ts"
import * as ShellsHost from "./ShellsHost.ts"

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
    const place = placeOf(yield* DatabasePath.writable)
    const ofShells = yield* Scope.make()
    const ofServer = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Effect.zipRight(Scope.close(ofShells, exit), Scope.close(ofServer, exit)))
    const context = yield* Layer.buildWithScope(ShellsHost.layer("daybook shell"), ofShells)
    const server = yield* HostServer.make({
      hello: { version: DAYBOOK_VERSION, pid: process.pid, database: place.database },
      shells: Context.get(context, Shells.Shells),
      linger: yield* linger
    })
    const socket = yield* Effect.mapError(ShellHostSocket.listen(place, ofServer), (error) =>
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
  Effect.provide(ShellHostLog.layer((line) => void standard().stderr.write(line, () => undefined)))
)

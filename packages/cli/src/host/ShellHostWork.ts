/**
 * Finds the host of live shells of this environment, starts one if it is needed, and checks that it is of this version and
 * database. Spec: SL-170, SL-172 in specs/shell.md.
 */
import { Effect, Predicate, Schedule } from "effect"
import { maxSocketPathBytes, SocketUnusable } from "@daybook/server/socket/SocketPath"
import { connect, type HostClient } from "@daybook/shell/host/HostClient"
import * as DatabasePath from "../config/DatabasePath.ts"
import { HostDiffers } from "../support/Errors.ts"
import { place, placeOf, type ShellHostPlace } from "./ShellHostPlace.ts"
import * as ShellHostStart from "./ShellHostStart.ts"

// The build defines it.
declare const DAYBOOK_VERSION: string

const checked = ({ database }: ShellHostPlace) =>
  Effect.fnUntraced(function* (client: HostClient) {
    const { database: other, pid, version } = client.hello
    const advice = `end it and its shells with: kill ${pid}`
    if (version !== DAYBOOK_VERSION) {
      const message = `process ${pid}, of daybook ${version}, keeps the shells, and this is daybook ${DAYBOOK_VERSION}: use that version, or ${advice}`
      return yield* new HostDiffers({ message })
    }
    if (other !== database) {
      const message = `process ${pid} keeps the shells of this folder and records in ${other}: set DAYBOOK_DB to that file, or ${advice}`
      return yield* new HostDiffers({ message })
    }
    return client
  })

const connected = Effect.fnUntraced(function* ({ socket }: ShellHostPlace) {
  const length = Buffer.byteLength(socket)
  if (length <= maxSocketPathBytes) return yield* connect(socket)
  const message = `${socket}: a socket path may have ${maxSocketPathBytes} bytes, and this has ${length}: set DAYBOOK_DB to a shorter path`
  return yield* new SocketUnusable({ path: socket, message })
})

const isClosed = (error: unknown) =>
  Predicate.isTagged(error, "HostUnusable") && "reason" in error && error.reason === "closed"

const after = (times: number) => Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(times))

/** The client of the host that runs. One that is ending closes the connection, and is gone a moment later. */
export const existing = Effect.flatMap(place, (at) => Effect.flatMap(connected(at), checked(at))).pipe(
  Effect.retry({ while: isClosed, schedule: after(5) })
)

/** The client of a host, which is started if none runs. One that ends before it is asked is replaced. */
const started = Effect.gen(function* () {
  const at = placeOf(yield* DatabasePath.writable)
  const found = connected(at)
  const client = yield* Effect.catchTag(found, "HostAbsent", () =>
    Effect.flatMap(ShellHostStart.start(at), (conflict) =>
      Effect.catchTag(found, "HostAbsent", (absent) => Effect.fail(conflict ?? absent))
    )
  )
  return yield* checked(at)(client)
}).pipe(Effect.retry({ times: 3, while: ({ _tag }) => _tag === "HostAbsent" }))

/** Runs work with a host. A host that is ending refuses the work: then again, until another one can be started. */
export const withStarted = <A, E, R>(work: (client: HostClient) => Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(started, work)).pipe(
    Effect.retry({
      while: (error) => Predicate.isTagged(error, "HostEnding") || isClosed(error),
      schedule: after(100)
    })
  )

/**
 * Finds the host of live shells of this environment, starts one if it is needed, and checks that it is of this version and
 * database. Spec: SL-170, SL-172 in specs/shell.md.
 */
import { Effect, Predicate, Schedule } from "effect"
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

/** The client of the host that runs. */
export const existing = Effect.flatMap(place, (at) => Effect.flatMap(connect(at.socket), checked(at)))

/** The client of a host, which is started if none runs. */
const started = Effect.gen(function* () {
  const at = placeOf(yield* DatabasePath.writable)
  const found = connect(at.socket)
  const client = yield* Effect.catchTag(found, "HostAbsent", () => Effect.zipRight(ShellHostStart.start(at), found))
  return yield* checked(at)(client)
})

/** Runs work with a host. A host that is ending refuses the work, or is gone before it: then again with another one. */
export const withStarted = <A, E, R>(work: (client: HostClient) => Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(started, work)).pipe(
    Effect.retry({
      while: (error) => Predicate.isTagged(error, "HostEnding") || Predicate.isTagged(error, "HostAbsent"),
      schedule: Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(100))
    })
  )

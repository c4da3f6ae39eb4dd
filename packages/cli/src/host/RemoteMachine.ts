/**
 * Asks a server for figures of its database, searches, limits of sessions, and its live shells and their events. Spec: CL-303 in specs/cli.md.
 */
import { Effect, Layer, Option, Stream } from "effect"
import type { Decision, OpenPermission } from "@daybook/api/group/PermissionsApi"
import { DaybookClient, type Measuring } from "@daybook/client/DaybookClient"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { shellTypes } from "@daybook/log/events/LiveShellEvents"
import { LogUnavailable } from "@daybook/log/log/EventLog"
import { Search } from "@daybook/log/search/Search"
import { isShellEvent } from "@daybook/shell/record/ShellEvent"
import { needsDatabase } from "../support/Errors.ts"
import type { Server } from "./Remote.ts"
import { clientOf } from "./RemoteHost.ts"

/** The figures of the database, or of one session of it. */
export const stats = (server: Server, what: Measuring) =>
  Effect.flatMap(DaybookClient, (client) => client.stats(what)).pipe(Effect.provide(clientOf(server)))

/** The errors of the connection as defects: those of a search stay. */
const lost = <A, E extends { readonly _tag: string }>(found: Effect.Effect<A, E | InvalidInput | LogUnavailable>) =>
  Effect.catchAll(found, (error) =>
    error instanceof InvalidInput || error instanceof LogUnavailable ? Effect.fail(error) : Effect.die(error)
  )

/** The search of the server, which keeps its own index current. */
export const search = (server: Server) =>
  Layer.effect(
    Search,
    Effect.map(DaybookClient, ({ prompts, search }) =>
      Search.of({
        search: (options) => lost(search(options)),
        prompts: (options) => lost(prompts(options)),
        update: () => Effect.succeed({ position: 0, head: 0 }),
        rebuild: () => Effect.die(needsDatabase()),
        progress: Effect.die(needsDatabase())
      })
    )
  ).pipe(Layer.provide(clientOf(server)))

/** What bounds a session. */
export const limits = (server: Server, sessionID: SessionID) =>
  Effect.flatMap(DaybookClient, (client) => client.limits(sessionID)).pipe(Effect.provide(clientOf(server)))

/** The calls that wait for a permission. */
export const permissions = (server: Server) =>
  Effect.flatMap(DaybookClient, (client) => client.permissions).pipe(Effect.provide(clientOf(server)))

/** Decides about one of them. */
export const decide = (server: Server, { ask, sessionID }: OpenPermission, decision: Decision) =>
  Effect.flatMap(DaybookClient, (client) => client.decide(sessionID, ask, decision)).pipe(
    Effect.provide(clientOf(server))
  )

/** The open live shells. */
export const shells = (server: Server) =>
  Effect.flatMap(DaybookClient, (client) => client.shells).pipe(Effect.provide(clientOf(server)))

/** Which events of live shells to read. */
export interface Watched {
  /** Undefined: those of all sessions. */
  readonly sessionID: SessionID | undefined
  /** A sequence number of the session, else a position. */
  readonly after: number | undefined
  readonly follow: boolean
}

/** The events of live shells, without pruned ones. */
export const watched = (server: Server, { after, follow, sessionID }: Watched) =>
  Stream.unwrap(
    Effect.map(DaybookClient, (client) => {
      const from = (cursor: string | undefined): ReturnType<typeof client.follow> =>
        Stream.catchTag(
          client.follow({ sessionID, after: cursor, follow, types: shellTypes }),
          "CursorExpired",
          ({ floorCursor }) => from(floorCursor)
        )
      return from(after === undefined ? undefined : String(after))
    })
  ).pipe(
    Stream.filterMap((item) =>
      item.frame === "event" && isShellEvent(item.event) ? Option.some(item.event) : Option.none()
    ),
    Stream.provideLayer(clientOf(server))
  )

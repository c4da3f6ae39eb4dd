/** Asks a server for figures of its database, limits of sessions, and its live shells. Spec: CL-303 in specs/cli.md. */
import { Effect } from "effect"
import { DaybookClient, type Measuring } from "@daybook/client/DaybookClient"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Server } from "./Remote.ts"
import { clientOf } from "./RemoteHost.ts"

/** The figures of the database, or of one session of it. */
export const stats = (server: Server, what: Measuring) =>
  Effect.flatMap(DaybookClient, (client) => client.stats(what)).pipe(Effect.provide(clientOf(server)))

/** What bounds a session. */
export const limits = (server: Server, sessionID: SessionID) =>
  Effect.flatMap(DaybookClient, (client) => client.limits(sessionID)).pipe(Effect.provide(clientOf(server)))

/** The open live shells. */
export const shells = (server: Server) =>
  Effect.flatMap(DaybookClient, (client) => client.shells).pipe(Effect.provide(clientOf(server)))

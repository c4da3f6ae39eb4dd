/**
 * The services of a verb over a server, its searches and figures, and its live shells: what the HTTP API offers. Everything else
 * needs the database, and says so. Spec: CL-303, CL-304 in specs/cli.md.
 */
import type { Decision, OpenPermission } from "@daybook/api/group/WorkApi"
import { Chunk, Effect, Layer, Option, Stream } from "effect"
import * as Client from "@daybook/client/DaybookClient"
import { DaybookClient, type StatsScope } from "@daybook/client/DaybookClient"
import * as RemoteSessions from "@daybook/client/RemoteSessions"
import type { ConnectionError } from "@daybook/client/ClientError"
import { plain } from "@daybook/client/Streams"
import { Agents } from "@daybook/core/agent/Agents"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { PermissionStore } from "@daybook/core/permission/PermissionStore"
import { Naming } from "@daybook/core/session/Naming"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { shellTypes } from "@daybook/log/events/LiveShellEvents"
import type { TreeNode } from "@daybook/log/domain/HistoryPath"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, LogUnavailable, type ReadError, type ReplayComplete } from "@daybook/log/log/EventLog"
import { Search } from "@daybook/log/search/Search"
import { Inbox } from "@daybook/log/store/Inbox"
import { allItems } from "@daybook/log/store/Pages"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { isShellEvent } from "@daybook/shell/record/ShellList"
import { needsDatabase } from "../support/Errors.ts"
import type { Server } from "./Remote.ts"

/** A service that has only the members that a server offers. Using another member ends the command with an error. */
const offering = <S extends object>(members: Partial<S>): S => {
  const get = (target: Partial<S>, name: PropertyKey): unknown => {
    if (Reflect.has(target, name)) return Reflect.get(target, name)
    throw needsDatabase()
  }
  // The proxy makes the members a whole service: a missing one throws before anyone can use it.
  return new Proxy(members, { get }) as S
}

const isEvent = (item: SessionEvent | ReplayComplete): item is SessionEvent => item.type !== "replay.complete"

const log = Layer.effect(
  EventLog,
  Effect.gen(function* () {
    const [client, sessions] = [yield* Client.DaybookClient, yield* Sessions]
    const found = <A>(items: Stream.Stream<A, ReadError | ConnectionError>): Stream.Stream<A, ReadError> =>
      Stream.catchAll(items, (error) =>
        error._tag === "InvalidInput" || RemoteSessions.isLost(error) ? Stream.die(error) : Stream.fail(error)
      )
    const tailMarked: EventLog["Type"]["tailMarked"] = (options) => found(client.tail(options))
    return offering<EventLog["Type"]>({
      tailMarked,
      follow: (options) => found(plain(client.follow, options, true)),
      tail: (options) => Stream.filter(tailMarked(options), isEvent),
      read: sessions.history,
      latest: (sessionID) => Effect.map(Effect.orDie(client.head(sessionID)), ({ seq }) => seq)
    })
  })
)

/** The messages that a person may mean, as the store finds them. */
const meant = (sessions: Sessions["Type"], sessionID: SessionID, reference: string) =>
  Effect.map(
    Stream.runCollect(allItems((cursor: number | undefined) => sessions.tree({ sessionID, limit: 500, cursor }))),
    (all) => {
      const which = (holds: (node: TreeNode) => boolean) =>
        Chunk.toReadonlyArray(Chunk.filter(all, holds)).map(({ id }) => id)
      const [exact, labelled] = [which(({ id }) => id === reference), which(({ label }) => label === reference)]
      if (exact.length > 0 || labelled.length > 0) return exact.length > 0 ? exact : labelled
      return which(({ id }) => id.startsWith(reference) || id.endsWith(reference)).slice(0, 10)
    }
  )

const store = Layer.effect(
  SessionStore,
  Effect.map(Sessions, (sessions) => {
    const titled: SessionStore["Type"]["titled"] = (title, { directory } = {}) =>
      Effect.map(Effect.orDie(sessions.list({ search: title, directory, limit: 500 })), ({ items }) =>
        items.filter((session) => session.title === title)
      )
    return offering<SessionStore["Type"]>({
      titled,
      get: sessions.get,
      list: sessions.list,
      addressed: (address) => Effect.orDie(sessions.addressed(address)),
      messages: (options) => Effect.orDie(sessions.messages(options)),
      message: (sessionID, messageID) => Effect.orDie(sessions.message(sessionID, messageID)),
      find: (sessionID, reference) => Effect.orDie(meant(sessions, sessionID, reference)),
      tree: (options) => Effect.orDie(sessions.tree(options)),
      metrics: (sessionID) => Effect.orDie(sessions.metrics(sessionID)),
      treeUsage: (sessionID) => Effect.map(Effect.orDie(sessions.usage(sessionID)), ({ total }) => total),
      treeEstimated: (sessionID) => Effect.map(Effect.orDie(sessions.usage(sessionID)), ({ estimated }) => estimated)
    })
  })
)

const inbox = Layer.effect(
  Inbox,
  Effect.map(Sessions, (sessions) =>
    offering<Inbox["Type"]>({
      sessions: sessions.waiting,
      waiting: (sessionID) => Effect.orDie(sessions.inbox(sessionID))
    })
  )
)

/** The name of a session is the server's work. */
const naming = Layer.succeed(Naming, offering<Naming["Type"]>({ settled: () => Effect.void, expect: () => undefined }))

const absent = Layer.mergeAll(
  Layer.succeed(Agents, offering<Agents["Type"]>({})),
  Layer.succeed(ModelResolver, offering<ModelResolver["Type"]>({})),
  Layer.succeed(PermissionStore, offering<PermissionStore["Type"]>({})),
  Layer.succeed(SessionExecution, offering<SessionExecution["Type"]>({})),
  Layer.succeed(ConsumerStore, offering<ConsumerStore["Type"]>({}))
)

/** The client of this server. A command does not wait for a server that is not there. */
const clientOf = ({ token, url }: Server) => Client.layer({ baseUrl: url, token, giveUpAfter: "10 seconds" })

/** Asks the server something else than the services do. */
const asking = <A, E>(server: Server, ask: (client: DaybookClient["Type"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(DaybookClient, ask), clientOf(server))

export const layer = (server: Server) =>
  Layer.mergeAll(log, store, inbox, naming, absent, Identifiers.layer).pipe(
    Layer.provideMerge(RemoteSessions.layer),
    Layer.provide(clientOf(server))
  )

/** The figures of the database, or of one session of it. */
export const stats = (server: Server, what: StatsScope) => asking(server, (client) => client.stats(what))

/** Errors of the connection become defects; errors of a search stay errors. */
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

export const limits = (server: Server, sessionID: SessionID) => asking(server, (client) => client.limits(sessionID))

export const permissions = (server: Server) => asking(server, (client) => client.permissions)

export const decide = (server: Server, { ask, sessionID }: OpenPermission, decision: Decision) =>
  asking(server, (client) => client.decide(sessionID, ask, decision))

export const shells = (server: Server) => asking(server, (client) => client.shells)

export const nodesOf = (server: Server) => asking(server, (client) => client.nodes)

/** Which events of live shells to read. */
interface ShellEventsQuery {
  /** Undefined: those of all sessions. */
  readonly sessionID: SessionID | undefined
  /** A sequence number of the session, else a position. */
  readonly after: number | undefined
  readonly follow: boolean
}

/** The events of live shells, without pruned ones. */
export const watched = (server: Server, { after, follow, sessionID }: ShellEventsQuery) =>
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

/** What is known of one server: its status, its connection, and the wait for them. Spec: MC-7, MC-38, MC-542. */
import { Deferred, Duration, Effect, FiberId, SubscriptionRef } from "effect"
import type { HostTools } from "@daybook/core/tool/HostTools"
import type { Connection } from "./Connection.ts"
import type { McpServer } from "./McpServer.ts"
import { ServerFault } from "./ServerFault.ts"
import type { Start } from "./StartFolder.ts"
import type { ToolCache } from "./ToolCache.ts"

/** A server's status. */
export interface McpStatus {
  readonly name: string
  readonly state: "connecting" | "connected" | "failed"
  /** Why it failed or is late, or which of its tools are not offered or were repaired. */
  readonly details?: string
  /** Number of tools that it offers now. */
  readonly tools: number
}

/** One server of the host. */
export interface Supervised {
  readonly name: string
  readonly server: McpServer
  /** The names of all configured servers; they restrict the tool names. */
  readonly names: ReadonlyArray<string>
  readonly host: HostTools["Type"]
  readonly status: SubscriptionRef.SubscriptionRef<ReadonlyMap<string, McpStatus>>
  /** Connected servers. */
  readonly connections: Map<string, Connection>
  /** The last offered tools with their servers; kept while a server is disconnected. */
  readonly known: Map<string, string>
  /** Where and how its process starts. */
  readonly start: Start
  readonly cache: ToolCache
  /** Its `settled` completes when the server has connected or failed; there is a new one when it connects anew. */
  readonly waiting: { settled: Deferred.Deferred<void> }
}

/** Time limit of connecting and the first list together, and of each later list. */
export const connectTimeout = Duration.seconds(10)

/** Updates the status; logs details that changed. */
export const report = Effect.fnUntraced(function* (supervised: Supervised, now: Omit<McpStatus, "name">) {
  const { name, status, waiting } = supervised
  const before = yield* SubscriptionRef.getAndUpdate(status, (all) => new Map(all).set(name, { name, ...now }))
  if (now.state !== "connecting") yield* Deferred.succeed(waiting.settled, undefined)
  if (now.details !== undefined && before.get(name)?.details !== now.details) {
    const log = now.state === "connected" ? Effect.logInfo : Effect.logWarning
    yield* Effect.annotateLogs(log(`MCP server "${name}" (${now.state}): ${now.details}`), "server", name)
  }
})

/** Waits until each server has connected or failed. */
export const allSettled = (servers: ReadonlyArray<Supervised>): Effect.Effect<void> =>
  Effect.forEach(servers, ({ waiting }) => Deferred.await(waiting.settled), { discard: true })

/** The same, at most the time of connecting. */
export const settled = (servers: ReadonlyArray<Supervised>): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(allSettled(servers), connectTimeout))

/** The connection; waits for a server that is being connected. */
const current = Effect.fnUntraced(function* (supervised: Supervised) {
  const { connections, name, status } = supervised
  yield* settled([supervised])
  const connection = connections.get(name)
  if (connection !== undefined) return connection
  const { details } = (yield* status).get(name) ?? {}
  return yield* new ServerFault({ details: details ?? "it is not connected now", reason: "unavailable" })
})

/** Notes that the connection's session is forgotten: what follows waits for the next connection. */
export const forget = (supervised: Supervised, connection: Connection): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { connections, name, status, waiting } = supervised
    if (connections.get(name) !== connection) return Effect.void
    connections.delete(name)
    waiting.settled = Deferred.unsafeMake(FiberId.none)
    return SubscriptionRef.update(status, (all) => {
      const tools = all.get(name)?.tools ?? 0
      return new Map(all).set(name, { name, state: "connecting", tools })
    })
  })

/**
 * Uses the connection. A request that the server refused because it had forgotten the session was not run: it is repeated once
 * on the next connection.
 */
export const using = <A, E>(
  supervised: Supervised,
  use: (connection: Connection) => Effect.Effect<A, E | ServerFault>
): Effect.Effect<A, E | ServerFault> => {
  const once = Effect.flatMap(current(supervised), (connection) =>
    Effect.tapError(use(connection), (error) => (isForgotten(error) ? forget(supervised, connection) : Effect.void))
  )
  return Effect.catchIf(once, isForgotten, () => once)
}

const isForgotten = (error: unknown): boolean => error instanceof ServerFault && error.reason === "forgotten"

/**
 * Connects the host's MCP servers, registers their tools in every Location, and reads their resources. Process-global.
 * `Supervisor.ts` owns each server's connection. Spec: MC-1..MC-40.
 */
import { Context, Deferred, Effect, FiberSet, Layer, Stream, SubscriptionRef } from "effect"
import { ResourceReader, ResourceUnreadable } from "@daybook/core/prompt/ResourceReader"
import { HostTools } from "@daybook/core/tool/HostTools"
import type { ToolContent } from "@daybook/log/domain/Values"
import type { Connection } from "./Connection.ts"
import { readContents } from "./Content.ts"
import { callTimeout, isEnabled, McpError, type McpServers } from "./McpServer.ts"
import type { ServerFault } from "./ServerFault.ts"
import type { McpResource } from "./ServerRequests.ts"
import { makeStart, type StartOptions } from "./StartFolder.ts"
import { connectTimeout, type McpStatus, supervise } from "./Supervisor.ts"

export { McpError, McpServer, McpServers } from "./McpServer.ts"
export type { McpResource } from "./ServerRequests.ts"
export type { StartOptions } from "./StartFolder.ts"
export type { McpStatus } from "./Supervisor.ts"

/** The configured MCP servers. Their tools are registered with `HostTools`, which runs the calls. */
export class Mcp extends Context.Tag("@daybook/mcp/Mcp")<
  Mcp,
  {
    /** Waits until every server has connected or failed, at most 10 seconds (MC-7). */
    readonly ready: Effect.Effect<void>
    /** The status of every enabled server, sorted by name; contains no secrets (MC-38). */
    readonly status: Effect.Effect<ReadonlyArray<McpStatus>>
    /** The status now and after every change. */
    readonly changes: Stream.Stream<ReadonlyArray<McpStatus>>
    /** The first 1,000 resources that a server lists (MC-30). */
    readonly listResources: (server: string) => Effect.Effect<ReadonlyArray<McpResource>, McpError>
    /** One resource, bounded (MC-31). Waits for a server that is still connecting. */
    readonly readResource: (server: string, uri: string) => Effect.Effect<ReadonlyArray<ToolContent>, McpError>
  }
>() {}

const lostServer = (server: string, tool: string): string =>
  `MCP server "${server}" was lost and is being connected again; nothing was done. Call "${tool}" again later, or ` +
  "continue without it"

const byName = (all: ReadonlyMap<string, McpStatus>): ReadonlyArray<McpStatus> =>
  [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1))

const make = Effect.fnUntraced(function* (configured: McpServers, options: StartOptions) {
  const host = yield* HostTools
  const servers = Object.entries(configured).filter(([, server]) => isEnabled(server))
  const names = servers.map(([name]) => name)
  const status = yield* SubscriptionRef.make<ReadonlyMap<string, McpStatus>>(
    new Map(names.map((name) => [name, { name, state: "connecting", tools: 0 }]))
  )
  const connections = new Map<string, Connection>()
  const known = new Map<string, string>()
  yield* host.explain((tool) => {
    const server = known.get(tool)
    return server === undefined || connections.has(server) ? undefined : lostServer(server, tool)
  })
  const start = yield* makeStart(
    servers.map(([, server]) => server),
    options
  )
  const supervised = yield* Effect.forEach(servers, ([name, server]) =>
    Effect.map(Deferred.make<void>(), (settled) => ({
      name,
      server,
      names,
      host,
      status,
      connections,
      known,
      settled,
      start
    }))
  )
  // When the scope closes, all supervisors end at the same time.
  const fibers = yield* FiberSet.make()
  yield* Effect.forEach(supervised, (each) => FiberSet.run(fibers, supervise(each)), { discard: true })

  const settled = ({ settled }: { readonly settled: Deferred.Deferred<void> }) =>
    Effect.asVoid(Effect.timeoutOption(Deferred.await(settled), connectTimeout))

  /** Sends a request to a connected server, within the timeout of a call. */
  const ask = Effect.fnUntraced(function* <A>(
    server: string,
    question: (connection: Connection) => Effect.Effect<A, ServerFault>
  ) {
    const refuse = (reason: McpError["reason"], details: string) => new McpError({ server, reason, details })
    const known = supervised.find(({ name }) => name === server)
    if (known === undefined) {
      return yield* refuse("unknown", `no server has this name; configured: ${names.join(", ") || "none"}`)
    }
    yield* settled(known)
    const connection = connections.get(server)
    if (connection === undefined) {
      const now = (yield* status).get(server)
      return yield* refuse(
        "unavailable",
        (now?.state === "failed" ? now.details : undefined) ?? "it is not connected now"
      )
    }
    return yield* question(connection).pipe(
      Effect.mapError(({ details }) => refuse("refused", details)),
      Effect.timeoutFail({
        duration: callTimeout(known.server),
        onTimeout: () => refuse("timeout", "it did not answer in time")
      })
    )
  })

  const ready = Effect.forEach(supervised, settled, { concurrency: "unbounded", discard: true })
  yield* host.awaitBeforeUse(ready)

  return Mcp.of({
    ready,
    status: Effect.map(status, byName),
    changes: Stream.map(status.changes, byName),
    listResources: Effect.fn("Mcp.listResources")((server: string) =>
      ask(server, ({ listResources }) => listResources)
    ),
    readResource: Effect.fn("Mcp.readResource")((server: string, uri: string) =>
      ask(server, ({ readResource }) => Effect.map(readResource(uri), readContents))
    )
  })
})

/** Reads the servers' resources for prompts. */
const layerResources = Layer.effect(
  ResourceReader,
  Effect.map(Mcp, (mcp) => ({
    servers: Effect.map(mcp.status, (all) => all.map(({ name }) => name)),
    read: (server: string, uri: string) =>
      Effect.mapError(mcp.readResource(server, uri), ({ message }) => new ResourceUnreadable({ message }))
  }))
)

/**
 * Connects to the servers in the background, until the scope closes, and registers their tools and resources. Without
 * servers, nothing is loaded or started.
 */
export const layer = (servers: McpServers, options: StartOptions = {}): Layer.Layer<Mcp, never, HostTools> =>
  Layer.provideMerge(layerResources, Layer.scoped(Mcp, make(servers, options)))

/**
 * Connects the host's MCP servers, registers their tools in every Location, and reads their resources. Process-global.
 * `Supervisor.ts` owns each server's connection. Spec: MC-1..MC-40, MC-540..MC-542.
 */
import { Context, Deferred, Duration, Effect, FiberId, FiberSet, Layer, Stream, SubscriptionRef } from "effect"
import { ResourceReader, ResourceUnreadable } from "@daybook/core/prompt/PromptExpander"
import { HostTools } from "@daybook/core/tool/HostTools"
import type { ToolContent } from "@daybook/log/domain/Values"
import type { Connection, McpResource } from "./Connection.ts"
import { readContents } from "./Content.ts"
import { callTimeout, isEnabled, McpError, type McpServers, type ServerFault } from "./McpServer.ts"
import * as OfferedTools from "./OfferedTools.ts"
import { allSettled, type McpStatus, report, settled, type Supervised, using } from "./OfferedTools.ts"
import { makeStart, type StartOptions } from "./StartFolder.ts"
import { supervise } from "./Supervisor.ts"
import * as ToolListing from "./ToolListing.ts"

export { McpError, McpServer, McpServers } from "./McpServer.ts"
export type { McpResource } from "./Connection.ts"
export type { StartOptions } from "./StartFolder.ts"
export type { McpStatus } from "./OfferedTools.ts"

/** What `Mcp` offers. */
export interface Service {
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

/**
 * The configured MCP servers. Their tools are registered with `HostTools`, which runs the calls.
 *
 * @example
 * ```ts
 * import { Mcp } from "@daybook/mcp"
 * import { Effect } from "effect"
 *
 * // How the configured servers are, once each has connected or failed.
 * export const status = Effect.gen(function* () {
 *   const mcp = yield* Mcp.Mcp
 *   yield* mcp.ready
 *   return yield* mcp.status
 * })
 * ```
 */
export class Mcp extends Context.Tag("@daybook/mcp/Mcp")<Mcp, Service>() {}

const lostServer = (server: string, tool: string): string =>
  `MCP server "${server}" was lost and is being connected again; nothing was done. Call "${tool}" again later, or ` +
  "continue without it"

/** Says that a server is late; requests no longer wait for it. */
const reportLate = (supervised: Supervised) =>
  Effect.flatMap(supervised.status, (all) => {
    const now = all.get(supervised.name)
    if (now?.state !== "connecting") return Effect.void
    const details = `it has not answered within ${Duration.format(startWait)}`
    return report(supervised, { state: "connecting", tools: now.tools, details })
  })

const byName = (all: ReadonlyMap<string, McpStatus>): ReadonlyArray<McpStatus> =>
  [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1))

/** How long requests wait for servers whose tools are not known from an earlier start, from the start of the host. */
const startWait = Duration.seconds(3)

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
  const cache = ToolListing.make(options.tools)
  const supervised = servers.map(([name, server]): Supervised => ({
    name,
    server,
    names,
    host,
    status,
    connections,
    known,
    start,
    cache,
    waiting: { settled: Deferred.unsafeMake(FiberId.none) }
  }))
  // When the scope closes, all supervisors end at the same time.
  const fibers = yield* FiberSet.make()
  const unknown = yield* Effect.forEach(
    supervised,
    (each) =>
      Effect.gen(function* () {
        const tools = yield* OfferedTools.make(each)
        const listing = yield* cache.load(each.name, each.server)
        if (listing !== undefined) yield* report(each, { state: "connecting", tools: yield* tools.sync(listing) })
        yield* FiberSet.run(fibers, supervise(each, tools))
        return listing === undefined ? [each] : []
      }),
    { concurrency: "unbounded" }
  )
  if (supervised.length > 0) {
    const usable = yield* Deferred.make<void>()
    const use = Deferred.succeed(usable, undefined)
    yield* host.awaitBeforeUse(Deferred.await(usable))
    yield* Effect.forkScoped(Effect.zipRight(allSettled(unknown.flat()), use))
    yield* Effect.sleep(startWait).pipe(
      Effect.zipRight(Effect.forEach(supervised, reportLate, { discard: true })),
      Effect.zipRight(use),
      Effect.forkScoped
    )
  }

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
    return yield* using(known, (connection) =>
      Effect.timeoutFail(question(connection), {
        duration: callTimeout(known.server),
        onTimeout: () => refuse("timeout", "it did not answer in time")
      })
    ).pipe(
      Effect.catchTag("ServerFault", ({ details, reason }) =>
        refuse(reason === "unavailable" ? "unavailable" : "refused", details)
      )
    )
  })

  return Mcp.of({
    ready: settled(supervised),
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

/** Connects to the servers in the background and registers their tools and resources. No servers: no work. */
export const layer = (servers: McpServers, options: StartOptions = {}): Layer.Layer<Mcp, never, HostTools> =>
  Layer.provideMerge(layerResources, Layer.scoped(Mcp, make(servers, options)))

/**
 * Offers a server's tools in every Location, and runs their calls on its current connection. A tool stays registered
 * while it is unchanged, also when the list of the connection replaces the list of an earlier start. Spec: MC-7, MC-10,
 * MC-14, MC-20..MC-25, MC-38, MC-39, MC-541, MC-542, MC-685 in specs/tools.md.
 */
import { createHash } from "node:crypto"
import { Deferred, Duration, Effect, ExecutionStrategy, Exit, FiberId, Queue, Scope, SubscriptionRef } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import type { HostTools } from "@daybook/core/tool/HostTools"
import { fromJsonSchema, type ToolCall, type ToolDefinition } from "@daybook/core/tool/ToolDefinition"
import type { JsonRecord } from "@daybook/log/domain/Values"
import type { Connection } from "./Connection.ts"
import { readProgress, readResult, wordsOf } from "./Content.ts"
import { callTimeout, fingerprint, type McpServer, ServerFault, serverFingerprint } from "./McpServer.ts"
import { sanitise } from "./SafeSchema.ts"
import type { Start } from "./StartFolder.ts"
import type { ListedTool, Listing, ToolCache } from "./ToolListing.ts"

// Names a server's tools for providers: `<server>_<tool>`, in the characters and the length that every provider
// accepts, unique, and the same after every start.

const longest = 64
const hashLength = 8

/** Daybook's own names with a `_`: a server's tool must not have the name of such a tool or permission. */
const ours = new Set(["apply_patch", "external_directory"])

const hashed = (name: string, server: string, tool: string): string => {
  const hash = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, hashLength)
  return `${name.slice(0, longest - hashLength - 1)}_${hash}`
}

/**
 * A server's tools by offered name. Depends only on the configured servers and this server's tools, not on the order of
 * connections. A changed name, or one that another server's tool could have, gets a hash only if it would not be unique
 * without.
 */
export const offeredNames = (
  server: string,
  servers: ReadonlyArray<string>,
  tools: ReadonlyArray<string>
): ReadonlyMap<string, string> => {
  const plain = new Map(tools.map((tool) => [tool, `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_")]))
  const counts = new Map<string, number>()
  for (const name of plain.values()) counts.set(name, (counts.get(name) ?? 0) + 1)
  // `a` with `b_c` and `a_b` with `c` collide: the server with the longer name keeps its tools' names.
  const longer = servers.filter((other) => other.startsWith(`${server}_`))
  const names = new Map<string, string>()
  for (const [tool, name] of plain) {
    const exact = name === `${server}_${tool}`
    const shared = (counts.get(name) ?? 0) > 1 && !exact
    const foreign = ours.has(name) || longer.some((other) => name.startsWith(`${other}_`))
    names.set(shared || foreign || name.length > longest ? hashed(name, server, tool) : name, tool)
  }
  return names
}

// What is known of one server: its status, its connection, and the wait for them.

/** A server's status. */
export interface McpStatus {
  readonly name: string
  readonly state: "connecting" | "connected" | "failed"
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
  readonly known: Map<string, string>
  /** Where and how its process starts. */
  readonly start: Start
  readonly cache: ToolCache
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

/** Uses the connection. A request that a forgetful server refused is repeated once on the next connection. */
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

/** What else to say of a fault, by its reason. */
const after = {
  lost: "; the server is being connected again. Whether the call did anything is not known: look before you repeat it",
  forgotten: "; nothing was done",
  unavailable: "; nothing was done"
} as const

const failureOf = (server: string, offered: string, { details, reason }: ServerFault): ToolFailure =>
  new ToolFailure({
    type: "tool.execution",
    message: `tool "${offered}" of MCP server "${server}": ${details}${reason === undefined ? "" : after[reason]}`
  })

/** The registry's definition of one tool. `isCurrent`: whether the server still lists it like this. */
const definitionOf = (
  supervised: Supervised,
  offered: string,
  tool: ListedTool,
  isCurrent: () => boolean
): ToolDefinition => {
  const { name: server, server: configured } = supervised
  const timeout = callTimeout(configured)
  const { restoreInput, schema } = sanitise(tool.inputSchema)
  const definition = fingerprint({ server: serverFingerprint(configured), tool: tool.fingerprint })
  const execute = Effect.fn("Mcp.call")(function* (input: JsonRecord, call: ToolCall) {
    yield* Effect.annotateCurrentSpan({ "mcp.server": server, "tool.name": offered })
    // Reports that arrive faster than they are stored are dropped.
    const reports = yield* Queue.sliding<Parameters<typeof readProgress>[0]>(1)
    yield* Queue.take(reports).pipe(
      Effect.flatMap((report) => call.progress(readProgress(report))),
      Effect.forever,
      Effect.forkScoped
    )
    return yield* using(supervised, (connection) =>
      Effect.gen(function* () {
        // The call may have waited for a server that lists its tools differently now.
        if (!isCurrent()) {
          return yield* new ToolFailure({
            type: "tool.stale",
            message: `tool "${offered}" was withdrawn or replaced after it was offered; nothing was done`
          })
        }
        const result = yield* connection
          .callTool(tool.name, restoreInput(input), (progress) => void reports.unsafeOffer(progress))
          .pipe(
            Effect.timeoutFail({
              duration: timeout,
              onTimeout: () =>
                new ToolFailure({
                  type: "tool.timeout",
                  message: `MCP server "${server}" gave no result within ${Duration.format(timeout)}; the call was cancelled`
                })
            })
          )
        const { isError, output } = readResult(result)
        if (!isError) return output
        return yield* new ToolFailure({ type: "tool.execution", message: connection.redact(wordsOf(output)) })
      })
    ).pipe(Effect.catchTag("ServerFault", (fault) => failureOf(server, offered, fault)))
  }, Effect.scoped)
  return fromJsonSchema({
    name: offered,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: schema,
    authorize: (given) => {
      const input = restoreInput(given)
      return {
        resources: [JSON.stringify(input)],
        title: `Call ${offered} of MCP server "${server}"`,
        subject: { type: "mcp", server, tool: tool.name, input },
        // The same input rarely repeats, so "always" covers every input of the tool.
        always: ["*"],
        definition
      }
    },
    execute
  })
}

export interface OfferedTools {
  /** Offers these tools and no others. Returns how many. */
  readonly sync: (listing: Listing) => Effect.Effect<number>
  readonly withdrawAll: Effect.Effect<void>
}

/** The tools that are offered of one server, until the scope closes. */
export const make = Effect.fnUntraced(function* (supervised: Supervised) {
  const scope = yield* Effect.scope
  const registered = new Map<string, { readonly print: string; readonly scope: Scope.CloseableScope }>()
  const withdraw = (name: string) =>
    Effect.suspend(() => {
      const entry = registered.get(name)
      registered.delete(name)
      return entry === undefined ? Effect.void : Scope.close(entry.scope, Exit.void)
    })
  const sync = Effect.fnUntraced(function* (listing: Listing) {
    const byName = new Map(listing.tools.map((tool) => [tool.name, tool]))
    const names = offeredNames(supervised.name, supervised.names, [...byName.keys()])
    for (const [name, server] of supervised.known) {
      if (server === supervised.name && !names.has(name)) supervised.known.delete(name)
    }
    for (const name of names.keys()) supervised.known.set(name, supervised.name)
    for (const name of [...registered.keys()].filter((each) => !names.has(each))) yield* withdraw(name)
    for (const [name, own] of names) {
      const tool = byName.get(own)
      const print = fingerprint(tool)
      if (tool === undefined || registered.get(name)?.print === print) continue
      const lifetime = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const definition = definitionOf(supervised, name, tool, () => registered.get(name)?.print === print)
      yield* Scope.extend(supervised.host.register([definition]), lifetime)
      // The new definition already overlays the old one, so the tool is never missing.
      yield* withdraw(name)
      registered.set(name, { print, scope: lifetime })
    }
    return registered.size
  }, Effect.uninterruptible)
  return {
    sync,
    withdrawAll: Effect.uninterruptible(
      Effect.suspend(() => Effect.forEach([...registered.keys()], withdraw, { discard: true }))
    )
  } satisfies OfferedTools
})

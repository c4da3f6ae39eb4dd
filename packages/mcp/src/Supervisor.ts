/**
 * Keeps one server connected: connects, registers its tools while it is connected, and reconnects after a fault with
 * growing pauses. Supervisors do not affect each other. Spec: MC-5, MC-7..MC-14, MC-20..MC-25.
 *
 *   connecting -> connected -> (lost: tools withdrawn) -> failed -> (pause) -> connected ...
 *        \-------------------------------------------------^
 */
import {
  Clock,
  Deferred,
  Duration,
  Effect,
  ExecutionStrategy,
  Exit,
  Fiber,
  Queue,
  Schedule,
  Scope,
  SubscriptionRef
} from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { fingerprint } from "@daybook/core/support/Fingerprint"
import type { HostTools } from "@daybook/core/tool/HostTools"
import { fromJsonSchema, type ToolCall, type ToolDefinition } from "@daybook/core/tool/ToolDefinition"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { connect, type Connection } from "./Connection.ts"
import { readProgress, readResult, wordsOf } from "./Content.ts"
import { callTimeout, inSentence, type McpServer, redactor, serverFingerprint } from "./McpServer.ts"
import { ServerFault } from "./ServerFault.ts"
import type { Start } from "./StartFolder.ts"
import { describeLeftOut, type ListedTool, type Listing } from "./ToolListing.ts"
import { offeredNames } from "./ToolNames.ts"
import * as Transports from "./Transports.ts"

/** A server's status. */
export interface McpStatus {
  readonly name: string
  readonly state: "connecting" | "connected" | "failed"
  /** Why it failed, or which of its tools are not offered. */
  readonly details?: string
  /** Number of tools that it offers now. */
  readonly tools: number
}

/** A supervisor's input. */
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
  /** Completes when the server has connected or failed for the first time. */
  readonly settled: Deferred.Deferred<void>
  /** Where and how its process starts. */
  readonly start: Start
}

/** Time limit of connecting and the first list together, and of each later list. */
export const connectTimeout = Duration.seconds(10)

const late = (lastWords: () => string) => ({
  duration: connectTimeout,
  onTimeout: () =>
    new ServerFault({ details: `it did not answer within ${Duration.format(connectTimeout)}${lastWords()}` })
})

/** 1, 2, 4 ... seconds, at most a minute, for ever: a server may return at any time. */
const pauses = Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("1 minute"))

/** A connection of this length resets the pauses. */
const steady = Duration.toMillis("1 minute")

/** The registry's definition of one tool. */
const definitionOf = (
  { name: server, server: configured }: Supervised,
  connection: Connection,
  offered: string,
  tool: ListedTool
): ToolDefinition => {
  const timeout = callTimeout(configured)
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
    const result = yield* connection
      .callTool(tool.name, input, (progress) => void reports.unsafeOffer(progress))
      .pipe(
        Effect.mapError(
          ({ details, lost }) =>
            new ToolFailure({
              type: "tool.execution",
              message:
                `tool "${offered}" of MCP server "${server}": ${details}` +
                (lost === true
                  ? "; the server is being connected again. Whether the call did anything is not known: look before you repeat it"
                  : "")
            })
        ),
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
  }, Effect.scoped)
  return fromJsonSchema({
    name: offered,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: tool.parameters,
    authorize: (input) => ({
      resources: [JSON.stringify(input)],
      title: `Call ${offered} of MCP server "${server}"`,
      subject: { type: "mcp", server, tool: tool.name, input },
      // The same input rarely repeats, so "always" covers every input of the tool.
      always: ["*"],
      definition
    }),
    execute
  })
}

/** The registered tools of one connection. A new listing does not touch unchanged tools. */
const makeTools = Effect.fnUntraced(function* (supervised: Supervised, connection: Connection) {
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
      const print = JSON.stringify(tool)
      if (tool === undefined || registered.get(name)?.print === print) continue
      const lifetime = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      yield* Scope.extend(supervised.host.register([definitionOf(supervised, connection, name, tool)]), lifetime)
      // The new definition already overlays the old one, so the tool is never missing.
      yield* withdraw(name)
      registered.set(name, { print, scope: lifetime })
    }
    return registered.size
  }, Effect.uninterruptible)
  return { sync }
})

/** Updates the status; logs details that changed. */
const report = Effect.fnUntraced(function* ({ name, settled, status }: Supervised, now: Omit<McpStatus, "name">) {
  const before = yield* SubscriptionRef.getAndUpdate(status, (all) => new Map(all).set(name, { name, ...now }))
  yield* Deferred.succeed(settled, undefined)
  if (now.details !== undefined && before.get(name)?.details !== now.details) {
    const log = now.state === "failed" ? Effect.logWarning : Effect.logInfo
    yield* log(`MCP server "${name}" (${now.state}): ${now.details}`)
  }
})

/** Connects and lists the tools. The connection lives in the caller's scope, also on failure. */
const open = Effect.fnUntraced(function* ({ server, start }: Supervised) {
  const redact = redactor(server)
  const way = yield* Transports.open(yield* start(server), redact)
  return yield* Effect.gen(function* () {
    const connection = yield* connect(server, way, redact)
    return { connection, listing: yield* connection.listTools }
  }).pipe(Effect.timeoutFail(late(way.lastWords)))
})

/** Offers the tools of a connection until it is lost, and lists them again when the server announces a change. */
const serve = Effect.fnUntraced(function* (supervised: Supervised, connection: Connection, listing: Listing) {
  const { connections, name } = supervised
  yield* Effect.acquireRelease(
    Effect.sync(() => connections.set(name, connection)),
    () => Effect.sync(() => connections.delete(name))
  )
  const tools = yield* makeTools(supervised, connection)
  const show = Effect.fnUntraced(function* (listed: Listing) {
    const details = describeLeftOut(listed)
    const count = yield* tools.sync(listed)
    yield* report(supervised, { state: "connected", tools: count, ...(details === undefined ? {} : { details }) })
  })
  yield* show(listing)
  const follow = Effect.zipRight(
    connection.changed,
    Effect.timeoutFail(
      connection.listTools,
      late(() => "")
    )
  ).pipe(
    Effect.flatMap(show),
    // The tools do not change; `lost` detects the loss of the server.
    Effect.catchAll(({ details }) =>
      Effect.logWarning(`MCP server "${name}": its tools could not be listed again: ${details}`)
    ),
    Effect.forever
  )
  return yield* Effect.raceFirst(connection.lost, follow)
}, Effect.scoped)

const failed = (supervised: Supervised) => (fault: ServerFault) =>
  report(supervised, { state: "failed", details: fault.details, tools: 0 })

/** One connection, from connecting to its loss. */
const attempt = Effect.fn("Mcp.attempt")(function* (supervised: Supervised) {
  // Reported immediately: closing an unresponsive server may take seconds, and a caller may be waiting.
  const { connection, listing } = yield* Effect.tapError(open(supervised), failed(supervised))
  return yield* serve(supervised, connection, listing)
}, Effect.scoped)

/** One attempt; every failure, defects included, is reported. */
const attempted = (supervised: Supervised) =>
  attempt(supervised).pipe(
    Effect.catchAllDefect((defect) => {
      const reason = defect instanceof Error ? inSentence(defect.message) : "unknown fault"
      return new ServerFault({ details: `its connection failed unexpectedly: ${reason}` })
    }),
    Effect.catchAll(failed(supervised))
  )

/**
 * Keeps the server connected until it is interrupted. Each attempt runs in a fiber of its own: a fiber can lose an
 * interrupt that arrives while a finalizer of its outer scope waits (the library restores the earlier references,
 * including the interrupt), and would then continue for ever.
 */
export const supervise = Effect.fnUntraced(function* (supervised: Supervised) {
  const pause = yield* Schedule.driver(pauses)
  for (;;) {
    const began = yield* Clock.currentTimeMillis
    yield* Effect.acquireUseRelease(
      Effect.fork(Effect.interruptible(attempted(supervised))),
      Fiber.join,
      Fiber.interrupt
    )
    if ((yield* Clock.currentTimeMillis) - began >= steady) yield* pause.reset
    yield* Effect.ignore(pause.next(undefined))
  }
})

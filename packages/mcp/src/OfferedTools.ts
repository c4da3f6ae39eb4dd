/**
 * Offers a server's tools in every Location, and runs their calls on its current connection. A tool stays registered while it
 * is unchanged, also from the list of an earlier start to that of the connection. Spec: MC-14, MC-20..MC-25, MC-541, MC-685.
 */
import { Duration, Effect, ExecutionStrategy, Exit, Queue, Scope } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { fingerprint } from "@daybook/core/support/Fingerprint"
import { fromJsonSchema, type ToolCall, type ToolDefinition } from "@daybook/core/tool/ToolDefinition"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { readProgress, readResult, wordsOf } from "./Content.ts"
import { callTimeout, serverFingerprint } from "./McpServer.ts"
import type { ServerFault } from "./ServerFault.ts"
import { type Supervised, using } from "./Supervised.ts"
import { sanitise } from "./SafeSchema.ts"
import type { ListedTool, Listing } from "./ToolListing.ts"
import { offeredNames } from "./ToolNames.ts"

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

/**
 * Rehearses a prompt in a folder: it assembles the next request of a session in memory and sends it nowhere. The warnings of
 * the runtime meanwhile (unusable instructions, agents, templates, skills) are the report. Spec: CL-93 in specs/cli.md.
 */
import { Effect, HashMap, Layer, Logger, LogLevel, Struct } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import { findProgram as findSandbox } from "@daybook/core/child/Sandbox"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Daybook from "@daybook/embedded/Daybook"
import { Mcp, type McpStatus } from "@daybook/mcp/Mcp"
import { OfflineModel } from "@daybook/models"
import type * as Config from "../config/Config.ts"
import * as Configuration from "../config/Configuration.ts"
import type { Check } from "./Checkup.ts"
import { serverStart } from "./Host.ts"
import * as Trusting from "./Trusting.ts"

/** Any model will do: it is never called. */
const anyModel = Layer.succeed(ModelResolver, ModelResolver.of({ resolve: () => OfflineModel.resolved }))

const words = (message: unknown): string => (Array.isArray(message) ? message.map(String).join(" ") : String(message))

const serverCheck = ({ details, name, state, tools }: McpStatus): Check => {
  const about = `mcp ${name}`
  const said = details === undefined ? "" : `: ${details}`
  return state === "connected"
    ? { about, verdict: details === undefined ? "ok" : "warning", says: `connected, ${tools} tools${said}` }
    : { about, verdict: "error", says: `${state}${said}` }
}

/** Checks the configuration file and reports its faults. */
export const configuration = Effect.gen(function* () {
  const { file } = yield* Configuration.places
  const about = "config"
  const exposed = yield* Effect.orElseSucceed(Configuration.exposedKeys, () => undefined)
  return yield* Effect.match(Configuration.read, {
    onFailure: (error) => ({
      settings: undefined,
      checks:
        error._tag === "UsageError"
          ? [{ about, verdict: "error", says: error.message } satisfies Check]
          : error.message.split("\n").map((says): Check => ({ about, verdict: "error", says }))
    }),
    onSuccess: (settings) => ({
      settings,
      checks: [
        exposed === undefined
          ? ({ about, verdict: "ok", says: file } satisfies Check)
          : ({ about, verdict: "warning", says: exposed } satisfies Check)
      ]
    })
  })
})

/** Checks that the configured sandbox can be created. */
const sandbox = ({
  mcp = {},
  sandbox: settings = {}
}: Configuration.Configured): Effect.Effect<ReadonlyArray<Check>> => {
  const asked = [settings, ...Object.values(mcp).map((server) => ("sandbox" in server ? server.sandbox : undefined))]
  return asked.some((each) => each?.mode === "on")
    ? Effect.match(findSandbox(settings), {
        onFailure: ({ message }): ReadonlyArray<Check> => [{ about: "sandbox", verdict: "error", says: message }],
        onSuccess: (program) => [{ about: "sandbox", verdict: "ok", says: `${program} can create sandboxes` }]
      })
    : Effect.succeed([])
}

/** Lists the configured MCP servers without starting them. */
const named = (mcp: Config.Settings["mcp"]): ReadonlyArray<Check> => {
  const names = Object.keys(mcp ?? {})
  return names.length === 0
    ? []
    : [{ about: "mcp", verdict: "ok", says: `${names.join(", ")}: not started; daybook doctor --mcp checks them` }]
}

/** Rehearses a prompt in the folder; with `servers`, MCP servers are started and asked for their tools. */
export const rehearse = (
  directory: string,
  configured: Configuration.Configured,
  servers: boolean
): Effect.Effect<ReadonlyArray<Check>> => {
  const { mcp = {}, ...settings } = configured
  const warnings: Array<Check> = []
  const gather = Logger.make(({ annotations, logLevel, message }) => {
    // Each server has a check of its own.
    if (LogLevel.greaterThanEqual(logLevel, LogLevel.Warning) && !HashMap.has(annotations, "server")) {
      warnings.push({ about: "context", verdict: "warning", says: words(message) })
    }
  })
  return Effect.gen(function* () {
    const sessions = yield* Sessions
    const agents = yield* Agents
    const { id: sessionID } = yield* sessions.create({ location: { directory } })
    // A missing template makes the runtime read all of them.
    yield* sessions.prompt({ sessionID, prompt: { text: "/daybook-doctor" }, resume: false })
    const { estimate, frame } = yield* sessions.request({ sessionID })
    const connected = yield* Mcp
    const status = servers ? yield* Effect.zipRight(connected.ready, connected.status) : []
    const known = yield* agents.list({ directory })
    const { standing } = yield* (yield* Trusting.storeOf(settings)).report(directory)
    const trusted = standing.state === "trusted"
    return [
      {
        about: "trust",
        verdict: trusted ? "ok" : "warning",
        says: `the project is ${standing.state}: ${standing.why}`,
        ...(trusted ? {} : { fix: "daybook trust shows what it brings, daybook trust grant trusts it" })
      },
      {
        about: "context",
        verdict: "ok",
        says: `a prompt in ${directory} begins with ${estimate.system + estimate.tools} tokens: ${frame.system.length} system texts, ${frame.tools.length} tools`
      },
      { about: "agents", verdict: "ok", says: known.map(({ name }) => name).join(", ") },
      ...(yield* sandbox(configured)),
      ...(servers ? status.map(serverCheck) : named(mcp))
    ] satisfies ReadonlyArray<Check>
  }).pipe(
    Effect.provide(
      Layer.unwrapEffect(
        Effect.map(Trusting.storeOf(settings), (trust) =>
          Daybook.layer({
            filename: ":memory:",
            ...Struct.omit(settings, "literalKeys", "providers", "shared", "shell", "trust"),
            trust,
            mcp: servers ? mcp : {},
            serverStart: serverStart()
          })
        )
      ).pipe(Layer.provide(anyModel))
    ),
    Effect.catchAll(({ message }) => Effect.succeed([{ about: "context", verdict: "error", says: message } as const])),
    Effect.map((checks) => [...checks, ...warnings]),
    Effect.provide(Layer.mergeAll(Logger.add(gather), Logger.minimumLogLevel(LogLevel.Warning)))
  )
}

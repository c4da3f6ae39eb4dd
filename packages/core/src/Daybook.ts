/** The embedded runtime: all of `@daybook/core` as one layer. Spec: specs/architecture.md. */
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import type { SqlClient } from "@effect/sql"
import { dirname, join, resolve } from "node:path"
import { Effect, Layer } from "effect"
import * as Agents from "./agent/Agents.ts"
import * as ChildEnvironment from "./child/ChildEnvironment.ts"
import type { EnvironmentGrants } from "./child/ChildEnvironment.ts"
import * as Sandbox from "./child/Sandbox.ts"
import type { SandboxSettings } from "./child/Sandbox.ts"
import * as Compaction from "./compaction/Compaction.ts"
import type { CompactionSettings } from "./compaction/Limits.ts"
import * as Templates from "./config/Templates.ts"
import * as ContextEpoch from "./context/ContextEpoch.ts"
import * as ContextRegistry from "./context/ContextRegistry.ts"
import * as ContextSettings from "./context/ContextSettings.ts"
import * as InstructionDiscovery from "./context/InstructionDiscovery.ts"
import * as Skills from "./context/Skills.ts"
import * as Identifiers from "./Identifiers.ts"
import type { SessionID } from "./Identifiers.ts"
import type { Projector } from "./log/Appends.ts"
import type { EventLog } from "./log/EventLog.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as Mcp from "./mcp/Mcp.ts"
import { ModelResolver, withPrices } from "./model/ModelResolver.ts"
import * as Permission from "./permission/Permission.ts"
import { layerHeadless, type PermissionAsker } from "./permission/PermissionAsker.ts"
import * as SessionApprovals from "./permission/SessionApprovals.ts"
import type { PermissionStore } from "./permission/PermissionStore.ts"
import * as SqlPermissionStore from "./permission/SqlPermissionStore.ts"
import * as HostRequests from "./request/HostRequests.ts"
import * as PromptExpander from "./prompt/PromptExpander.ts"
import * as ResourceReader from "./prompt/ResourceReader.ts"
import * as SessionRunner from "./runner/SessionRunner.ts"
import * as ChildSessions from "./session/ChildSessions.ts"
import * as Lineage from "./session/Lineage.ts"
import * as Questions from "./session/Questions.ts"
import * as SessionExecution from "./session/SessionExecution.ts"
import * as SessionInput from "./session/SessionInput.ts"
import * as SessionOwner from "./session/SessionOwner.ts"
import * as SessionsLayer from "./session/SessionsLayer.ts"
import { deepestFamily } from "./session/Family.ts"
import { Sessions } from "./session/Sessions.ts"
import type { Budget, Price } from "./session/Schemas.ts"
import * as SessionStore from "./session/SessionStore.ts"
import type { StoreError } from "./session/StoreError.ts"
import * as Database from "./storage/Database.ts"
import { ProjectTrust, trustAll, type Trust } from "./trust/ProjectTrust.ts"
import * as SessionTools from "./tool/builtin/SessionTools.ts"
import * as HostTools from "./tool/HostTools.ts"
import * as References from "./tool/References.ts"
import * as ToolOutputStore from "./tool/ToolOutputStore.ts"
import * as ToolRegistry from "./tool/ToolRegistry.ts"

/** Options of the runtime. Only `filename` is required. */
export interface Options {
  /** Path of the database, or `:memory:` for a store that ends with the layer. */
  readonly filename: string
  /** Further agents besides `build`. */
  readonly agents?: ReadonlyArray<Agents.Agent>
  /** Answers permission questions. By default no one does: a call that needs a question is refused. */
  readonly permissionAsker?: Layer.Layer<PermissionAsker>
  /**
   * Whether the host answers the models' questions (`Sessions.questions`). By default models do not get the `question`
   * tool.
   */
  readonly questions?: boolean
  /** How deep sessions may start sessions with `task`. Default: 3. 0 disables it. */
  readonly taskDepth?: number
  /** When and how much to compact. Omitted fields have their defaults (16,384 tokens reserved, 20,000 kept). */
  readonly compaction?: Partial<CompactionSettings>
  /** The total budget of a session and its children, unless the session has its own. */
  readonly budget?: Budget
  /**
   * Prices by `provider/model`; they take precedence over the resolver's. Without a price, cost budgets are refused.
   */
  readonly prices?: Readonly<Record<string, Price>>
  /** Maximum number of waiting inputs per session. Default: 1,000; minimum: 1. */
  readonly inboxLimit?: number
  /**
   * Maximum number of steers promoted at one safe boundary. Default: 100; minimum: 1. The rest follow at the next
   * boundary.
   */
  readonly steerBatchLimit?: number
  /**
   * The folder for the full text of truncated tool outputs. Default: beside the database; for `:memory:`, a temporary
   * folder. False: they are not kept, and the truncated output says so.
   */
  readonly toolOutputs?: string | false
  /**
   * What to do at startup with work of dead processes. `manual` (default): nothing, so that nothing is spent unasked;
   * `Sessions.interrupted` and `Sessions.waiting` list it. `resume`: continues interrupted activities and runs every
   * waiting prompt, including those admitted with `resume: false`.
   */
  readonly recovery?: "manual" | "resume"
  /**
   * How long an owner that stopped renewing its lease keeps its sessions, in milliseconds. Default: 15,000; range:
   * 1,000 to 60,000. A process of this machine that is known to be dead keeps none.
   */
  readonly leaseMs?: number
  /** Read models of other packages, written in each append's transaction. */
  readonly projectors?: ReadonlyArray<Projector>
  /** The user's folder, with `AGENTS.md` and `skills/`. By default no user files are read. */
  readonly userFolder?: string
  /** Further instructions: files, globs, and http(s) URLs. */
  readonly instructions?: ReadonlyArray<string>
  /** Further folders of skills. */
  readonly skills?: ReadonlyArray<string>
  /** Folders and files outside the Location. Prompts mention them as `@name`; `read` reads them as `name:path`. */
  readonly references?: References.WrittenReferences
  /** MCP servers by name. Models get their tools, and prompts mention their resources as `@name:uri`. */
  readonly mcp?: Mcp.McpServers
  /** Names of environment variables that children inherit, besides a few harmless ones. */
  readonly environment?: EnvironmentGrants
  /**
   * How MCP servers without `cwd` start. `folder`: the working directory, kept empty; default: `mcp` beside the
   * database, a temporary folder for `:memory:`. `path`: their `PATH`; default: this process's.
   */
  readonly serverStart?: Mcp.StartOptions
  /**
   * Which projects are trusted: whether their configuration and saved approvals apply. Default: `trustAll`, for
   * applications that create their sessions' folders. An application that works in other people's folders passes
   * `TrustStore.make` or its own rule.
   */
  readonly trust?: Trust
  /** How commands and MCP servers are sandboxed. Default: not at all. */
  readonly sandbox?: SandboxSettings
  /** Texts that prompts insert as `/name`. */
  readonly templates?: ReadonlyArray<Templates.Template>
  /**
   * Whether a project's instructions and skills are read. Default: true, unless DAYBOOK_DISABLE_PROJECT_CONFIG is set.
   */
  readonly projectConfig?: boolean
}

/** The services of the layer. Log, stores and connections are for readers and for projectors' tables. */
export type Services =
  | Sessions
  | HostTools.HostTools
  | HostRequests.HostRequests
  | Mcp.Mcp
  | ContextRegistry.HostContext
  | ContextSettings.ContextSettings
  | EventLog
  | Agents.Agents
  | Identifiers.Identifiers
  | PermissionStore
  | SessionExecution.SessionExecution
  | SessionOwner.SessionOwner
  | SessionStore.SessionStore
  | SqlClient.SqlClient
  | Database.ReadSql

/** A private temporary folder, removed with the layer. */
const temporaryFolder = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  Effect.acquireRelease(
    Effect.mapError(
      fs.makeTempDirectory({ prefix: "daybook-" }),
      ({ message }) =>
        new Database.DatabaseError({
          filename: ":memory:",
          reason: "cannot-open",
          details: `no temporary folder could be made for tool outputs: ${message}`
        })
    ),
    (folder) => Effect.ignore(fs.remove(folder, { recursive: true, force: true }))
  )
)

/** The folder for outputs; undefined for a temporary one. */
const outputsFolder = ({ filename, toolOutputs }: Options): string | undefined => {
  if (typeof toolOutputs === "string") return toolOutputs
  return filename === ":memory:" ? undefined : join(dirname(filename), "tool-output")
}

const outputs = (options: Options) => {
  if (options.toolOutputs === false) return ToolOutputStore.layerNothing
  const root = outputsFolder(options)
  return root === undefined
    ? Layer.unwrapScoped(Effect.map(temporaryFolder, (root) => ToolOutputStore.layer({ root })))
    : ToolOutputStore.layer({ root })
}

/** The sandbox of child processes; it hides this runtime's files from them. */
const sandbox = (options: Options) => {
  const { filename, sandbox: settings = {}, userFolder } = options
  const own = filename === ":memory:" ? [] : ["", "-wal", "-shm", "-journal"].map((end) => resolve(`${filename}${end}`))
  const folders = [outputsFolder(options), userFolder]
  const hidden = [...own, ...folders.flatMap((name) => (name === undefined ? [] : [resolve(name)]))]
  return Sandbox.layer({ ...settings, hidden: [...hidden, ...(settings.hidden ?? [])] })
}

/** Registers MCP tools as host tools. */
const servers = (options: Options) => {
  const { filename, mcp = {}, serverStart } = options
  const folder = filename === ":memory:" ? undefined : join(dirname(filename), "mcp")
  return Layer.provide(Mcp.layer(mcp, { folder, ...serverStart }), [HostTools.layer, sandbox(options)])
}

/** Expands prompts with the templates of host, user and project, and the servers' resources. */
const expander = (options: Options, mcp: ReturnType<typeof servers>) =>
  PromptExpander.layer.pipe(
    Layer.provide(
      Layer.unwrapEffect(
        Effect.map(ContextSettings.ContextSettings, ({ projectConfig, userFolder }) =>
          Templates.layer({ templates: options.templates, userFolder, projectConfig })
        )
      )
    ),
    Layer.provide([
      ContextSettings.layer(options),
      References.layer(options.references),
      Layer.provide(ResourceReader.layer, mcp)
    ])
  )

/** Agents of the host, the user's folder and the projects. */
const agents = (options: Options) =>
  Layer.unwrapEffect(
    Effect.map(ContextSettings.ContextSettings, ({ projectConfig, userFolder }) =>
      Agents.layer({ agents: options.agents, userFolder, projectConfig })
    )
  ).pipe(Layer.provide(ContextSettings.layer(options)))

/** Built once per Location, when a drain first enters it. */
const locationLayer = (options: Options) =>
  SessionRunner.layer({
    steerBatchLimit: SessionStore.pageLimit(options.steerBatchLimit, 100, Number.MAX_SAFE_INTEGER),
    budget: options.budget ?? {}
  }).pipe(
    Layer.provide([ToolRegistry.layer, ContextRegistry.layer]),
    Layer.provide(SessionTools.layer({ questions: options.questions === true, taskDepth: taskDepth(options) })),
    Layer.provide([Permission.layer, InstructionDiscovery.layer, Skills.layer]),
    Layer.provide([References.layer(options.references), ChildEnvironment.layer(options.environment), sandbox(options)])
  )

/** Limits the depth to that of the deepest family. */
const taskDepth = ({ taskDepth: depth = 3 }: Options) => Math.max(0, Math.min(Math.trunc(depth), deepestFamily))

/** Maximum number of sessions resumed at the same time after startup. */
const resumedAtOnce = 16

/** Runs in the background: it can take a lease's time to find out whether an owner is alive. */
const resumeLeft = Layer.scopedDiscard(
  Effect.gen(function* () {
    const [sessions, execution, store] = [
      yield* Sessions,
      yield* SessionExecution.SessionExecution,
      yield* SessionStore.SessionStore
    ]
    const cutOff = yield* sessions.interrupted
    const waiting = yield* sessions.waiting
    const left = new Map<SessionID, Effect.Effect<void, unknown>>()
    for (const { id } of waiting) left.set(id, Effect.zipRight(execution.wake(id), execution.settled(id)))
    for (const { id } of cutOff) left.set(id, sessions.resume(id))
    // The session's living owner may have read the inbox for the last time; this wake runs after the owner ends.
    for (const { id } of yield* store.withWaiting) if (!left.has(id)) yield* execution.wake(id)
    yield* Effect.forEach(left, ([, goOn]) => Effect.ignoreLogged(goOn), {
      concurrency: resumedAtOnce,
      discard: true
    })
  }).pipe(
    Effect.catchAllCause((cause) => Effect.logError("resuming the work of dead processes failed", cause)),
    Effect.forkScoped
  )
)

/**
 * The runtime on one database: `Sessions`, `EventLog`, and the services that a host extends (`HostTools`,
 * `HostContext`). It requires a `ModelResolver`: `Models.layer` of `@daybook/models`, or `layerLanguageModel` around
 * your own LanguageModel. Closing the layer interrupts running work, settles it, and closes the database.
 *
 * @example
 * ```ts
 * Daybook.layer({ filename: "daybook.sqlite" }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const layer = (options: Options): Layer.Layer<Services, Database.DatabaseError | StoreError, ModelResolver> => {
  const storage = Layer.mergeAll(
    Database.layer({ filename: options.filename }),
    Identifiers.layer,
    agents(options),
    NodeContext.layer
  )
  // Shared values: a layer used by reference is built once.
  const mcp = servers(options)
  const eventLog = SqlEventLog.layer({ projectors: options.projectors ?? [] })
  const records = Layer.mergeAll(
    mcp,
    eventLog,
    SessionStore.layer,
    SessionOwner.layer(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
    HostTools.layer,
    ContextRegistry.layerHost,
    ContextSettings.layer(options),
    HostRequests.layer,
    expander(options, mcp),
    Layer.provide(SqlPermissionStore.layer, eventLog),
    Layer.provide(SessionApprovals.layer, eventLog),
    options.permissionAsker ?? layerHeadless,
    outputs(options)
  )
  const sessions = ChildSessions.attached.pipe(
    Layer.provideMerge(SessionsLayer.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        SessionExecution.layer(locationLayer(options)),
        SessionInput.layer({ inboxLimit: SessionStore.pageLimit(options.inboxLimit, 1_000, Number.MAX_SAFE_INTEGER) })
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        Compaction.layer(options.compaction),
        ContextEpoch.layer,
        Questions.layer,
        ChildSessions.layer,
        Lineage.layer({ taskDepth: taskDepth(options) })
      )
    ),
    Layer.provideMerge(records),
    Layer.provideMerge(storage)
  )
  const all = options.recovery === "resume" ? Layer.provideMerge(resumeLeft, sessions) : sessions
  const { prices, trust = trustAll } = options
  // Every service takes it when it is built, including those of each Location.
  const trusting = Layer.provide(all, Layer.succeed(ProjectTrust, trust))
  if (prices === undefined) return trusting
  return Layer.provide(
    trusting,
    Layer.effect(
      ModelResolver,
      Effect.map(ModelResolver, (own) => withPrices(own, prices))
    )
  )
}

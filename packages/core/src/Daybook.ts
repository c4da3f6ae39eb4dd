/** The embedded runtime: everything of `@daybook/core` as one layer. Spec: specs/architecture.md. */
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

/** What a host chooses. Only the database is needed. */
export interface Options {
  /** The database: a path, or `:memory:` for a store that ends with the layer. */
  readonly filename: string
  /** Agents beside `build`. */
  readonly agents?: ReadonlyArray<Agents.Agent>
  /** Who answers permission questions. Nobody by default: what needs a question is refused. */
  readonly permissionAsker?: Layer.Layer<PermissionAsker>
  /** Whether somebody answers what models ask (`Sessions.questions`); without, they are not offered `question`. */
  readonly questions?: boolean
  /** How deep sessions may start sessions with `task`; 3 by default, 0 for not at all. */
  readonly taskDepth?: number
  /** When and how much is compacted; what is left out is as the seed has it (16,384 reserved, 20,000 kept). */
  readonly compaction?: Partial<CompactionSettings>
  /** What a session and its children may spend in all, where the session has no limit of its own. */
  readonly budget?: Budget
  /** Prices by `provider/model`, before those of the resolver: without a price, budgets of cost are refused. */
  readonly prices?: Readonly<Record<string, Price>>
  /** Inputs that may wait in one session; 1,000 by default, 1 at least. */
  readonly inboxLimit?: number
  /** Steers that become visible at one safe boundary; 100 by default, 1 at least, the rest follow at the next. */
  readonly steerBatchLimit?: number
  /**
   * Where the whole of cut tool outputs is kept; beside the database by default, for as long as it for `:memory:`.
   * False: nothing of them is, and what is cut says so.
   */
  readonly toolOutputs?: string | false
  /**
   * What to do at the start with what dead processes left. `manual`: nothing, so that nothing is spent unasked;
   * `Sessions.interrupted` and `Sessions.waiting` list it. `resume`: activities that were cut off go on, and every prompt
   * that waits is run, those admitted with `resume: false` too.
   */
  readonly recovery?: "manual" | "resume"
  /**
   * How long an owner that no longer renews its lease keeps its sessions, in milliseconds: 15,000 by default, 1,000 to
   * 60,000. A process that is known to be gone on this machine keeps nothing.
   */
  readonly leaseMs?: number
  /** Read models of other packages, written in the transaction of each append. */
  readonly projectors?: ReadonlyArray<Projector>
  /** The user's own folder, with `AGENTS.md` and `skills/`; without it, nothing of the user's is read. */
  readonly userFolder?: string
  /** Further instructions: files, globs, and http(s) URLs. */
  readonly instructions?: ReadonlyArray<string>
  /** Further folders of skills. */
  readonly skills?: ReadonlyArray<string>
  /** Folders and files outside the Location that prompts mention as `@name` and `read` reads as `name:path`. */
  readonly references?: References.WrittenReferences
  /** MCP servers by name: their tools are offered, and prompts mention their resources as `@name:uri`. */
  readonly mcp?: Mcp.McpServers
  /** Variables of this process's environment that children get by name, besides a few harmless ones. */
  readonly environment?: EnvironmentGrants
  /**
   * How MCP servers without `cwd` start. `folder`: where, `mcp` beside the database by default, a temporary one for
   * `:memory:`; it is kept empty. `path`: their `PATH`, this process's own by default.
   */
  readonly serverStart?: Mcp.StartOptions
  /**
   * Whose projects count: what they bring, and what was allowed in them. `trustAll` by default, for applications that made
   * the folders of their sessions; one that works in folders of others gives `TrustStore.make`, or a rule of its own.
   */
  readonly trust?: Trust
  /** How commands and MCP servers are confined; not at all by default. */
  readonly sandbox?: SandboxSettings
  /** Texts that prompts call as `/name`. */
  readonly templates?: ReadonlyArray<Templates.Template>
  /** Whether a project's own instructions and skills are read; true unless DAYBOOK_DISABLE_PROJECT_CONFIG is set. */
  readonly projectConfig?: boolean
}

/** What the layer offers. The log, the stores and the connections are there for readers and for projectors' tables. */
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

/** A folder of nobody else's, that goes with the layer. */
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

/** Where outputs are kept; undefined for a temporary folder. */
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

/** The sandbox of children; of this runtime's own files they see nothing. */
const sandbox = (options: Options) => {
  const { filename, sandbox: settings = {}, userFolder } = options
  const own = filename === ":memory:" ? [] : ["", "-wal", "-shm", "-journal"].map((end) => resolve(`${filename}${end}`))
  const folders = [outputsFolder(options), userFolder]
  const hidden = [...own, ...folders.flatMap((name) => (name === undefined ? [] : [resolve(name)]))]
  return Sandbox.layer({ ...settings, hidden: [...hidden, ...(settings.hidden ?? [])] })
}

/** Their tools are the host's. */
const servers = (options: Options) => {
  const { filename, mcp = {}, serverStart } = options
  const folder = filename === ":memory:" ? undefined : join(dirname(filename), "mcp")
  return Layer.provide(Mcp.layer(mcp, { folder, ...serverStart }), [HostTools.layer, sandbox(options)])
}

/** Prompts are expanded with the templates of the host, its user and the project, and the servers' resources. */
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

/** Deeper than a family may be is as deep as that. */
const taskDepth = ({ taskDepth: depth = 3 }: Options) => Math.max(0, Math.min(Math.trunc(depth), deepestFamily))

/** Sessions that go on at the same time after a start. */
const resumedAtOnce = 16

/** In the background: whether an owner lives may take a lease to know. */
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
    // Where a living process works, it may have looked at the inbox for the last time: the wake waits for its end.
    for (const { id } of yield* store.withWaiting) if (!left.has(id)) yield* execution.wake(id)
    yield* Effect.forEach(left, ([, goOn]) => Effect.ignoreLogged(goOn), {
      concurrency: resumedAtOnce,
      discard: true
    })
  }).pipe(
    Effect.catchAllCause((cause) => Effect.logError("what dead processes left could not be taken up", cause)),
    Effect.forkScoped
  )
)

/**
 * The runtime on one database: `Sessions`, `EventLog`, and the services that a host extends (`HostTools`,
 * `HostContext`). It needs a `ModelResolver`: `Models.layer` of `@daybook/models`, or `layerLanguageModel` around a
 * LanguageModel of your own. Closing the layer interrupts what runs, settles it, and closes the database.
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
  // One value each, which is built once.
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
  // Every service takes it when it is built, those of each Location too.
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

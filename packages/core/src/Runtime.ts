/** The runtime as one layer, with given tools. `@daybook/embedded` adds built-in tools and MCP servers. */
import { dirname, join, resolve } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import type * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Option } from "effect"
import * as OwnerRows from "@daybook/log/coordination/OwnerRows"
import type { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import * as SqlSessionOwner from "@daybook/log/coordination/SqlSessionOwner"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import { EventLog } from "@daybook/log/log/EventLog"
import * as Retention from "@daybook/log/retention/Retention"
import * as SqlSearch from "@daybook/log/search/SqlSearch"
import * as Store from "@daybook/log/Store"
import * as Database from "@daybook/log/storage/Database"
import { deepestFamily } from "@daybook/log/store/SessionRows"
import { Inbox } from "@daybook/log/store/Inbox"
import type { NodeStore } from "@daybook/log/store/NodeStore"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { clamp } from "@daybook/log/support/Clamp"
import * as Agents from "./agent/Agents.ts"
import * as Lineage from "./agent/Lineage.ts"
import * as ChildEnvironment from "./child/ChildEnvironment.ts"
import * as Sandbox from "./child/Sandbox.ts"
import * as Compaction from "./compaction/Compaction.ts"
import * as ContextEpoch from "./context/ContextEpoch.ts"
import * as ContextRegistry from "./context/ContextRegistry.ts"
import * as SystemContext from "./context/SystemContext.ts"
import * as InstructionDiscovery from "./context/InstructionDiscovery.ts"
import * as Skills from "./context/Skills.ts"
import * as AdmissionGate from "./coordination/AdmissionGate.ts"
import { ModelResolver, withPrices } from "./model/ModelResolver.ts"
import * as Permission from "./permission/Permission.ts"
import { layerHeadless } from "./permission/PermissionAsker.ts"
import type { PermissionStore } from "./permission/PermissionStore.ts"
import * as Judgement from "./permission/Judgement.ts"
import * as SqlPermissionStore from "./permission/SqlPermissionStore.ts"
import * as PromptExpander from "./prompt/PromptExpander.ts"
import * as Templates from "./prompt/Templates.ts"
import * as HostRequests from "./request/HostRequests.ts"
import * as SessionRunner from "./runner/SessionRunner.ts"
import type { DatabaseOptions, Options } from "./RuntimeOptions.ts"
import * as ChildSessions from "./session/ChildSessions.ts"
import * as Naming from "./session/Naming.ts"
import * as Questions from "./session/Questions.ts"
import * as SessionExecution from "./session/SessionExecution.ts"
import * as SessionInput from "./session/SessionInput.ts"
import { Sessions } from "./session/Sessions.ts"
import * as SessionsLayer from "./session/SessionsLayer.ts"
import * as SessionTools from "./session/SessionTools.ts"
import * as HostTools from "./tool/HostTools.ts"
import * as ToolRegistry from "./tool/ToolRegistry.ts"
import * as Upkeep from "./snapshot/Upkeep.ts"
import * as Snapshots from "./snapshot/Snapshots.ts"
import { ProjectTrust, trustAll } from "./trust/ProjectTrust.ts"
import * as LocationFiles from "./workspace/LocationFiles.ts"
import * as ToolOutputStore from "./workspace/ToolOutputStore.ts"
import { Workspaces } from "./workspace/Workspaces.ts"

export type { DatabaseOptions, Options, Placement, Settings } from "./RuntimeOptions.ts"

/** The services of the layer. Log, stores and connections are for readers and for projectors' tables. */
export type Services =
  | Sessions
  | HostTools.HostTools
  | HostRequests.HostRequests
  | ContextRegistry.HostContext
  | SystemContext.ContextSettings
  | EventLog
  | Agents.Agents
  | Templates.Templates
  | Identifiers.Identifiers
  | PermissionStore
  | SessionExecution.SessionExecution
  | Naming.Naming
  | SessionOwner
  | SessionStore
  | Inbox
  | NodeStore
  | ConsumerStore
  | SqlClient.SqlClient
  | Database.ReadSql

type AnyOptions = Options | DatabaseOptions

/** How long a process keeps a session after its work is done, in milliseconds (EX-O10). */
const keepMs = 1_000

/** Extensions of a host that has none. */
const none = <Extra>(): Layer.Layer<Extra> => Layer.effectContext(Effect.succeed(Context.unsafeMake(new Map())))

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

/** The file of the database; undefined if there is none. */
const fileOf = ({ filename }: AnyOptions): string | undefined => (filename === ":memory:" ? undefined : filename)

/** The folder for outputs; undefined for a temporary one. */
const outputsFolder = (options: AnyOptions): string | undefined => {
  if (typeof options.toolOutputs === "string") return options.toolOutputs
  const file = fileOf(options)
  return file === undefined ? undefined : join(dirname(file), "tool-output")
}

const outputs = (options: AnyOptions) => {
  if (options.toolOutputs === false) return ToolOutputStore.layerNothing
  const root = outputsFolder(options)
  return root === undefined
    ? Layer.unwrapScoped(Effect.map(temporaryFolder, (root) => ToolOutputStore.layer({ root })))
    : ToolOutputStore.layer({ root })
}

/** The folder for snapshots; undefined if none are taken. */
const snapshotsFolder = (options: AnyOptions): string | undefined => {
  if (options.snapshots === false) return undefined
  const file = fileOf(options)
  return options.snapshots ?? (file === undefined ? undefined : Snapshots.folderBeside(file))
}

const databaseFiles = (options: AnyOptions) => {
  const file = fileOf(options)
  return file === undefined ? [] : ["", "-wal", "-shm", "-journal"].map((end) => resolve(`${file}${end}`))
}

const snapshots = (options: AnyOptions) => {
  const folder = snapshotsFolder(options)
  if (folder === undefined) return Snapshots.layerNothing
  const outputs = outputsFolder(options)
  const hidden = [...databaseFiles(options), ...(outputs === undefined ? [] : [outputs])]
  const { snapshotBytes, snapshotFolders: folders = [] } = options
  return Snapshots.layer({
    folder,
    hidden,
    folders,
    ...(snapshotBytes === undefined ? {} : { maxBytes: snapshotBytes })
  })
}

const retention = (policy: Retention.Policy) =>
  Layer.unwrapEffect(
    Effect.map(Snapshots.Snapshots, ({ forgetUntil }) =>
      Retention.layerPolicy(policy, Effect.flatMap(Upkeep.times, forgetUntil))
    )
  )

/** The sandbox of child processes; it hides this runtime's files from them. */
const sandbox = (options: AnyOptions) => {
  const { sandbox: settings = {}, userFolder } = options
  const own = databaseFiles(options)
  const folders = [outputsFolder(options), snapshotsFolder(options), userFolder]
  const hidden = [...own, ...folders.flatMap((name) => (name === undefined ? [] : [resolve(name)]))]
  return Sandbox.layer({ ...settings, hidden: [...hidden, ...(settings.hidden ?? [])] })
}

/** Expands prompts with the templates of host, user and project, and the extensions' resources. */
const expander = <Extra>(options: AnyOptions, extensions: Layer.Layer<Extra>) =>
  PromptExpander.layer.pipe(
    Layer.provideMerge(
      Layer.unwrapEffect(
        Effect.map(SystemContext.ContextSettings, ({ projectConfig, userFolder }) =>
          Templates.layer({ templates: options.templates, userFolder, projectConfig })
        )
      )
    ),
    Layer.provide([
      SystemContext.layerContextSettings(options),
      LocationFiles.layerReferences(options.references),
      extensions
    ])
  )

/** Agents of the host, the user's folder and the projects. */
const agents = (options: AnyOptions) =>
  Layer.unwrapEffect(
    Effect.map(SystemContext.ContextSettings, ({ projectConfig, userFolder }) =>
      Agents.layer({ agents: options.agents, adjustAgent: options.adjustAgent, userFolder, projectConfig })
    )
  ).pipe(Layer.provide(SystemContext.layerContextSettings(options)))

/** The tools of a Location: the host's choice, and those that need their session. */
const tools = (options: AnyOptions) =>
  Effect.zipWith(
    options.builtins ?? Effect.succeed([]),
    SessionTools.make({ questions: options.questions === true, taskDepth: taskDepth(options) }),
    (builtins, ofSession) => [...builtins, ...ofSession]
  )

/** Built once per Location, when a drain first enters it. */
const locationLayer = (options: AnyOptions) =>
  SessionRunner.layer({
    steerBatchLimit: clamp(options.steerBatchLimit, 100, Number.MAX_SAFE_INTEGER),
    budget: options.budget ?? {},
    continues: options.recovery === "resume"
  }).pipe(
    Layer.provide([ToolRegistry.layer(tools(options)), ContextRegistry.layer]),
    Layer.provide([Permission.layer, InstructionDiscovery.layer, Skills.layer]),
    Layer.provide([
      LocationFiles.layerReferences(options.references),
      ChildEnvironment.layer(options.environment),
      sandbox(options)
    ])
  )

/** Short: it is how long the sessions of a node that died on another machine stay. */
const nodeLeaseMs = 5_000

const leaseOf = ({ leaseMs, placement }: AnyOptions): number =>
  OwnerRows.clamp(leaseMs ?? (placement === undefined ? OwnerRows.standardMs : nodeLeaseMs))

/** The execution of sessions, here or where the host places them. */
const placed = <E, R>(
  options: AnyOptions,
  here: Layer.Layer<SessionExecution.SessionExecution, E, R>
): Layer.Layer<
  SessionExecution.SessionExecution,
  E | SessionExecution.PlacementFailed,
  R | SessionOwner | Store.Services
> => (options.placement === undefined ? here : Layer.provide(options.placement.execution(leaseOf(options)), here))

const taskDepth = ({ taskDepth: depth = 3 }: AnyOptions) => Math.max(0, Math.min(Math.trunc(depth), deepestFamily))

/** Maximum number of sessions resumed at the same time after startup. */
const resumedAtOnce = 16

/** How long a session counts as being resumed: a session that waits for a person must not hold up the others. */
const longestResumed = "10 seconds"

/** Runs in the background: it can take a lease's time to find out whether an owner is alive. */
const resumeLeft = Layer.scopedDiscard(
  Effect.gen(function* () {
    const [sessions, execution, inbox] = [yield* Sessions, yield* SessionExecution.SessionExecution, yield* Inbox]
    yield* Effect.forkScoped(execution.takeUp(execution.wake))
    const cutOff = yield* sessions.interrupted
    const waiting = yield* sessions.waiting
    const left = new Map<SessionID, Effect.Effect<void, unknown>>()
    for (const { id } of waiting) left.set(id, Effect.zipRight(execution.wake(id), execution.settled(id)))
    // What goes on is taken up above; behind an activity that does not, the queue goes on.
    for (const { id } of cutOff) left.set(id, Effect.zipRight(execution.settle(id), execution.wake(id)))
    // The session's living owner may have read the inbox for the last time; this wake runs after the owner ends.
    for (const { id } of yield* inbox.sessions) if (!left.has(id)) yield* execution.wake(id)
    yield* Effect.forEach(left, ([, goOn]) => Effect.ignoreLogged(Effect.timeoutOption(goOn, longestResumed)), {
      concurrency: resumedAtOnce,
      discard: true
    })
  }).pipe(
    Effect.catchAllCause((cause) => Effect.logError("resuming the work of dead processes failed", cause)),
    Effect.forkScoped
  )
)

/** Removes the outputs and snapshots of sessions whose removal an earlier process did not finish. */
const forgetRemoved = Layer.scopedDiscard(
  Effect.gen(function* () {
    const [log, outputs, snapshots] = [
      yield* EventLog,
      yield* ToolOutputStore.ToolOutputStore,
      yield* Snapshots.Snapshots
    ]
    const [kept, isKept] = [yield* outputs.sessions, yield* snapshots.kept]
    let left = kept.size > 0 || Option.isSome(isKept)
    for (let after = 0; left;) {
      const page = yield* log.removals({ after })
      const found = page.filter(({ sessionID }) => kept.has(sessionID) || Option.exists(isKept, (is) => is(sessionID)))
      // The id may be in use again.
      const gone = yield* Effect.filter(found, ({ sessionID }) => Effect.map(log.latest(sessionID), (seq) => seq < 0))
      if (gone.length > 0) yield* outputs.forget(new Set(gone.map(({ sessionID }) => sessionID)))
      yield* Effect.forEach(gone, ({ sessionID }) => snapshots.forget(sessionID), { discard: true })
      after = page.at(-1)?.number ?? after
      left = page.length > 0
    }
  }).pipe(Effect.catchAllCause((cause) => Effect.logWarning("outputs of removed sessions could not be removed", cause)))
)

/** The connections of the runtime, and the log with its stores over them. */
const places = (options: AnyOptions) => {
  const { database, projectors = [] } = options
  if (database !== undefined) {
    const whole = database.layer({ projectors })
    return { connections: whole, store: whole }
  }
  return { connections: Database.layer({ filename: options.filename }), store: Store.layerSql({ projectors }) }
}

/**
 * The runtime on one database: `Sessions`, `EventLog`, and the services that a host extends (`HostTools`,
 * `HostContext`). It requires a `ModelResolver`: `Models.layer` of `@daybook/models`, or `layerLanguageModel` around
 * your own LanguageModel. Closing the layer interrupts running work, settles it, and closes the database.
 *
 * @example
 * ```ts
 * import { Runtime } from "@daybook/core"
 * import { Models } from "@daybook/models"
 * import { Layer } from "effect"
 *
 * export const runtime = Runtime.layer({ filename: "daybook.sqlite" }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const layer = <Extra = never>(
  options: Options<Extra> | DatabaseOptions<Extra>
): Layer.Layer<
  Services | Extra,
  Database.DatabaseError | StoreError | SessionExecution.PlacementFailed,
  ModelResolver
> => {
  const { connections, store } = places(options)
  const storage = Layer.mergeAll(connections, Identifiers.layer, agents(options), NodeContext.layer)
  // Shared values: a layer used by reference is built once.
  const extensions = Layer.provide(options.extensions ?? none<Extra>(), [HostTools.layer, sandbox(options)])
  const taken = snapshots(options)
  const records = Layer.mergeAll(
    extensions,
    store,
    SqlSessionOwner.layer({ keepMs, leaseMs: leaseOf(options) }),
    HostTools.layer,
    ContextRegistry.layerHost,
    SystemContext.layerContextSettings(options),
    HostRequests.layer,
    expander(options, extensions),
    Layer.provide(SqlPermissionStore.layer, store),
    Layer.provide(Judgement.layerSessionApprovals, store),
    options.retention === undefined ? Layer.empty : Layer.provide(retention(options.retention), [store, taken]),
    options.commands === undefined ? Layer.empty : Layer.provide(options.commands, [store, sandbox(options)]),
    options.search === true ? Layer.provide(SqlSearch.layerFollowing, store) : Layer.empty,
    options.permissionAsker ?? layerHeadless,
    outputs(options),
    taken
  )
  const sessions = ChildSessions.attached.pipe(
    Layer.provideMerge(SessionsLayer.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        placed(options, SessionExecution.layer(locationLayer(options), options.recovery === "resume")).pipe(
          Layer.provideMerge(Naming.layer({ mode: options.naming ?? "off", budget: options.budget ?? {} }))
        ),
        SessionInput.layer({ inboxLimit: clamp(options.inboxLimit, 1_000, Number.MAX_SAFE_INTEGER) }),
        AdmissionGate.layer(clamp(options.maxLoopLag, AdmissionGate.defaultLimit, Number.MAX_SAFE_INTEGER))
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
  const started = Layer.provideMerge(forgetRemoved, sessions)
  const all = options.recovery === "resume" ? Layer.provideMerge(resumeLeft, started) : started
  const { prices, trust = trustAll } = options
  // Every service takes them when it is built, including those of each Location.
  const trusting = Layer.provide(all, [
    Layer.succeed(ProjectTrust, trust),
    Layer.succeed(Workspaces, options.placement?.workspaces)
  ])
  if (prices === undefined) return trusting
  return Layer.provide(
    trusting,
    Layer.effect(
      ModelResolver,
      Effect.map(ModelResolver, (own) => withPrices(own, prices))
    )
  )
}

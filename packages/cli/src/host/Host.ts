/** Builds the whole runtime on one database, with providers, configuration and terminal. Spec: CL-70..CL-73. */
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { type ConfigError, Effect, Layer, Struct } from "effect"
import type { Agents } from "@daybook/core/agent/Agents"
import type { ModelResolver } from "@daybook/core/model/ModelResolver"
import type { PermissionAsker } from "@daybook/core/permission/PermissionAsker"
import type { PermissionStore } from "@daybook/core/permission/PermissionStore"
import type { Templates } from "@daybook/core/prompt/Templates"
import type { Naming } from "@daybook/core/session/Naming"
import type { SessionExecution } from "@daybook/core/session/SessionExecution"
import type { Sessions } from "@daybook/core/session/Sessions"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Daybook from "@daybook/embedded/Daybook"
import type { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import type { Identifiers } from "@daybook/log/domain/Identifiers"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { Inbox } from "@daybook/log/store/Inbox"
import type { NodeStore } from "@daybook/log/store/NodeStore"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import { Catalog, Models } from "@daybook/models"
import { BuiltinTools } from "@daybook/tools"
import * as LiveCommands from "@daybook/shell/agent/LiveCommands"
import * as RunMode from "../arguments/RunMode.ts"
import * as Configuration from "../config/Configuration.ts"
import type { Place } from "../config/DatabasePath.ts"
import * as ModelList from "./ModelList.ts"
import * as PlaceStore from "./PlaceStore.ts"
import { ownFiles } from "./ShellHostPlace.ts"
import type { MeasuredStore } from "./StatsMeasure.ts"
import type { UsageError } from "../support/Errors.ts"
import { dataFolder, neutralPath, rootPath } from "../support/Paths.ts"
import * as PermissionPrompt from "../terminal/PermissionPrompt.ts"
import * as QuestionPrompt from "../terminal/QuestionPrompt.ts"
import * as Trusting from "./Trusting.ts"

/** The models, for checks without a database. */
export const models = ModelList.modelsLayer

/** Parses `provider/model`. */
export const parseModel = Catalog.parseModel

type Services =
  | Agents
  | EventLog
  | Identifiers
  | ModelResolver
  | Naming
  | PermissionStore
  | SessionExecution
  | SessionOwner
  | Sessions
  | SessionStore
  | Inbox
  | NodeStore
  | ConsumerStore
  | MeasuredStore
  | Templates

type OpenFailure = ConfigError.ConfigError | Layer.Layer.Error<ReturnType<typeof Daybook.layer>>

/** Where other nodes of the database reach this server. */
export interface Node {
  readonly host: string
  readonly port: number
  /** The folders of the workspaces that it has, by name. */
  readonly workspaces: Readonly<Record<string, string>>
  /** How long it keeps its sessions while it says nothing, in milliseconds; undefined: as long as the runtime chooses. */
  readonly leaseMs: number | undefined
}

const placementOf = (node: Node | undefined) =>
  node === undefined
    ? Effect.succeed(undefined)
    : Effect.map(
        Effect.promise(() => import("@daybook/cluster")),
        ({ Cluster }) => Cluster.placement(node)
      )

/** The options that say where the runtime keeps what. With `background`, it keeps the search index current. */
const optionsOf = (
  place: Place,
  background: boolean,
  node?: Node
): Effect.Effect<
  | Pick<Daybook.Options, "filename" | "search">
  | Pick<Daybook.DatabaseOptions, "database" | "placement" | "leaseMs" | "search" | "toolOutputs" | "snapshots">
> =>
  place._tag === "File"
    ? Effect.succeed({ filename: place.path, search: background })
    : Effect.map(Effect.all([PlaceStore.elsewhere(place), placementOf(node)]), ([database, placement]) => ({
        database,
        placement,
        ...(node?.leaseMs === undefined ? {} : { leaseMs: node.leaseMs }),
        search: background,
        toolOutputs: join(dirname(place.path), "tool-output"),
        snapshots: Snapshots.folderBeside(place.path)
      }))

/** The runtime without configuration, for work that needs no model or agent. */
export const layerBare = (place: Place): Layer.Layer<Services, OpenFailure> =>
  Layer.unwrapEffect(Effect.map(optionsOf(place, false), Daybook.layer)).pipe(Layer.provideMerge(Models.layer))

/** How MCP servers without `cwd` start: outside every project, and without a project's programs in `PATH` (MC-33). */
export const serverStart = () => ({
  folder: join(dataFolder(process.env, homedir()), "mcp"),
  path: neutralPath(process.env),
  tools: join(dataFolder(process.env, homedir()), "mcp-tools")
})

/** The built-in tools, with the settings of those that reach the network. */
export const builtinsOf = (
  fetch: Configuration.Configured["fetch"] | undefined,
  search: Configuration.Configured["search"] | undefined
) => BuiltinTools.withFetch({ ...fetch, ...(search === undefined ? {} : { search }) })

/** The settings as options of the runtime, without the shared spaces, which it does not use, and without retention. */
const configured = (
  servers: boolean,
  asker: Layer.Layer<PermissionAsker>,
  root = rootPath(process.env, homedir(), process.cwd()),
  worlds: ReadonlyArray<string> = [],
  answered = false
) =>
  Effect.gen(function* () {
    const { fetch, mcp = {}, search, shell = {}, ...settings } = yield* Configuration.load
    const trust = yield* Trusting.store
    const mode = yield* RunMode.CurrentRunMode
    return {
      naming: "model" as const,
      ...Struct.omit(
        settings,
        "literalKeys",
        "model",
        "notifications",
        "permissionTimeout",
        "providers",
        "retention",
        "shared",
        "trust"
      ),
      builtins: builtinsOf(fetch, search),
      commands: LiveCommands.layer(Struct.pick(shell, "idle", "limit", "policy")),
      trust,
      adjustAgent: RunMode.adjusted(mode),
      mcp: servers ? mcp : {},
      sandbox: { ...settings.sandbox, hidden: yield* ownFiles(root, settings.sandbox), worlds },
      serverStart: serverStart(),
      permissionAsker: asker,
      questions: answered || QuestionPrompt.somebodyAnswers()
    }
  })

/** The whole runtime. Starts MCP servers only with `servers`. `asker` replaces the permission questions at the terminal. */
export const layer = (
  place: Place,
  {
    answered = false,
    asker = PermissionPrompt.layer,
    background = false,
    node,
    recovery,
    root,
    servers,
    worlds
  }: {
    readonly servers: boolean
    readonly asker?: Layer.Layer<PermissionAsker>
    /** People answer the models' questions over HTTP or in Discord. */
    readonly answered?: boolean
    /** Applies the configured retention, and keeps the search index current, in the background. */
    readonly background?: boolean
    /** The server is this node of its database. */
    readonly node?: Node | undefined
    /** What becomes of the work of processes that died (EX-E11). */
    readonly recovery?: Daybook.Options["recovery"]
    readonly root?: string
    readonly worlds?: ReadonlyArray<string>
  }
): Layer.Layer<Services, OpenFailure | UsageError> =>
  Layer.unwrapEffect(
    Effect.map(
      Effect.all([
        optionsOf(place, background, node),
        configured(servers, asker, root, worlds, answered),
        Configuration.load
      ]),
      ([where, options, { retention: policy }]) =>
        Daybook.layer({
          ...where,
          ...options,
          ...(recovery === undefined ? {} : { recovery }),
          ...(background && policy !== undefined ? { retention: policy } : {})
        })
    )
  ).pipe(Layer.provideMerge(ModelList.modelsLayer))

/** The whole runtime in memory, for sessions that end with their clients. */
export const layerInMemory = (
  asker: Layer.Layer<PermissionAsker>,
  root: string,
  worlds: ReadonlyArray<string>
): Layer.Layer<Services, OpenFailure | UsageError> =>
  Layer.unwrapEffect(
    Effect.map(configured(true, asker, root, worlds), (options) =>
      Daybook.layer({ filename: ":memory:", toolOutputs: false, ...options })
    )
  ).pipe(Layer.provideMerge(ModelList.modelsLayer))

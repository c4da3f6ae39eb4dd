/** The options of the runtime. Spec: specs/architecture.md. */
import type { Layer } from "effect"
import type { Budget, Price } from "@daybook/log/domain/Values"
import type { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { Projector } from "@daybook/log/log/Appends"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { Elsewhere, Services } from "@daybook/log/Store"
import type * as Retention from "@daybook/log/retention/Retention"
import type { EnvironmentGrants } from "./child/ChildEnvironment.ts"
import type { SandboxSettings } from "./child/Sandbox.ts"
import type { CompactionSettings } from "./compaction/Limits.ts"
import type { Agent } from "./domain/Agent.ts"
import type { PermissionAsker } from "./permission/PermissionAsker.ts"
import type * as Templates from "./prompt/Templates.ts"
import type { PlacementFailed, SessionExecution } from "./session/SessionExecution.ts"
import type { NamingMode } from "./session/SessionOptions.ts"
import type * as HostTools from "./tool/HostTools.ts"
import type * as ToolRegistry from "./tool/ToolRegistry.ts"
import type { Trust } from "./trust/ProjectTrust.ts"
import type * as LocationFiles from "./workspace/LocationFiles.ts"

/** Decides where sessions run. */
export interface Placement {
  /** Sends a session's work to its place, given the execution of this process, and how long a silent process keeps its work. */
  readonly execution: (
    leaseMs: number
  ) => Layer.Layer<SessionExecution, PlacementFailed, SessionExecution | SessionOwner | Services>
  /** The folders of the workspaces that this process has, by name. */
  readonly workspaces: Readonly<Record<string, string>>
}

/** Options of the runtime on a file. Only `filename` is required. `Extra` are the services of `extensions`. */
export interface Options<Extra = never> extends Settings<Extra> {
  /** Path of the database, or `:memory:` for a store that ends with the layer. */
  readonly filename: string
  readonly database?: undefined
  readonly placement?: undefined
}

/** Options of the runtime on another database. */
export interface DatabaseOptions<Extra = never> extends Settings<Extra> {
  /** `Postgres.config` of `@daybook/postgres`. Folders of this machine have the defaults of `:memory:`. */
  readonly database: Elsewhere
  readonly filename?: undefined
  /** Where sessions run: `Cluster.placement` of `@daybook/cluster`. Default: in this process. */
  readonly placement?: Placement | undefined
}

/** The options that do not say where the log is kept. */
export interface Settings<Extra = never> {
  /** The built-in tools, made once per Location. Default: none. */
  readonly builtins?: ToolRegistry.Builtins
  /**
   * Adds tools to `HostTools` before any session runs, and may provide a `ResourceReader`: MCP servers, for example. The
   * runtime provides its services too.
   */
  readonly extensions?: Layer.Layer<Extra, never, HostTools.HostTools>
  /**
   * How `bash` runs the commands of agents with `bash: live`: `layer` of `@daybook/shell/agent/LiveCommands`. Without it their
   * commands run in processes of their own.
   */
  readonly commands?: Layer.Layer<never, never, EventLog>
  /** Further agents besides `build`. */
  readonly agents?: ReadonlyArray<Agent>
  /** Changes each agent as this process uses it: for example, rules of one run. */
  readonly adjustAgent?: (agent: Agent) => Agent
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
  /**
   * How sessions without a title get one after their first turn: `model` asks the session's model, `prompt` takes the
   * beginning of the first prompt. Default: `off`, so that an application spends nothing unasked (NM-8).
   */
  readonly naming?: NamingMode
  /** Maximum number of waiting inputs per session. Default: 1,000; minimum: 1. */
  readonly inboxLimit?: number
  /**
   * Maximum number of steers promoted at one safe boundary. Default: 100; minimum: 1. The rest follow at the next
   * boundary.
   */
  readonly steerBatchLimit?: number
  /**
   * The lag of the event loop, in milliseconds, above which prompts wait before they are admitted, so that running
   * sessions are served first. Default: 200; minimum: 1. A prompt waits a second at most as the first in line.
   */
  readonly maxLoopLag?: number
  /**
   * The folder for the full text of truncated tool outputs. Default: beside the database; for `:memory:`, a temporary
   * folder. False: they are not kept, and the truncated output says so.
   */
  readonly toolOutputs?: string | false
  /**
   * The folder for snapshots of files, which `Sessions.undo` restores. Default: beside the database; for `:memory:`,
   * none. False: no snapshots are taken.
   */
  readonly snapshots?: string | false
  /** Folders whose files are snapshotted, besides git work trees. */
  readonly snapshotFolders?: ReadonlyArray<string>
  /** Bytes of all snapshots together; the oldest go first. Default: 1 GB. */
  readonly snapshotBytes?: number
  /**
   * What to do at startup with work of dead processes. `manual` (default): nothing, so that nothing is spent unasked;
   * `Sessions.interrupted` and `Sessions.waiting` list it. `resume`: goes on with activities that were cut off, unless
   * they were cut off twice without a step between, and runs every waiting prompt, including those admitted with
   * `resume: false`. A call that ran is settled as interrupted; the model may make it again.
   */
  readonly recovery?: "manual" | "resume"
  /**
   * How long an owner that stopped renewing its lease keeps its sessions, in milliseconds. Default: 15,000, and 5,000 with
   * `placement`; range: 1,000 to 60,000. A process of this machine that is known to be dead keeps none. With `placement`, every
   * node needs the same one.
   */
  readonly leaseMs?: number
  /**
   * Which old events are removed in the background, and where they are archived. Default: none. Messages, contexts and
   * search stay as they are; readers that are further behind get `CursorExpired`.
   */
  readonly retention?: Retention.Policy
  /**
   * Whether to keep the index of `Search` current in the background (SE-9). Default: false; a search then updates it. The
   * index is beside the file, or where `Postgres.config` says.
   */
  readonly search?: boolean
  /** Read models of other packages, written in each append's transaction. */
  readonly projectors?: ReadonlyArray<Projector>
  /** The user's folder, with `AGENTS.md` and `skills/`. By default no user files are read. */
  readonly userFolder?: string
  /** Further instructions: files, globs, and http(s) URLs. */
  readonly instructions?: ReadonlyArray<string>
  /** Further folders of skills. */
  readonly skills?: ReadonlyArray<string>
  /** Folders and files outside the Location. Prompts mention them as `@name`; `read` reads them as `name:path`. */
  readonly references?: LocationFiles.WrittenReferences
  /** Names of environment variables that children inherit, besides a few harmless ones. */
  readonly environment?: EnvironmentGrants
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

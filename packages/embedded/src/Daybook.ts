/**
 * The embedded runtime: sessions on one database with the built-in tools and MCP servers, as one layer. Spec:
 * specs/architecture.md.
 *
 * @module @daybook/embedded/Daybook
 */
import { dirname, join } from "node:path"
import { Config, type ConfigError, Effect, Layer } from "effect"
import type { ModelResolver } from "@daybook/core/model/ModelResolver"
import * as Runtime from "@daybook/core/Runtime"
import type { PlacementFailed } from "@daybook/core/session/SessionExecution"
import type { DatabaseError } from "@daybook/log/storage/Database"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as Mcp from "@daybook/mcp/Mcp"
import { builtins } from "@daybook/tools/BuiltinTools"

/** Options of the runtime on a file. Only `filename` is required. */
export interface Options extends Settings, Pick<Runtime.Options, "filename" | "database" | "placement"> {}

/** Options of the runtime on another database. Only `database` is required. */
export interface DatabaseOptions
  extends Settings, Pick<Runtime.DatabaseOptions, "filename" | "database" | "placement"> {}

/** The options that do not say where the log is kept. */
export interface Settings extends Omit<Runtime.Settings<Mcp.Mcp>, "extensions"> {
  /** MCP servers by name. Models get their tools, and prompts mention their resources as `@name:uri`. */
  readonly mcp?: Mcp.McpServers
  /**
   * How MCP servers start. `folder`: the working directory of those without `cwd`, kept empty; default: `mcp` beside the
   * database, a temporary folder for `:memory:`. `path`: their `PATH`; default: this process's. `tools`: where the tools
   * of each server are kept for the next start; default: `mcp-tools` beside the database, none for `:memory:`.
   */
  readonly serverStart?: Mcp.StartOptions
}

/** The services of the layer. Log, stores and connections are for readers and for projectors' tables. */
export type Services = Runtime.Services | Mcp.Mcp

/**
 * The runtime on one database: `Sessions`, `EventLog`, and the services that a host extends (`HostTools`,
 * `HostContext`). It requires a `ModelResolver`: `Models.layer` of `@daybook/models`, or
 * `ModelResolver.layerLanguageModel` around your own LanguageModel. `builtins: Effect.succeed([])` leaves out the
 * built-in tools. Closing the layer interrupts running work, settles it, and closes the database.
 *
 * @example
 * ```ts
 * import { Daybook } from "@daybook/embedded"
 * import { Models } from "@daybook/models"
 * import { Layer } from "effect"
 *
 * export const runtime = Daybook.layer({ filename: "daybook.sqlite" }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const layer = ({
  mcp = {},
  serverStart,
  ...options
}: Options | DatabaseOptions): Layer.Layer<Services, DatabaseError | StoreError | PlacementFailed, ModelResolver> => {
  const { filename } = options
  const beside = (name: string) =>
    filename === undefined || filename === ":memory:" ? undefined : join(dirname(filename), name)
  const start = { folder: beside("mcp"), tools: beside("mcp-tools"), ...serverStart }
  return Runtime.layer({ builtins, ...options, extensions: Mcp.layer(mcp, start) })
}

/**
 * The runtime with its options from `Config`: the whole record, or single fields of it.
 *
 * @example
 * ```ts
 * import { Daybook } from "@daybook/embedded"
 * import { Models } from "@daybook/models"
 * import { Config, Layer } from "effect"
 *
 * export const runtime = Daybook.layerConfig({
 *   filename: Config.string("ACME_DATABASE"),
 *   recovery: Config.literal("manual", "resume")("ACME_RECOVERY").pipe(Config.withDefault("manual"))
 * }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<Services, ConfigError.ConfigError | DatabaseError | StoreError | PlacementFailed, ModelResolver> =>
  Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

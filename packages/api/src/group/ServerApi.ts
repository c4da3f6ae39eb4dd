/**
 * The server and its machine: its health and metrics, searches, figures, live shells, and what sessions can be given.
 * Spec: HT-39, HT-55, HT-56, HT-504, HT-540, HT-541 in specs/http.md.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { AgentMode, BashMode } from "@daybook/core/domain/Agent"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { NodesReport } from "@daybook/log/domain/NodesReport"
import { StatsReport } from "@daybook/log/domain/StoreStats"
import { ModelRef, Price } from "@daybook/log/domain/Values"
import { ShellTransport } from "@daybook/log/events/LiveShellEvents"
import { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { PromptsPage, SearchPage } from "@daybook/log/search/Search"
import { NotServed, Reading, ShellsUnavailable } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { bySession, count, flag, gets, strict, text } from "./Shared.ts"
import { optional } from "@daybook/log/support/Optional"

// Texts of all sessions.

const searching = failures(Schema.Union(InvalidInput, LogUnavailable, NotServed))

export const SearchApi = HttpApiGroup.make("search")
  .annotate(OpenApi.Description, "Search the texts of all sessions.")
  .add(
    gets("search", "/search", SearchPage, searching).setUrlParams(
      strict(Schema.Struct({ query: Schema.String, directory: text, limit: count, cursor: text }))
    )
  )
  .add(
    gets("prompts", "/prompts", PromptsPage, searching).setUrlParams(
      strict(Schema.Struct({ words: text, directory: text, limit: count, cursor: text }))
    )
  )

// What the machine of a server holds: figures of its database, and its live shells.

/** An open live shell of the server's machine. */
export const OpenShell = Schema.Struct({
  session_id: Schema.String,
  transport: ShellTransport,
  /** The working folder after its last command. */
  cwd: Schema.String,
  /** Seconds since the end of the last command; 0 while one runs. */
  idle_secs: Schema.Int,
  /** Commands that run or wait. */
  busy: Schema.Int
}).annotations({ identifier: "OpenShell" })
export type OpenShell = typeof OpenShell.Type

const measuring = failures(Schema.Union(SessionNotFound, LogUnavailable, NotServed))

/** Everything is counted, also if the database is large. */
const exact = Schema.Struct({ exact: flag })

export const MachineApi = HttpApiGroup.make("machine")
  .annotate(OpenApi.Description, "Figures of the database, and the live shells of the server's machine.")
  .add(gets("stats", "/stats", StatsReport, measuring).setUrlParams(strict(exact)))
  .add(
    gets("sessionStats", "/sessions/:sessionID/stats", StatsReport, measuring)
      .setPath(bySession)
      .setUrlParams(strict(exact))
  )
  .add(gets("shells", "/shells", Schema.Array(OpenShell), failures(Schema.Union(NotServed, ShellsUnavailable))))
  .add(gets("nodes", "/nodes", NodesReport, failures(LogUnavailable)))

// What a session can be given: models, agents, templates.

/** A model that sessions can be given. */
export const OfferedModel = Schema.Struct({
  model: ModelRef,
  name: Schema.String,
  contextTokens: optional(Schema.Int),
  outputTokens: optional(Schema.Int),
  price: optional(Price),
  media: optional(Schema.Array(Schema.Literal("image", "pdf"))),
  thinks: optional(Schema.Boolean),
  variants: optional(Schema.Array(Schema.String)),
  source: Schema.Literal("catalogue", "configuration", "server", "built in"),
  needs: optional(Schema.String),
  default: Schema.Boolean
}).annotations({ identifier: "OfferedModel" })
export type OfferedModel = typeof OfferedModel.Type

/** The models, and the providers that did not list theirs. */
export const OfferedModels = Schema.Struct({
  models: Schema.Array(OfferedModel),
  unreachable: Schema.Array(Schema.Struct({ provider: Schema.String, why: Schema.String }))
})
export type OfferedModels = typeof OfferedModels.Type

/** An agent, without its prompt. */
export const OfferedAgent = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String),
  mode: AgentMode,
  model: optional(ModelRef),
  bash: BashMode
}).annotations({ identifier: "OfferedAgent" })
export type OfferedAgent = typeof OfferedAgent.Type

/** A template: a prompt with a name, which begins with `/`. */
export const OfferedTemplate = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String)
}).annotations({ identifier: "OfferedTemplate" })
export type OfferedTemplate = typeof OfferedTemplate.Type

const inFolder = strict(Schema.Struct({ directory: Schema.optional(Schema.NonEmptyString) }))

export const ChoicesApi = HttpApiGroup.make("choices")
  .annotate(OpenApi.Description, "What sessions can be given: models, agents, templates.")
  .add(gets("models", "/models", OfferedModels, failures(NotServed)))
  .add(gets("agents", "/agents", Schema.Array(OfferedAgent), failures(InvalidInput)).setUrlParams(inFolder))
  .add(gets("templates", "/templates", Schema.Array(OfferedTemplate), failures(InvalidInput)).setUrlParams(inFolder))

/** The server answers. */
export const Health = Schema.Struct({
  status: Schema.Literal("ok", "draining"),
  version: Schema.String,
  lagMs: optional(Schema.NonNegativeInt)
})
export type Health = typeof Health.Type

/** The metrics of the server, in the text format of Prometheus. */
const MetricsText = HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4; charset=utf-8" })

/** State of the server; its health needs no token. */
export const ServerApi = HttpApiGroup.make("server")
  .annotate(OpenApi.Description, "State of the server.")
  .add(HttpApiEndpoint.get("health", "/health").addSuccess(Health).addError(failures(LogUnavailable)))
  .add(HttpApiEndpoint.get("serverMetrics", "/metrics").addSuccess(MetricsText).middleware(Reading))

/** What the machine of a server holds: figures of its database, and its live shells. Spec: HT-55, HT-56 in specs/http.md. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { StatsReport } from "@daybook/log/domain/StoreStats"
import { ShellTransport } from "@daybook/log/events/LiveShellEvents"
import { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import { NotServed, Reading, ShellsUnavailable } from "../wire/Access.ts"
import { failures } from "../wire/Failure.ts"
import { bySession, flag, strict } from "./Shared.ts"

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

/** Figures and shells. */
export const MachineApi = HttpApiGroup.make("machine")
  .annotate(OpenApi.Description, "Figures of the database, and the live shells of the server's machine.")
  .add(
    HttpApiEndpoint.get("stats", "/stats")
      .setUrlParams(strict(exact))
      .addSuccess(StatsReport)
      .addError(measuring)
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("sessionStats", "/sessions/:sessionID/stats")
      .setPath(bySession)
      .setUrlParams(strict(exact))
      .addSuccess(StatsReport)
      .addError(measuring)
      .middleware(Reading)
  )
  .add(
    HttpApiEndpoint.get("shells", "/shells")
      .addSuccess(Schema.Array(OpenShell))
      .addError(failures(Schema.Union(NotServed, ShellsUnavailable)))
      .middleware(Reading)
  )

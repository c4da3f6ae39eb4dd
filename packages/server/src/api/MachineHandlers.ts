/** Answers requests about the server's machine. The host of the server measures and lists. Spec: HT-55, HT-56. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import type { OpenShell } from "@daybook/api/group/MachineApi"
import { NotServed, type ShellsUnavailable } from "@daybook/api/wire/Access"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { StatsReport } from "@daybook/log/domain/StoreStats"
import type { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"

/** What to measure. */
export interface Measuring {
  /** One session of the database. */
  readonly sessionID?: SessionID | undefined
  /** Count everything, also if the database is large. */
  readonly exact: boolean
}

/** What the host of the server knows. */
export interface Machine {
  readonly stats: (what: Measuring) => Effect.Effect<StatsReport, SessionNotFound | LogUnavailable>
  /** The open live shells, in the order of their opening. */
  readonly shells: Effect.Effect<ReadonlyArray<OpenShell>, ShellsUnavailable>
}

/** Measurements at a time: the others wait. */
const measurements = 1

/** Asks the machine, if the host gives one. */
export const layer = (machine: Partial<Machine> = {}) => {
  const { shells, stats } = machine
  const one = Effect.unsafeMakeSemaphore(measurements).withPermits(1)
  const measured = (what: Measuring) => (stats === undefined ? new NotServed({ what: "stats" }) : one(stats(what)))
  return HttpApiBuilder.group(Api, "machine", (handlers) =>
    handlers
      .handle("stats", ({ urlParams }) => measured({ exact: urlParams.exact === "1" }))
      .handle("sessionStats", ({ path, urlParams }) => measured({ ...path, exact: urlParams.exact === "1" }))
      .handle("shells", () => shells ?? new NotServed({ what: "shells" }))
  )
}

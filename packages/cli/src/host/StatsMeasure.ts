/** Measures what `daybook stats` shows, for the command and for a server, and words what prune frees. Spec: CL-194..CL-196, CL-281 in specs/cli.md. */
import { Clock, Effect, Stream } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Prunable, Stats, StatsReport } from "@daybook/log/domain/StoreStats"
import { serverStats, stats } from "@daybook/log/maintenance/Stats"
import type { Cut } from "@daybook/log/retention/Plan"
import * as Retention from "@daybook/log/retention/Retention"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Place } from "../config/DatabasePath.ts"
import { oneLine, pad } from "../render/Plain.ts"
import { many, sizeText } from "../support/Amounts.ts"
import * as PlaceStore from "./PlaceStore.ts"

type Totals = { readonly sessions: number; readonly events: number; readonly bytes: number }

export const none: Totals = { sessions: 0, events: 0, bytes: 0 }

export const added = (totals: Totals, { bytes, events }: Pick<Cut, "bytes" | "events">): Totals => ({
  sessions: totals.sessions + (events > 0 ? 1 : 0),
  events: totals.events + events,
  bytes: totals.bytes + bytes
})

const columns = [34, 10, 10, 10] as const

const row = (cells: ReadonlyArray<string>, last: string): string =>
  `${cells.map((cell, index) => pad(cell, columns[index] ?? 0)).join("  ")}  ${last}`.trimEnd() + "\n"

export const heading = row(["SESSION", "EVENTS", "BYTES", "UP TO"], "HELD BACK BY")

export const cutLine = ({ bytes, events, held, sessionID, to }: Cut): string =>
  row(
    [oneLine(sessionID, 110), String(events), sizeText(bytes), events === 0 ? "-" : String(to)],
    held.map(({ after, name }) => `${oneLine(name, 80)} (at ${after})`).join(", ")
  )

/** The fields of a cut for `--json`. */
export const cutJson = ({ bytes, events, floor, held, sessionID, to }: Cut) => ({
  sessionID,
  floor,
  to,
  events,
  bytes,
  held
})

export const totalsLine = ({ bytes, events, sessions }: Totals, frees: number): string =>
  `${many(sessions, "session")}, ${many(events, "event")}, ${sizeText(bytes)} of events; removing them frees an estimated ${sizeText(frees)}\n`

type MeasureRequest = { readonly sessionID: SessionID | undefined; readonly exact: boolean }

/** Plans a prune without a bound. It reads the row of every event, but no payload. */
const prunable = Effect.fnUntraced(function* (sessions: ReadonlyArray<SessionID> | undefined) {
  const holders = Retention.consumersOf(yield* ConsumerStore)
  const totals = yield* Stream.runFold(Retention.plan({ sessions, holders }), none, added)
  return { ...totals, frees: Retention.estimatedBytes(totals) } satisfies Prunable
})

/** Adds what the stores in the context and the folder beside the database know. */
const reported = Effect.fnUntraced(function* (measured: Stats, path: string, { sessionID }: MeasureRequest) {
  const sessions = sessionID === undefined ? undefined : [sessionID]
  // Of a store that is sampled, a plan would read far more than the sample.
  const figures = measured.sampled ? measured : { ...measured, prune: yield* prunable(sessions) }
  if (sessionID === undefined) {
    return { ...figures, snapshots: yield* Upkeep.measure(Snapshots.folderBeside(path)) } satisfies StatsReport
  }
  const metrics = yield* (yield* SessionStore).metrics(sessionID, yield* Clock.currentTimeMillis)
  return { ...figures, metrics } satisfies StatsReport
})

/** Measures the database of PostgreSQL in the context; `path` is where this machine's files of it are. */
export const measureServer = (path: string, what: MeasureRequest) =>
  Effect.flatMap(serverStats(what), (measured) => reported(measured, path, what))

/** The services that `measureServer` needs. */
export type MeasuredStore = Effect.Effect.Context<ReturnType<typeof measureServer>>

export const measure = Effect.fn("StatsMeasure.measure")(function* (place: Place, what: MeasureRequest) {
  const { path } = place
  if (place._tag === "Postgres") return yield* Effect.provide(measureServer(path, what), PlaceStore.layerReading(place))
  const measured = yield* stats({ ...what, database: path })
  return yield* Effect.provide(reported(measured, path, what), PlaceStore.layerReading(place))
})

/** Runs `daybook stats`. Spec: CL-194..CL-196 in specs/cli.md. */
import { Clock, Effect, Stream } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionMetrics } from "@daybook/log/domain/Usage"
import { type Stats, stats } from "@daybook/log/maintenance/Stats"
import * as Retention from "@daybook/log/retention/Retention"
import * as Store from "@daybook/log/Store"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { metricsText } from "../render/SessionLine.ts"
import { added, none, type Totals } from "../render/PruneText.ts"
import { many, sizeText } from "../support/Amounts.ts"
import { NotFound } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const section = (
  title: string,
  lines: ReadonlyArray<readonly [bytes: number, events: number | undefined, name: string]>
) =>
  lines.length === 0
    ? ""
    : `\n${title}\n${lines
        .map(([bytes, events, name]) => {
          const count = events === undefined ? "" : `${events}`.padStart(12)
          return `${sizeText(bytes).padStart(10)}${count}  ${oneLine(name, 100)}\n`
        })
        .join("")}`

/** What a prune without a bound would remove. */
interface Prunable extends Totals {
  /** The estimated bytes that it would free. */
  readonly frees: number
}

const prunableText = ({ bytes, events, frees, sessions }: Prunable): string =>
  `prune can remove ${many(events, "event")} of ${many(sessions, "session")}, ${sizeText(bytes)} of payloads; that would free an estimated ${sizeText(frees)}\n`

const snapshotsText = ({ bytes, folders, snapshots }: Upkeep.Measured): string =>
  snapshots === 0
    ? ""
    : `snapshots of files ${sizeText(bytes)}: ${many(snapshots, "snapshot")} of ${many(folders, "folder")}\n`

/** The figures as text. */
export const statsText = (
  found: Stats & {
    readonly prune?: Prunable
    readonly snapshots?: Upkeep.Measured
    readonly metrics?: SessionMetrics
  }
): string => {
  const about = found.sampled ? " (estimated from a sample; --exact reads everything)" : ""
  return [
    found.metrics === undefined ? "" : `${metricsText(found.metrics)}\n`,
    `file ${sizeText(found.fileBytes)}, write-ahead log ${sizeText(found.walBytes)}, free pages ${sizeText(found.freeBytes)}\n`,
    `${many(found.sessions, "session")}, ${many(found.events, "event")}, ${sizeText(found.bytes)} of payloads${about}\n`,
    found.contentBytes === 0 ? "" : `compressed events below the floors: ${sizeText(found.contentBytes)}\n`,
    found.prune === undefined ? "" : prunableText(found.prune),
    found.snapshots === undefined ? "" : snapshotsText(found.snapshots),
    section(
      "tables, with indexes",
      (found.tables ?? []).map(({ bytes, table }) => [bytes, undefined, table])
    ),
    section(
      "types of events",
      found.types.map(({ bytes, events, type }) => [bytes, events, type])
    ),
    section(
      "days (UTC)",
      found.days.map(({ bytes, day, events }) => [bytes, events, day])
    ),
    section(
      "largest sessions",
      found.largest.map(({ bytes, events, sessionID, title }) => [bytes, events, `${sessionID} ${title ?? ""}`.trim()])
    )
  ].join("")
}

/** Plans a prune without a bound. It reads the row of every event, but no payload. */
const prunable = (filename: string, sessions: ReadonlyArray<SessionID> | undefined) =>
  Effect.gen(function* () {
    const holders = Retention.consumersOf(yield* ConsumerStore)
    const totals = yield* Stream.runFold(Retention.plan({ sessions, holders }), none, added)
    return { ...totals, frees: Retention.estimatedBytes(totals) } satisfies Prunable
  }).pipe(Effect.provide(Store.layerReading({ filename })))

/** What the session did. */
const metricsOf = (filename: string, sessionID: SessionID) =>
  Effect.gen(function* () {
    return yield* (yield* SessionStore).metrics(sessionID, yield* Clock.currentTimeMillis)
  }).pipe(Effect.provide(Store.layerReading({ filename })))

/** Prints where the bytes are. */
export const run = Effect.fn("Command.stats")(
  function* (options: {
    readonly database: string
    readonly sessionID: SessionID | undefined
    readonly exact: boolean
    readonly json: boolean
  }) {
    const { database, sessionID } = options
    const output = yield* Output
    const measured = yield* stats(options)
    const sessions = sessionID === undefined ? undefined : [sessionID]
    // Of a store that is sampled, a plan would read far more than the sample.
    const figures = measured.sampled ? measured : { ...measured, prune: yield* prunable(database, sessions) }
    const found =
      sessionID === undefined
        ? { ...figures, snapshots: yield* Upkeep.measure(Snapshots.folderBeside(database)) }
        : { ...figures, metrics: yield* metricsOf(database, sessionID) }
    yield* output.write(options.json ? `${jsonLine(found, output.terminal)}\n` : statsText(found))
  },
  Effect.mapError((error) =>
    error._tag === "BackupFailed" && error.reason === "not-found" ? new NotFound({ message: error.message }) : error
  )
)

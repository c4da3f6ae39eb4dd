/** Runs `daybook stats`. Spec: CL-194..CL-196 in specs/cli.md. */
import { Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type Prunable, type SnapshotStats, StatsReport } from "@daybook/log/domain/StoreStats"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { metricsText } from "../render/SessionLine.ts"
import { many, sizeText } from "../support/Amounts.ts"
import { NotFound } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import type { Server } from "./Remote.ts"
import { measure } from "./StatsMeasure.ts"

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

const prunableText = ({ bytes, events, frees, sessions }: Prunable): string =>
  `prune can remove ${many(events, "event")} of ${many(sessions, "session")}, ${sizeText(bytes)} of payloads; that would free an estimated ${sizeText(frees)}\n`

const snapshotsText = ({ bytes, folders, snapshots }: SnapshotStats): string =>
  snapshots === 0
    ? ""
    : `snapshots of files ${sizeText(bytes)}: ${many(snapshots, "snapshot")} of ${many(folders, "folder")}\n`

/** The figures as text. */
export const statsText = (found: StatsReport): string => {
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

/** In the order of the fields, wherever it was measured. */
const encode = Schema.encodeSync(StatsReport)

const print = Effect.fnUntraced(function* (found: StatsReport, { json }: Wanted) {
  const output = yield* Output
  yield* output.write(json ? `${jsonLine(encode(found), output.terminal)}\n` : statsText(found))
})

/** What a person wants to know. */
export interface Wanted {
  readonly sessionID: SessionID | undefined
  readonly exact: boolean
  readonly json: boolean
}

/** Prints where the bytes of the database are. */
export const run = Effect.fn("Command.stats")(
  function* (database: string, wanted: Wanted) {
    yield* print(yield* measure({ database, ...wanted }), wanted)
  },
  Effect.mapError((error) =>
    error._tag === "BackupFailed" && error.reason === "not-found" ? new NotFound({ message: error.message }) : error
  )
)

/** Prints where the bytes of the server's database are. */
export const runOver = Effect.fn("Command.stats.over")(function* (server: Server, wanted: Wanted) {
  const { stats } = yield* Effect.promise(() => import("./RemoteMachine.ts"))
  yield* print(yield* stats(server, wanted), wanted)
})

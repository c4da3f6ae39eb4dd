/** `daybook stats`: where the bytes of the database are. Spec: CL-194..CL-196. */
import { Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type Prunable, type SnapshotStats, StatsReport } from "@daybook/log/domain/StoreStats"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import type { Place } from "../config/DatabasePath.ts"
import { Remote, type Server } from "../host/Remote.ts"
import { withReader } from "../host/Runtime.ts"
import { measure } from "../host/StatsMeasure.ts"
import { oneLine } from "../render/Plain.ts"
import { metricsText } from "../render/SessionLine.ts"
import { many, sizeText } from "../support/Amounts.ts"
import { NotFound } from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

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

/** PostgreSQL's write-ahead log is that of the whole server, so its tables stand alone. */
const placeText = ({ fileBytes, freeBytes, walBytes }: StatsReport): string => {
  const free = freeBytes === undefined ? "" : `, free pages ${sizeText(freeBytes)}`
  return walBytes === undefined
    ? `tables ${sizeText(fileBytes)}${free}\n`
    : `file ${sizeText(fileBytes)}, write-ahead log ${sizeText(walBytes)}${free}\n`
}

const statsText = (found: StatsReport): string => {
  const about = found.sampled ? " (estimated from a sample; --exact reads everything)" : ""
  return [
    found.metrics === undefined ? "" : `${metricsText(found.metrics)}\n`,
    placeText(found),
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

const print = Effect.fnUntraced(function* (found: StatsReport, { json }: StatsRequest) {
  yield* json ? writeJson(encode(found)) : (yield* Output).write(statsText(found))
})

/** What a person wants to know. */
type StatsRequest = { readonly sessionID: SessionID | undefined; readonly exact: boolean; readonly json: boolean }

/** Prints where the bytes of the database are. */
const run = Effect.fn("Command.stats")(
  function* (place: Place, wanted: StatsRequest) {
    yield* print(yield* measure(place, wanted), wanted)
  },
  Effect.mapError((error) =>
    error._tag === "BackupFailed" && error.reason === "not-found" ? new NotFound({ message: error.message }) : error
  )
)

/** Prints where the bytes of the server's database are. */
const runOver = Effect.fn("Command.stats.over")(function* (server: Server, wanted: StatsRequest) {
  const { stats } = yield* Effect.promise(() => import("../host/RemoteHost.ts"))
  yield* print(yield* stats(server, wanted), wanted)
})

const exact = Flags.toggle("exact", "read everything, also if the database is large")

/** The id of a session that is named by id or title. */
const idOf = (session: string) => withReader(Effect.map(SessionReference.resolveHere(session), ({ id }) => id))

export const stats = verb({
  name: "stats",
  summary: "show where the bytes of the database are",
  words: "[SESSION]",
  details: [
    "It prints the size of the file, or of PostgreSQL's tables, and of its free pages, and the bytes by table, type of event, day and session. With " +
      "SESSION, an id, a title, or the beginning of either, it counts that session's events only, and says what the session did: turns, tool calls, time at work, tokens and cost. The columns are bytes, events, name. It also says what " +
      "`daybook prune` can remove, and estimates what that would free.",
    "Nothing is changed. Unless --exact is given, the numbers of a database with more than 500,000 events are estimated from " +
      "a sample, without what prune can remove, and the tables of a file above 1 GiB are omitted."
  ],
  given: { session: Flags.optional("SESSION"), exact, json: Flags.json },
  examples: [
    ["daybook stats", "shows what takes the space"],
    ["daybook stats fix", "shows the turns, tokens and cost of the session called fix, and its bytes"],
    ["daybook stats --json | jq '.largest[0]'", "prints the largest session"]
  ],
  overServer: true,
  run: ({ exact, json, session }) =>
    Effect.gen(function* () {
      const server = yield* Remote
      const place = server === undefined ? yield* DatabasePath.existing : undefined
      const sessionID = session === undefined ? undefined : yield* idOf(session)
      const wanted = { sessionID, exact, json }
      if (server !== undefined) yield* runOver(server, wanted)
      else if (place !== undefined) yield* run(place, wanted)
    })
})

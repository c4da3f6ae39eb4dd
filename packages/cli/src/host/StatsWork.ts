/** Runs `daybook stats`. Spec: CL-194, CL-195 in specs/cli.md. */
import { Effect } from "effect"
import type { Stats } from "@daybook/log/maintenance/Stats"
import { stats } from "@daybook/log/maintenance/Stats"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { NotFound } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const units = ["B", "kB", "MB", "GB", "TB"] as const

/** A number of bytes, with three digits. */
export const size = (bytes: number): string => {
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3))
  return `${power === 0 ? bytes : (bytes / 1000 ** power).toPrecision(3)} ${units[power]}`
}

const section = (
  title: string,
  lines: ReadonlyArray<readonly [bytes: number, events: number | undefined, name: string]>
) =>
  lines.length === 0
    ? ""
    : `\n${title}\n${lines
        .map(([bytes, events, name]) => {
          const count = events === undefined ? "" : `${events}`.padStart(12)
          return `${size(bytes).padStart(10)}${count}  ${oneLine(name, 100)}\n`
        })
        .join("")}`

/** The figures as text. */
export const statsText = (found: Stats): string => {
  const about = found.sampled ? " (estimated from a sample; --exact reads everything)" : ""
  return [
    `file ${size(found.fileBytes)}, write-ahead log ${size(found.walBytes)}, free pages ${size(found.freeBytes)}\n`,
    `${found.sessions} sessions, ${found.events} events, ${size(found.bytes)} of payloads${about}\n`,
    found.contentBytes === 0 ? "" : `compressed events below the floors: ${size(found.contentBytes)}\n`,
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

/** Prints where the bytes are. */
export const run = Effect.fn("Command.stats")(
  function* (options: {
    readonly database: string
    readonly sessionID: string | undefined
    readonly exact: boolean
    readonly json: boolean
  }) {
    const output = yield* Output
    const found = yield* stats(options)
    yield* output.write(options.json ? `${jsonLine(found, output.terminal)}\n` : statsText(found))
  },
  Effect.mapError((error) =>
    error._tag === "BackupFailed" && error.reason === "not-found" ? new NotFound({ message: error.message }) : error
  )
)

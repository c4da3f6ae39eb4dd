/** Runs `daybook import` on the store of a database, without anything that runs sessions. Spec: CL-220..CL-229. */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Either, Layer, Option } from "effect"
import { importLog, type ImportReport } from "@daybook/formats/import/Import"
import * as LogSource from "@daybook/formats/import/LogSource"
import * as Store from "@daybook/log/Store"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as DatabasePath from "../config/DatabasePath.ts"
import { failureOf } from "../render/Failure.ts"
import { barText, folderText, reportText } from "../render/ImportText.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { ImportIncomplete, Interrupted } from "../support/Errors.ts"
import * as Garbage from "../support/Garbage.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import * as ImportSources from "./ImportSources.ts"

export interface Request {
  readonly paths: ReadonlyArray<string>
  readonly dialect: LogSource.Choice
  readonly dryRun: boolean
  readonly asNew: boolean
  readonly json: boolean
}

/** Milliseconds between two pictures of the bar. */
const interval = 100

/** A bar on a terminal, redrawn in place. */
const makeBar = Effect.map(Output, (output) => {
  const shown = process.stderr.isTTY === true
  let last = 0
  return {
    draw: (done: number, total: number, path: string) =>
      Effect.suspend(() => {
        const now = performance.now()
        if (!shown || now - last < interval) return Effect.void
        last = now
        return Effect.ignore(output.draw("stderr", `\r\u001b[2K${barText(done, total, path)}`))
      }),
    clear: Effect.suspend(() => (shown ? Effect.ignore(output.draw("stderr", "\r\u001b[2K")) : Effect.void))
  }
})

/** The errors that say to import the log as a new session. */
const changed = new Set(["SourceDiffers", "SessionContinued", "ImportDiffers"])

/** What kept a log from being imported, in words and by type. */
const failed = (path: string, error: unknown, json: boolean, terminal: boolean) => {
  const { sentence: cause = "it could not be imported" } = failureOf(error)
  const type = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "unknown"
  const sentence = changed.has(type) ? `${cause} (daybook import --as-new)` : cause
  return json
    ? `${jsonLine({ path, error: { type, message: sentence } }, terminal)}\n`
    : `${oneLine(path, 400)}\n  not imported: ${oneLine(sentence, 400)}\n`
}

/** The folder of the session, if it is gone. */
const missingFolder = Effect.fnUntraced(function* ({ sessionID }: ImportReport) {
  const session = yield* Effect.option((yield* SessionStore).get(sessionID))
  return Option.filterMap(session, ({ location: { directory } }) =>
    existsSync(directory) ? Option.none() : Option.some(directory)
  )
})

const importAll = Effect.fn("Command.import")(function* (request: Request) {
  Garbage.bound()
  const output = yield* Output
  const sources = yield* ImportSources.find(request.paths)
  const total = sources.reduce((sum, { bytes }) => sum + bytes, 0)
  const bar = yield* makeBar
  let [done, failures] = [0, 0]
  for (const { bytes, path } of sources) {
    const before = done
    const outcome = yield* Effect.either(
      importLog((ends) => LogSource.open(path, request.dialect, ends), {
        directory: homedir(),
        dryRun: request.dryRun,
        asNew: request.asNew,
        // The text of a compressed log is longer than its file.
        progress: (offset) => bar.draw(before + Math.min(offset, bytes), total, path)
      })
    )
    done += bytes
    yield* bar.clear
    if (Either.isLeft(outcome)) {
      failures += 1
      yield* output.write(failed(path, outcome.left, request.json, output.terminal))
      continue
    }
    const report = outcome.right
    yield* output.write(
      request.json
        ? `${jsonLine({ path, dryRun: request.dryRun, ...report }, output.terminal)}\n`
        : reportText(path, report, request.dryRun)
    )
    const gone = Option.getOrUndefined(yield* missingFolder(report))
    if (gone !== undefined && !request.json)
      yield* output.note(`  its folder ${oneLine(gone, 400)} does not exist; create it to prompt the session\n`)
  }
  if (failures > 0) return yield* new ImportIncomplete({ message: `${many(failures, "log")} not imported` })
})

/** Lists the logs in the known folders. */
const list = Effect.fn("Command.import.list")(function* (json: boolean) {
  const output = yield* Output
  for (const { folder, sources, tool } of yield* ImportSources.known) {
    const bytes = sources.reduce((sum, source) => sum + source.bytes, 0)
    if (json) yield* output.write(`${jsonLine({ tool, folder, logs: sources.length, bytes }, output.terminal)}\n`)
    else if (sources.length > 0) yield* output.write(folderText(tool, folder, sources.length, bytes))
  }
  if (!json) yield* output.note("nothing was imported; name a folder or a log to import it\n")
})

/** Ends the import at the first signal; what is stored stays, and the next import continues. */
const untilSignal = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(Signal.first, (signal) =>
      Effect.raceFirst(
        work,
        Effect.zipRight(signal, new Interrupted({ message: "stopped; import the same logs again to continue" }))
      )
    )
  )

/** Imports the logs of the paths, or lists what could be imported. */
export const run = (request: Request) =>
  request.paths.length === 0
    ? list(request.json)
    : Effect.gen(function* () {
        const filename = request.dryRun ? yield* existingOr(":memory:") : yield* DatabasePath.writable
        yield* untilSignal(importAll(request)).pipe(
          Effect.provide(Layer.merge(Store.layer({ filename }), NodeFileSystem.layer))
        )
      })

/** A rehearsal creates no database. */
const existingOr = (otherwise: string) =>
  Effect.flatMap(DatabasePath.exists, (exists) => (exists ? DatabasePath.path : Effect.succeed(otherwise)))

/** Runs `daybook export`: streams a session to stdout or to a file that appears when it is complete. Spec: CL-230..CL-239. */
import { resolve } from "node:path"
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import { dialectOf, entryLines, type ExportReport } from "@daybook/formats/export/EntryExport"
import type { Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import * as Redaction from "@daybook/log/support/Redaction"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { reportText } from "../render/ExportText.ts"
import { jsonLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import * as WholeFile from "./WholeFile.ts"
import { Output } from "../terminal/Output.ts"
import { withReader } from "./Runtime.ts"

export interface Request {
  readonly session: string
  readonly format: "entries" | "pi" | "thread" | "jsonl" | "markdown" | "html"
  /** Absent: stdout. */
  readonly file: string | undefined
  readonly redact: boolean
  readonly force: boolean
  readonly json: boolean
}

/** The session's events up to now. */
const eventsOf = ({ id: sessionID }: Session): Stream.Stream<SessionEvent, ReadError, EventLog> =>
  Stream.unwrap(
    Effect.map(EventLog, (log) =>
      Stream.paginateChunkEffect(-1, (after: number) =>
        Effect.map(log.read({ sessionID, after }), ({ cursor, events, hasMore }) => [
          Chunk.unsafeFromArray(events.slice()),
          hasMore ? Option.some(cursor) : Option.none<number>()
        ])
      )
    )
  )

const decodeLine = Schema.decodeUnknownSync(Schema.parseJson())

/** Lines without secrets. A line that cannot be checked is a defect: nothing of it is written. */
const redacted = (redactor: Redaction.Redactor) => (line: string) =>
  `${JSON.stringify(redactor.value(decodeLine(line) as Redaction.Json))}\n`

/** Exports one session. */
export const run = Effect.fn("Command.export")(function* (request: Request) {
  const output = yield* Output
  const session = yield* SessionReference.resolve(request.session, yield* Folder.current)
  const redactor = Redaction.make(Redaction.secretsOf(process.env))
  let report: ExportReport | undefined
  const done = (made: ExportReport) => void (report = made)
  if (request.format !== "entries" && request.format !== "pi") {
    return yield* new UsageError({ message: `--format ${request.format} is not available yet; use entries or pi` })
  }
  const lines = entryLines(session, request.format === "pi" ? "pi" : dialectOf(session), eventsOf(session), done)
  const texts = request.redact ? Stream.map(lines, redacted(redactor)) : lines
  const { file } = request
  if (file === undefined) yield* Stream.runForEachChunk(texts, (chunk) => output.write(Chunk.join(chunk, "")))
  else yield* WholeFile.write(resolve(file), texts, request)
  const secrets = request.redact ? Object.fromEntries(redactor.counts) : undefined
  const told = { sessionID: session.id, format: request.format, ...(file === undefined ? {} : { file }) }
  yield* output.note(
    request.json
      ? `${jsonLine({ ...told, ...report, ...(secrets === undefined ? {} : { secrets }) }, false)}\n`
      : reportText(request.file, report, secrets)
  )
}, withReader)

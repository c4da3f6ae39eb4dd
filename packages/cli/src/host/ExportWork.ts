/** Runs `daybook export`: streams a session to stdout or to a file that appears when it is complete. Spec: CL-230..CL-239. */
import { mkdir } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import * as Document from "@daybook/formats/document/Document"
import { dialectOf, entryLines, type ExportReport } from "@daybook/formats/export/EntryExport"
import { threadLines } from "@daybook/formats/export/ThreadExport"
import type { Message, Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as Redaction from "@daybook/log/support/Redaction"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { reportText } from "../render/ExportText.ts"
import { jsonLine } from "../render/Plain.ts"
import { FileProblem, NotFound, type OutputClosed, type OutputFailed } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import { withReader } from "./Runtime.ts"
import * as WholeFile from "./WholeFile.ts"

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

/** The messages of the session's history path. */
const messagesOf = ({ id: sessionID }: Session): Stream.Stream<Message, StoreError, SessionStore> =>
  Stream.unwrap(
    Effect.map(SessionStore, (store) =>
      Stream.paginateChunkEffect(undefined, (cursor: number | undefined) =>
        Effect.map(store.messages({ sessionID, cursor, limit: 100 }), (page) => [
          Chunk.unsafeFromArray(page.items.slice()),
          page.cursor === undefined ? Option.none<number>() : Option.some(page.cursor)
        ])
      )
    )
  )

const parseLine = Schema.decodeUnknownSync(Schema.parseJson())

/** A line without secrets. A line that cannot be checked is a defect: nothing of it is written. */
const lineWithout = (redactor: Redaction.Redactor | undefined) => (line: string) =>
  redactor === undefined ? line : `${JSON.stringify(redactor.value(parseLine(line) as Redaction.Json))}\n`

/** Writes the texts to stdout or to a file. */
const send = <E, R>(
  texts: Stream.Stream<string, E, R>,
  file: string | undefined,
  force: boolean
): Effect.Effect<void, E | FileProblem | OutputClosed | OutputFailed, R | Output> =>
  Effect.gen(function* () {
    const output = yield* Output
    if (file !== undefined) return yield* WholeFile.write(resolve(file), texts, { force })
    yield* Stream.runForEachChunk(texts, (chunk) => output.write(Chunk.join(chunk, "")))
  })

/** Writes a thread's folder, or its lines to stdout. */
const sendThread = Effect.fnUntraced(function* (
  session: Session,
  { file, force }: Request,
  redactor: Redaction.Redactor | undefined
) {
  let found: { readonly metadata: object; readonly report: ExportReport } | undefined
  const lines = Stream.map(
    threadLines(session, eventsOf(session), (files) => void (found = files)),
    lineWithout(redactor)
  )
  if (file === undefined) yield* send(lines, undefined, force)
  else {
    const folder = resolve(file)
    yield* Effect.tryPromise({
      try: () => mkdir(folder, { recursive: true, mode: 0o700 }),
      catch: () => new FileProblem({ message: `${folder}: the folder cannot be made` })
    })
    yield* send(lines, join(folder, "session.jsonl"), force)
    const metadata = lineWithout(redactor)(`${JSON.stringify(found?.metadata ?? {})}\n`)
    yield* send(Stream.make(metadata), join(folder, "metadata.json"), force)
  }
  return found?.report
})

const sendEntries = Effect.fnUntraced(function* (
  session: Session,
  { file, force, format }: Request,
  redactor: Redaction.Redactor | undefined
) {
  let report: ExportReport | undefined
  const dialect = format === "pi" ? "pi" : dialectOf(session)
  const lines = entryLines(session, dialect, eventsOf(session), (made) => void (report = made))
  yield* send(Stream.map(lines, lineWithout(redactor)), file, force)
  return report
})

/** A log of another tool needs all events of the session. */
const allEvents = Effect.fnUntraced(function* ({ id }: Session) {
  const { floor } = yield* (yield* SessionStore).snapshot(id)
  if (floor < 0) return
  return yield* new NotFound({
    message:
      `the events of ${id} up to ${floor} were pruned, so it cannot be written as a log of another tool; ` +
      "--format jsonl, markdown and html still have all its messages"
  })
})

const documents = { jsonl: Document.jsonl, markdown: Document.markdown, html: Document.html }

const write = (session: Session, request: Request, redactor: Redaction.Redactor | undefined) => {
  const { file, force, format } = request
  if (format === "entries" || format === "pi") {
    return Effect.zipRight(allEvents(session), sendEntries(session, request, redactor))
  }
  if (format === "thread") return Effect.zipRight(allEvents(session), sendThread(session, request, redactor))
  return Effect.as(send(documents[format](session, messagesOf(session), { redactor }), file, force), undefined)
}

/** Exports one session. */
export const run = Effect.fn("Command.export")(function* (request: Request) {
  const output = yield* Output
  const session = yield* SessionReference.resolve(request.session, yield* Folder.current)
  const redactor = request.redact ? Redaction.make(Redaction.secretsOf(process.env)) : undefined
  const { file, format, json } = request
  const report = yield* write(session, request, redactor)
  const secrets = redactor === undefined ? undefined : Object.fromEntries(redactor.counts)
  const told = { sessionID: session.id, format, ...(file === undefined ? {} : { file }), ...report }
  yield* output.note(
    json
      ? `${jsonLine({ ...told, ...(secrets === undefined ? {} : { secrets }) }, false)}\n`
      : reportText(file, report, secrets)
  )
}, withReader)

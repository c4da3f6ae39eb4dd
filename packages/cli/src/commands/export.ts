/** `daybook export`: writes a session as a log of another tool, or as a document. Spec: CL-230..CL-236. */
import { mkdir } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import * as Document from "@daybook/formats/document/Document"
import { dialectOf, entryLines, type ExportReport } from "@daybook/formats/export/EntryExport"
import { threadLines } from "@daybook/formats/export/ThreadExport"
import type { Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Redaction from "@daybook/log/support/Redaction"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { withReader } from "../host/Runtime.ts"
import * as WholeFile from "../host/WholeFile.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { FileProblem, NotFound, type OutputClosed, type OutputFailed, UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import { allMessages } from "./sessions.ts"

const prefix = "session.next."

const shortName = (type: string): string => (type.startsWith(prefix) ? type.slice(prefix.length) : type)

/** The lines for stderr; empty if there is nothing to say. */
const reportText = (
  file: string | undefined,
  report: ExportReport | undefined,
  secrets: Readonly<Record<string, number>> | undefined
): string => {
  const { dropped = {}, lines = 0, notes = [], records = 0 } = report ?? {}
  const left = Object.entries(dropped).map(([type, count]) => `${count} ${shortName(type)}`)
  const replaced = Object.values(secrets ?? {}).reduce((sum, count) => sum + count, 0)
  const all = [
    ...(file === undefined
      ? []
      : [report === undefined ? oneLine(file, 400) : `${oneLine(file, 400)}: ${many(lines, "line")}`]),
    ...(left.length === 0 ? [] : [`the format cannot hold these events: ${left.join(", ")}`]),
    ...(records === 0
      ? []
      : [`${many(records, "record")} of the imported log left out: only its own format holds them`]),
    ...(secrets === undefined ? [] : [`${many(replaced, "secret")} replaced`]),
    ...notes
  ]
  return all.map((line) => `${line}\n`).join("")
}

/** Without a file: stdout. */
type Request = Omit<FieldValues<typeof given>, "out" | "format"> & {
  readonly format: (typeof formats)[number]
  readonly file: string | undefined
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

/** Writes the fixture of a session. It has no secrets, whether or not it is asked for without. */
const sendFixture = Effect.fnUntraced(function* (session: Session, { file, force }: Request) {
  const { record } = yield* Effect.promise(() => import("@daybook/core/session/RecordedModel"))
  const fixture = yield* record(session.id)
  yield* send(Stream.make(`${JSON.stringify(fixture, undefined, 2)}\n`), file, force)
  return undefined
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
  if (format === "fixture") return sendFixture(session, request)
  if (format === "thread") return Effect.zipRight(allEvents(session), sendThread(session, request, redactor))
  return Effect.as(send(documents[format](session, allMessages(session.id), { redactor }), file, force), undefined)
}

const run = Effect.fn("Command.export")(function* (request: Request) {
  const output = yield* Output
  const session = yield* SessionReference.resolveHere(request.session)
  const redactor = request.redact ? Redaction.make(Redaction.secretsOf(process.env)) : undefined
  const { file, format, json } = request
  const report = yield* write(session, request, redactor)
  const secrets = redactor === undefined ? undefined : Object.fromEntries(redactor.counts)
  const told = { sessionID: session.id, format, file, ...report }
  yield* output.note(json ? `${jsonLine({ ...told, secrets }, false)}\n` : reportText(file, report, secrets))
}, withReader)

const formats = ["entries", "pi", "thread", "jsonl", "markdown", "html", "fixture"] as const

const given = {
  session: Flags.optional("SESSION"),
  format: Flags.choice("format", formats, "what to write", { md: "markdown" }),
  out: Flags.text("out", "FILE", "write to this file; - or none is stdout"),
  redact: Flags.toggle("redact", "replace secrets, and say how many"),
  force: Flags.toggle("force", "replace the file if it exists"),
  json: Flags.json
}

/** The format that a file's name says; other endings fit several formats. */
const formatOf = (out: string): (typeof formats)[number] | undefined =>
  /\.(?:md|markdown)$/i.test(out) ? "markdown" : /\.html?$/i.test(out) ? "html" : undefined

export const exportVerb = verb({
  name: "export",
  summary: "write a session as a log of another tool or as a document",
  words: "[SESSION]",
  details: [
    "SESSION is an id, a title, or the beginning of either. Default: the session used last in this folder, or else the one used last anywhere. The " +
      "format of a FILE that ends in .md or .html need not be named. entries is the log of xcsh, pi that of pi, thread a thread log; jsonl has a message per " +
      "line, markdown and html are for reading. fixture has requests and answers for RecordedModel, which gives the answers " +
      "again in a test; it never has secrets.",
    "A session that was imported from the same format is written as its log was, record by record, followed by what was " +
      "done since. What a format cannot hold is listed on stderr, or with --json as a line of JSON there."
  ],
  given,
  examples: [
    ["daybook export fix --format markdown", "prints the session called fix"],
    ["daybook export ses_01 --format pi --out fix.jsonl", "writes a log that pi opens"],
    ["daybook export ses_01 --format html --redact --out fix.html", "writes a page without secrets"],
    ["daybook export ses_01 --format fixture --out triage.fixture.json", "writes a fixture for a test"]
  ],
  run: ({ format: named, out, ...given }) =>
    Effect.gen(function* () {
      const format = named ?? formatOf(out ?? "")
      if (format === undefined) {
        const { session: word = "" } = given
        const isFile = formatOf(word) !== undefined
        const message = isFile
          ? `write to a file with --out ${word}`
          : `say what to write: --format ${formats.join("|")}`
        return yield* new UsageError({ message: oneLine(message, 400) })
      }
      const file = out === "-" ? undefined : out
      yield* run({ ...given, format, file })
    })
})

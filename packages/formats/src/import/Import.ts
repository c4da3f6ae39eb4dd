/**
 * Imports a foreign log: converts its records and appends their events in bounded batches, each with a note of how far
 * it came. A repeated import reads the source from its beginning and stores only what is not stored yet. So an import
 * that was killed, or whose source grew, ends like one whole import. `Conversion.ts` makes the events. Spec: IM-1,
 * IM-40..IM-45.
 */
import { createHash } from "node:crypto"
import { Array as Arr, Effect, Option, Schema, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { ImportedLog, isComplete } from "@daybook/log/domain/Imported"
import type { Session } from "@daybook/log/domain/Message"
import { titleOfPrompt } from "@daybook/log/domain/Title"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type LogUnavailable } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { Dialect, type Head, type Item, type Piece, Problem, textOf } from "../conversation/Conversation.ts"
import { difference, type JsonObject } from "../export/Difference.ts"
import { Ledger } from "../export/EntryExport.ts"
import { type EntryDialect, entryHead, entryRecord, isEntryDialect } from "../export/EntryRecord.ts"
import { eventItem } from "../export/EventItem.ts"
import { threadLedger, threadRecord } from "../export/ThreadExport.ts"
import { nothing, plus } from "../reading/Tolerant.ts"
import * as ThreadRecord from "../thread/ThreadRecord.ts"
import * as ThreadWriter from "../thread/ThreadWriter.ts"
import { Conversion } from "./Conversion.ts"
import { sessionIDOf, tokensOf } from "./Drafts.ts"
import { optional } from "@daybook/log/support/Optional"

// The errors of an import.

/** The source has no head, or is empty. Nothing was stored. */
export class NoHead extends Schema.TaggedError<NoHead>("@daybook/formats/NoHead")("NoHead", {
  details: Schema.String
}) {
  override get message() {
    return `not a session log: ${this.details}`
  }
}

/** The session was imported from another source. Nothing was stored. */
export class SourceDiffers extends Schema.TaggedError<SourceDiffers>("@daybook/formats/SourceDiffers")(
  "SourceDiffers",
  {
    sessionID: SessionID,
    /** Imported records. */
    records: Schema.Int,
    details: Schema.String
  }
) {
  override get message() {
    return `${this.sessionID} was imported from another state of this log: ${this.details}; import it as a new session, or remove that one first`
  }
}

/** The session has events that the import did not write, so new records of the source cannot follow. */
export class SessionContinued extends Schema.TaggedError<SessionContinued>("@daybook/formats/SessionContinued")(
  "SessionContinued",
  { sessionID: SessionID, records: Schema.Int }
) {
  override get message() {
    return (
      `${this.sessionID} was changed after ${this.records} records of this log were imported; ` +
      "import the log as a new session, or remove that one first"
    )
  }
}

/**
 * The session has other events than this import makes of the records that are stored: another import of the log is running,
 * or another release of Daybook imported them.
 */
export class ImportDiffers extends Schema.TaggedError<ImportDiffers>("@daybook/formats/ImportDiffers")(
  "ImportDiffers",
  { sessionID: SessionID, records: Schema.Int }
) {
  override get message() {
    return (
      `${this.sessionID} has other events than this import makes of the first ${this.records} records: another import of ` +
      "the log is running, or another release imported it; wait for that import, import the log as a new session, or " +
      "remove that one first"
    )
  }
}

/** Why an import failed, beside errors of the source and of the store. */
export const ImportError = Schema.Union(NoHead, SourceDiffers, SessionContinued, ImportDiffers)
export type ImportError = typeof ImportError.Type

export const ImportReport = Schema.Struct({
  sessionID: SessionID,
  dialect: Dialect,
  id: Schema.String,
  title: optional(Schema.String),
  /** `continued`: an earlier import had stopped before the end. `grown`: the log has more records than it had then. */
  status: Schema.Literal("imported", "continued", "grown", "unchanged"),
  /** Records of the log without its head. */
  records: Schema.Int,
  /** Of them stored now. */
  added: Schema.Int,
  prompts: Schema.Int,
  answers: Schema.Int,
  results: Schema.Int,
  /** Commands, notes, summaries and changes of the model. */
  others: Schema.Int,
  /** Records that the model is not shown. */
  hidden: Schema.Int,
  /** US dollars, and tokens as the log counts them. */
  usage: Schema.Struct({
    cost: Schema.Number,
    input: Schema.Number,
    output: Schema.Number,
    reasoning: Schema.Number,
    cacheRead: Schema.Number,
    cacheWrite: Schema.Number
  }),
  problems: Schema.Record({ key: Schema.String, value: Schema.Int }),
  /** The first problems, at most `problemsShown`. */
  first: Schema.Array(Problem)
})
export type ImportReport = typeof ImportReport.Type

/** How many problems a report shows. */
export const problemsShown = 100

export interface ImportOptions {
  /** The folder of a session whose log names none. */
  readonly directory: string
  /** Reads and converts, and stores nothing. */
  readonly dryRun?: boolean
  /** Imports the log as another session, beside earlier ones. */
  readonly asNew?: boolean
  /** Called after each batch, with the offset of its last record in the source. */
  readonly progress?: (offset: number) => Effect.Effect<void>
}

/** A batch ends with the record that reaches one of these. */
const batchEvents = 1024
const batchChars = 2 * 1024 * 1024

/** A record of a log is parsed JSON. */
const asJson = (record: object): JsonObject => record as JsonObject

/** The record that an export makes of these events. */
type Maker = (key: string, events: ReadonlyArray<Draft>, time: number, seq: number) => JsonObject

const makeEntries = (dialect: EntryDialect): Maker => {
  const ledger = new Ledger(dialect)
  return (key, events, time, seq) => {
    const made = entryRecord(events, ledger.place(key, time))
    ledger.add(key, events, seq)
    return made
  }
}

const makeThreads = (head: Head): Maker => {
  // An export begins with another head and another id: neither is in a record.
  const writer = ThreadWriter.make(ThreadRecord.ThreadID.make("0".repeat(26)), head)
  const ledger = threadLedger()
  return (key, events, time, seq) => {
    const item = eventItem(events, ledger.place(key, time))
    ledger.add(key, events, seq)
    return threadRecord(writer.add(item))
  }
}

class Importing {
  records = 0
  offset = 0
  usage = nothing
  /** The session's title so far. */
  title: string | undefined
  /** The beginning of the first prompt. */
  private first: string | undefined
  private named: number | undefined
  private chars = 0
  private ends: ReadonlyArray<number> = []
  private readonly hash = createHash("sha256")
  /** Makes the records of a dialect that Daybook writes. */
  private readonly made: Maker | undefined
  readonly conversion: Conversion

  readonly head: Head

  constructor(head: Head, sessionID: SessionID, directory: string, problem: (problem: Problem) => void) {
    this.head = head
    this.title = head.title
    this.conversion = new Conversion(sessionID, head, { directory, problem })
    const { dialect } = head
    if (dialect === "thread") {
      this.made = makeThreads(head)
      this.imported({ record: this.recordOf(undefined, {}, head.record) })
    }
    if (!isEntryDialect(dialect)) return
    this.made = makeEntries(dialect)
    const made = entryHead({
      id: head.id,
      time: this.conversion.time,
      cwd: head.cwd ?? directory,
      title: head.title
    })
    // The head is the last record without a key.
    for (const record of [...(head.before ?? []), head.record])
      this.imported({ record: this.recordOf(undefined, made, record) })
  }

  private hashed(record: object): void {
    const text = JSON.stringify(record)
    this.chars += text.length
    this.hash.update(text).update("\n")
  }

  private recordOf(key: string | undefined, made: JsonObject, record: object) {
    const found = difference(made, asJson(record))
    return { ...(key === undefined ? {} : { key }), ...(found === undefined ? {} : { difference: found }) }
  }

  private imported(data: Parameters<typeof draft<"session.next.imported">>[1]): void {
    this.conversion.add(draft("session.next.imported", data))
  }

  take(item: Item): void {
    this.records += 1
    this.offset = item.place.offset
    this.hashed(item.record)
    const { conversion } = this
    const before = conversion.pending
    conversion.convert(item)
    if (item._tag === "Title") this.title = item.title
    if (item._tag === "User") this.first ??= titleOfPrompt(textOf(item.content))
    const spent = "spent" in item ? item.spent : undefined
    if (spent !== undefined) this.usage = plus(this.usage, spent)
    const charged = item._tag === "Result" && spent !== undefined ? { cost: spent.cost, tokens: tokensOf(spent) } : {}
    if (this.made !== undefined) {
      const made = this.made(item.key, conversion.since(before), conversion.time, conversion.seq)
      this.imported({ record: this.recordOf(item.key, made, item.record), ...charged })
    } else if (spent !== undefined && item._tag === "Result") this.imported(charged)
  }

  get isFull(): boolean {
    return this.conversion.pending >= batchEvents || this.chars >= batchChars
  }

  /**
   * Ends the log here. Without a title, the session is named by its first prompt. An end that is stored is made as it was:
   * the head, which tools rewrite, may have a title by now.
   */
  finish(stored: ImportedLog | undefined): void {
    this.conversion.finish()
    const isStored = stored?.ends.includes(this.records) === true
    const names = isStored ? stored.named === this.records : this.title === undefined
    if (names && this.first !== undefined) {
      this.title = this.first
      this.named = this.records
      this.conversion.add(draft("session.next.renamed", { title: this.first, by: "prompt" }))
    }
    this.ends = [...this.ends, this.records]
  }

  get log(): ImportedLog {
    const { dialect, id, version } = this.head
    return {
      dialect,
      id,
      ...(version === undefined ? {} : { version }),
      records: this.records,
      digest: this.hash.copy().digest("hex"),
      ...(this.named === undefined ? {} : { named: this.named }),
      ends: this.ends
    }
  }

  /** The events of the batch, the last of which says how far the import came. */
  batch() {
    this.chars = 0
    this.imported({ log: this.log })
    return this.conversion.take()
  }
}

const makeProblems = () => {
  const counts: Record<string, number> = {}
  const first: Array<Problem> = []
  const add = (problem: Problem): void => {
    counts[problem.kind] = (counts[problem.kind] ?? 0) + 1
    if (first.length < problemsShown) first.push(problem)
  }
  return { counts, first, add }
}

/** The session of the log, and what was imported into it. */
const target = Effect.fnUntraced(function* (head: Head, asNew: boolean) {
  const store = yield* SessionStore
  const existing = (id: SessionID) =>
    Effect.catchTag(Effect.asSome(store.get(id)), "SessionNotFound", () => Effect.succeedNone)
  const first = sessionIDOf(head.dialect, head.id)
  if (!asNew) return { sessionID: first, session: yield* existing(first) }
  for (let copy = 2; ; copy++) {
    const sessionID = sessionIDOf(head.dialect, head.id, String(copy))
    const session = yield* existing(sessionID)
    // An import of a copy that was killed continues.
    if (Option.isNone(session) || !isWhole(session.value)) return { sessionID, session }
  }
})

const isWhole = ({ imported }: Session): boolean => imported === undefined || isComplete(imported)

/** Reads the log. `ends`: after how many items earlier imports of it ended; what grew there ends there again (IM-420). */
export type ReadLog<E, R> = (ends: ReadonlyArray<number>) => Stream.Stream<Piece, E, R>

/** Where earlier imports of the log ended. */
const endsOf = Effect.fnUntraced(function* <E, R>(read: ReadLog<E, R>, asNew: boolean) {
  const isHead = (piece: Piece): piece is Head => piece._tag === "Head"
  const head = yield* Stream.runHead(Stream.filter(read([]), isHead))
  if (Option.isNone(head)) return []
  const { session } = yield* target(head.value, asNew)
  return Option.getOrUndefined(session)?.imported?.ends ?? []
})

/** Imports a log. `SourceDiffers`, `SessionContinued` and `ImportDiffers` say that nothing more was stored. */
export const importLog = <E, R>(
  read: ReadLog<E, R>,
  options: ImportOptions
): Effect.Effect<
  ImportReport,
  E | NoHead | SourceDiffers | SessionContinued | ImportDiffers | AppendError | StoreError | LogUnavailable,
  R | EventLog | SessionStore
> =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const problems = makeProblems()
    let importing: Importing | undefined
    let stored: ImportedLog | undefined

    const differs = (sessionID: SessionID, records: number, details: string) =>
      new SourceDiffers({ sessionID, records, details })

    /** Why the batch does not follow: the session's last event is the import's own, or another one. */
    const conflict = Effect.fnUntraced(function* (sessionID: SessionID, actual: number) {
      const records = stored?.records ?? 0
      const page = yield* Effect.option(log.read({ sessionID, after: actual - 1, limit: 1 }))
      const last = Option.flatMap(page, ({ events }) => Arr.head(events))
      return yield* Option.exists(last, ({ type }) => type === "session.next.imported")
        ? new ImportDiffers({ sessionID, records })
        : new SessionContinued({ sessionID, records })
    })

    /** Stores the batch, unless it is stored. */
    const flush = Effect.fnUntraced(function* (current: Importing) {
      const { sessionID } = current.conversion
      const { drafts, times } = current.batch()
      const before = current.conversion.seq - drafts.length
      if (options.dryRun === true || !Arr.isNonEmptyReadonlyArray(drafts)) return
      if (stored === undefined || stored.records < current.records || isBehind(stored, current.log)) {
        yield* log
          .append(sessionID, drafts, { times, expectedSeq: before })
          .pipe(Effect.catchTag("SeqConflict", ({ actual }) => conflict(sessionID, actual)))
      } else if (stored.records === current.records && stored.digest !== current.log.digest) {
        return yield* differs(sessionID, stored.records, `its first ${stored.records} records are not the same`)
      }
      if (options.progress !== undefined) yield* options.progress(current.offset)
    })

    const begin = Effect.fnUntraced(function* (head: Head) {
      const { session, sessionID } = yield* target(head, options.asNew === true)
      stored = Option.getOrUndefined(session)?.imported
      if (Option.isSome(session) && stored === undefined) return yield* new SessionContinued({ sessionID, records: 0 })
      importing = new Importing(head, sessionID, options.directory, problems.add)
      return yield* endedHere(importing)
    })

    /** Ends the import where an earlier one ended, to make the events that it made. */
    const endedHere = Effect.fnUntraced(function* (current: Importing) {
      if (stored?.ends.includes(current.records) !== true) return
      current.finish(stored)
      yield* flush(current)
    })

    const take = Effect.fnUntraced(function* (piece: Piece) {
      if (piece._tag === "Problem") return problems.add(piece)
      if (piece._tag === "Head") {
        if (importing !== undefined) return yield* new NoHead({ details: "it has two heads" })
        return yield* begin(piece)
      }
      if (importing === undefined) return yield* new NoHead({ details: "it has a record before its head" })
      importing.take(piece)
      if (importing.isFull) yield* flush(importing)
      if (stored !== undefined) yield* endedHere(importing)
    })

    const pieces = read(yield* endsOf(read, options.asNew === true))
    yield* Stream.runForEachChunk(pieces, (chunk) => Effect.forEach(chunk, take, { discard: true }))
    if (importing === undefined) return yield* new NoHead({ details: "it has no head" })
    const current: Importing = importing
    const { conversion, head, records } = current
    const { sessionID } = conversion
    if (stored !== undefined && records < stored.records) {
      return yield* differs(sessionID, stored.records, `it had ${stored.records} records and now has ${records}`)
    }
    const isDone = stored !== undefined && isComplete(stored) && stored.records === records
    if (!isDone) {
      current.finish(stored)
      yield* flush(current)
    }
    return {
      sessionID,
      dialect: head.dialect,
      id: head.id,
      ...(current.title === undefined ? {} : { title: current.title }),
      status: stored === undefined ? "imported" : isDone ? "unchanged" : isComplete(stored) ? "grown" : "continued",
      records,
      added: records - (stored?.records ?? 0),
      ...conversion.counts,
      usage: current.usage,
      problems: problems.counts,
      first: problems.first
    } satisfies ImportReport
  }).pipe(Effect.withSpan("Import.importLog"))

/** Whether the stored progress is of the same records, and lacks the end that the import has reached. */
const isBehind = (stored: ImportedLog, now: ImportedLog): boolean =>
  stored.records === now.records && stored.ends.length < now.ends.length

/**
 * A thread that is open for writing: appends records, one write per line, and updates its metadata. Holds the lock of its
 * file, and in memory only the records that the model is shown. Spec: FM-103..FM-105, FM-115 in specs/formats.md (seed
 * 003, 7.6, TH-3..TH-7, TH-14).
 */
import { join } from "node:path"
import { type Array as Arr, Clock, Effect, Either, Option, Schema, type Scope, Stream } from "effect"
import type { Problem } from "../conversation/Conversation.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import { recordLine, type RecordRefused } from "../lines/JsonLines.ts"
import {
  loggedLatch,
  type FileMissing,
  type SessionLocked,
  SessionStorage,
  type StorageFailed
} from "../storage/SessionStorage.ts"
import * as ThreadCompaction from "./ThreadCompaction.ts"
import { contextOf, shownOf, type Summarize, summaryOf, type SummaryUnusable, totalTokens } from "./ThreadCompaction.ts"
import {
  callsOf,
  type CompactionRecord,
  decodeRecord,
  type MessageRecord,
  metadataFile,
  recordsFile,
  ThreadID,
  type ThreadMessage,
  type ThreadMetadata,
  type ThreadMetrics,
  type ThreadRecord
} from "./ThreadRecord.ts"

// Runs the turns of one thread one at a time, with a bounded queue.

/** Too many messages wait for this thread. Nothing was appended; send the message again later. */
export class ThreadBusy extends Schema.TaggedError<ThreadBusy>("@daybook/formats/ThreadBusy")("ThreadBusy", {
  id: ThreadID,
  waiting: Schema.NonNegativeInt
}) {
  override get message() {
    return `${this.waiting} messages wait for thread ${this.id} already; send this one again later`
  }
}

/** Turns that may wait while one runs. */
export const maxWaiting = 16

export interface ThreadTurns {
  /** Runs the turn when those before it have ended. */
  readonly run: <A, E, R>(turn: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ThreadBusy, R>
}

export const make = (id: ThreadID, most: number = maxWaiting): ThreadTurns => {
  const mutex = Effect.unsafeMakeSemaphore(1)
  let turns = 0
  return {
    run: (turn) =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          if (turns > most) return new ThreadBusy({ id, waiting: turns - 1 })
          turns += 1
          return Effect.void
        }),
        () => mutex.withPermits(1)(turn),
        () => Effect.sync(() => void (turns -= 1))
      )
  }
}

export interface Preparation<E, R> {
  /** Tokens of the model's window. */
  readonly contextWindow: number
  readonly settings?: ThreadCompaction.CompactionSettings
  readonly summarize: Summarize<E, R>
}

export interface Thread {
  readonly metadata: Effect.Effect<ThreadMetadata>
  /** What was wrong with the records when the thread was opened. */
  readonly problems: ReadonlyArray<Problem>
  /** Runs a turn; turns of one thread never overlap. Interrupting a waiting one withdraws it. */
  readonly run: ThreadTurns["run"]
  /** Appends the messages durably, then updates the metadata. All or none; `used` is added to the metrics. */
  readonly append: (
    messages: Arr.NonEmptyReadonlyArray<ThreadMessage>,
    used?: Partial<Omit<ThreadMetrics, "totalToolCalls">>
  ) => Effect.Effect<ReadonlyArray<MessageRecord>, RecordRefused | StorageFailed>
  /** All records of the file, in order; damaged lines are skipped. */
  readonly history: Stream.Stream<ThreadRecord, FileMissing | StorageFailed>
  readonly context: Effect.Effect<ReadonlyArray<ThreadMessage>>
  readonly compact: <E, R>(
    summarize: Summarize<E, R>,
    settings?: ThreadCompaction.CompactionSettings
  ) => Effect.Effect<Option.Option<CompactionRecord>, E | SummaryUnusable | RecordRefused | StorageFailed, R>
  /** The messages for the model, after a compaction if they exceed its window. Compacts once at most. */
  readonly prepare: <E, R>(
    preparation: Preparation<E, R>
  ) => Effect.Effect<ReadonlyArray<ThreadMessage>, E | SummaryUnusable | RecordRefused | StorageFailed, R>
  readonly rename: (name: string) => Effect.Effect<ThreadMetadata, StorageFailed>
}

export const metadataText = (metadata: ThreadMetadata): string => `${JSON.stringify(metadata, null, 2)}\n`

const isRecord = (value: Readonly<Record<string, unknown>>): boolean => "recordType" in value

const reading = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<ThreadRecord | Problem, E, R> =>
  bytes.pipe(
    JsonLines.read({ isRecord }),
    Stream.map((piece): ThreadRecord | Problem => {
      if (piece._tag === "Problem") return piece
      const details = "The record has an unknown type or version, or a wrong field; it is not shown."
      return Either.getOrElse(decodeRecord(piece.value), (): Problem => ({
        _tag: "Problem",
        place: piece.place,
        kind: "unknown-record",
        details
      }))
    })
  )

const isProblem = (read: ThreadRecord | Problem): read is Problem => "_tag" in read

/** Problems that are kept of one file. */
const mostProblems = 100

/** The records that the model is shown, with the compaction; and messages from `from` on. */
const visible = (records: ReadonlyArray<ThreadRecord>, from = Infinity): ReadonlyArray<ThreadRecord> => {
  const { compaction, messages } = shownOf(records)
  const shown = new Set<ThreadRecord>(messages)
  return records.filter((record) => record === compaction || shown.has(record) || record.seq >= from)
}

interface Loaded {
  readonly records: ReadonlyArray<ThreadRecord>
  readonly problems: ReadonlyArray<Problem>
  readonly messageCount: number
  readonly highestSeq: number
  readonly lastMessageAt: string | undefined
}

/** What a file's records say. `from`: a compaction that is read later keeps messages from there on. */
const load = Effect.fnUntraced(function* (
  path: string,
  from = Infinity
): Effect.fn.Return<Loaded, FileMissing | StorageFailed, SessionStorage> {
  const storage = yield* SessionStorage
  const problems: Array<Problem> = []
  let records: Array<ThreadRecord> = []
  let [messageCount, highestSeq, lastMessageAt]: [number, number, string | undefined] = [0, 0, undefined]
  /** Messages were let go up to here, and are wanted from here on. */
  let [gone, wanted] = [-1, from]
  yield* Stream.runForEach(reading(storage.readBytes(path)), (read) =>
    Effect.sync(() => {
      if (isProblem(read)) {
        if (problems.length < mostProblems) problems.push(read)
        return
      }
      records.push(read)
      highestSeq = Math.max(highestSeq, read.seq)
      if (read.recordType === "compaction") {
        if (read.firstKeptSeq <= gone) wanted = Math.min(wanted, read.firstKeptSeq)
        const left = new Set(visible(records, from))
        for (const record of records) if (!left.has(record)) gone = Math.max(gone, record.seq)
        records = [...left]
      } else [messageCount, lastMessageAt] = [messageCount + 1, read.timestamp]
    })
  )
  // A later compaction keeps what an earlier one did not: once more, with that.
  if (wanted < from) return yield* load(path, wanted)
  return { records: visible(records), problems, messageCount, highestSeq, lastMessageAt }
})

const noMetrics: ThreadMetrics = { totalTurns: 0, totalTokens: 0, totalToolCalls: 0, totalDurationMs: 0 }

type TurnMetrics = Partial<Omit<ThreadMetrics, "totalToolCalls">>

const addMetrics = (
  metrics: ThreadMetrics,
  used: TurnMetrics,
  messages: ReadonlyArray<ThreadMessage>
): ThreadMetrics => ({
  totalTurns: metrics.totalTurns + (used.totalTurns ?? 0),
  totalTokens: metrics.totalTokens + (used.totalTokens ?? 0),
  totalToolCalls: metrics.totalToolCalls + messages.reduce((calls, { content }) => calls + callsOf(content).length, 0),
  totalDurationMs: metrics.totalDurationMs + (used.totalDurationMs ?? 0)
})

const messageRecord = (seq: number, message: ThreadMessage, timestamp: string): MessageRecord => ({
  recordType: "message",
  schemaVersion: 1,
  seq,
  ...message,
  timestamp
})

/** Opens the thread of a folder until the scope closes. Mends a count that a crash left behind (TH-5). */
export const open = Effect.fn("Thread.open")(function* (
  folder: string,
  stored: ThreadMetadata
): Effect.fn.Return<Thread, FileMissing | SessionLocked | StorageFailed, SessionStorage | Scope.Scope> {
  const storage = yield* SessionStorage
  const path = join(folder, recordsFile)
  yield* storage.lock(path)
  const loaded = yield* load(path)
  const writer = yield* storage.openWriter(path)
  const latch = loggedLatch(path)
  const writing = yield* Effect.makeSemaphore(1)
  const turns = make(stored.id)
  const { problems } = loaded
  let records = [...loaded.records]
  let metadata: ThreadMetadata = stored

  const save = (next: ThreadMetadata) =>
    Effect.map(storage.writeText(join(folder, metadataFile), metadataText(next)), () => (metadata = next))
  /** One change at a time, also of an interrupted caller: a line that was written is counted. */
  const change = <A, E, R>(use: Effect.Effect<A, E, R>) =>
    writing.withPermits(1)(Effect.uninterruptible(latch.guard(use)))
  const nextSeq = () => metadata.nextSeq ?? 1
  const now = Effect.map(Clock.currentTimeMillis, (time) => new Date(time).toISOString())
  const write = (record: ThreadRecord, line: string) =>
    Effect.map(writer.writeLine(line), () => void records.push(record))

  const due = Math.max(stored.nextSeq ?? 1, loaded.highestSeq + 1)
  if (stored.messageCount !== loaded.messageCount || stored.nextSeq !== due) {
    const lastMessageAt = loaded.lastMessageAt ?? stored.lastMessageAt
    yield* save({ ...stored, messageCount: loaded.messageCount, lastMessageAt, nextSeq: due })
  }

  const append: Thread["append"] = (messages, used = {}) =>
    change(
      Effect.gen(function* () {
        const timestamp = yield* now
        const written = messages.map((message, at) => messageRecord(nextSeq() + at, message, timestamp))
        const lines = yield* Effect.forEach(written, (record) =>
          Either.map(recordLine(record), (line) => [record, line] as const)
        )
        for (const [record, line] of lines) yield* write(record, line)
        yield* writer.fsync
        yield* save({
          ...metadata,
          lastMessageAt: timestamp,
          messageCount: metadata.messageCount + written.length,
          metrics: addMetrics(metadata.metrics ?? noMetrics, used, messages),
          nextSeq: nextSeq() + written.length
        })
        return written
      })
    )

  const compact: Thread["compact"] = (summarize, settings = ThreadCompaction.defaultSettings) =>
    Effect.gen(function* () {
      const plan = ThreadCompaction.planOf(records, settings)
      if (plan === undefined) return Option.none()
      const summary = yield* summaryOf(plan, summarize)
      const appended = Effect.gen(function* () {
        const record: CompactionRecord = {
          recordType: "compaction",
          schemaVersion: 1,
          seq: nextSeq(),
          firstKeptSeq: plan.firstKeptSeq,
          summary,
          tokensBefore: plan.tokensBefore,
          ...plan.files,
          timestamp: yield* now
        }
        yield* write(record, yield* recordLine(record))
        yield* writer.fsync
        records = [...visible(records)]
        yield* save({ ...metadata, nextSeq: nextSeq() + 1 })
        return Option.some(record)
      })
      return yield* change(appended)
    })

  const context = Effect.sync(() => contextOf(records))

  return {
    metadata: Effect.sync(() => metadata),
    problems,
    run: turns.run,
    append,
    history: Stream.filter(reading(storage.readBytes(path)), (read): read is ThreadRecord => !isProblem(read)),
    context,
    compact,
    prepare: ({ contextWindow, settings = ThreadCompaction.defaultSettings, summarize }) =>
      Effect.gen(function* () {
        const messages = yield* context
        if (!ThreadCompaction.isDue(totalTokens(messages), contextWindow, settings)) return messages
        yield* compact(summarize, settings)
        return yield* context
      }),
    rename: (name) => change(Effect.suspend(() => save({ ...metadata, name })))
  }
})

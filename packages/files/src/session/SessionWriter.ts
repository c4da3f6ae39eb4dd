/**
 * Writes one session's folder: appends events to the logs in portions (`Appending.ts`), then brings values and context
 * up to the logs. `Writer.ts` caches sessions, `Repair.ts` repairs files. Every step can be
 * killed and repeated. The exporter calls one operation at a time. Spec: FI-64, FI-69..FI-83, FI-89, FI-95 in
 * specs/files.md (FL-6, FL-8).
 */
import { Effect, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { isStored, type Text } from "@daybook/transcript/Fold"
import type { PackState } from "../context/PackState.ts"
import type { Sum } from "../disk/FileCalls.ts"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { isPermitted } from "../layout/Layout.ts"
import type { SessionRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import * as Pieces from "../render/Pieces.ts"
import { answerFrom, keptReaderOf, type Source, sumOfStream } from "../render/Pieces.ts"
import { isLog, logs } from "../render/Rendering.ts"
import * as SessionContext from "../render/SessionContext.ts"
import { blobFile, contextFolders, contextPrefix } from "../render/SessionContext.ts"
import { entryOf, type IndexEntry, valueFiles } from "../render/Values.ts"
import { adopt } from "./Adoption.ts"
import * as Appending from "./Appending.ts"
import { advance, drop, flush } from "./Appending.ts"
import type { CachedState, WriteError } from "./CachedSession.ts"
import * as Repair from "./Repair.ts"
import * as Writer from "./Writer.ts"
import { remembered } from "./Writer.ts"

// Brings a session's values and context up to its logs, and restores changed files.

const nothing: Source = { size: 0, bytes: Stream.empty }

/** The context that the last step was shown. Swapped lines are read from the logs, which are repaired by now. */
const contextAt = (writer: Writer.Writer, session: CachedState, name: string, pack: PackState) =>
  SessionContext.contextOf({
    sessionID: SessionID.make(session.record.id),
    session: name,
    state: pack,
    digest: (at, bytes) => writer.tracker.files.digest(`${session.folder.path}/messages.jsonl`, at, bytes)
  }).pipe(Effect.provideService(EventLog, writer.log), Effect.provideService(SessionStore, writer.store))

/** The context at the session's end; keeps the hashes that it computes. */
const contextOf = (writer: Writer.Writer, session: CachedState, name: string) =>
  Effect.map(contextAt(writer, session, name, session.rendering.pack), ({ files, state }) => {
    session.rendering = { ...session.rendering, pack: state }
    return files
  })

/** Adopts the session's unrecorded files at the end of its log, so that no value goes back to an earlier one. */
const takeOver = Effect.fnUntraced(function* (writer: Writer.Writer, id: string) {
  yield* advance(writer, id)
  const session = yield* writer.cache.load(id)
  if (session === undefined || session.record.seq < 0) return session
  const { fold } = session.rendering
  const address = Writer.addressAt(writer, id, fold)
  if (address === undefined) return session
  const entry = yield* adopt(
    {
      tracker: writer.tracker,
      log: writer.log,
      contextOf: (session, name, pack) => Effect.map(contextAt(writer, session, name, pack), ({ files }) => files)
    },
    session,
    address
  )
  if (entry !== undefined) {
    const entries = writer.adopted.get(session.record.index) ?? new Map<string, IndexEntry>()
    writer.adopted.set(session.record.index, entries.set(id, entry))
  }
  session.ahead = false
  return session
})

/** A long answer, read from the log as it is written. */
const streamed = Effect.fnUntraced(function* (writer: Writer.Writer, id: string, latest: ReadonlyArray<Text>) {
  const bytes = answerFrom(latest, keptReaderOf(writer, id))
  const sum = writer.answers.get(latest) ?? (yield* sumOfStream(bytes))
  writer.answers.set(latest, sum)
  return { sum, bytes }
})

/** Brings values and context up to the logs. `atEnd`: the log has no more events, so surplus bytes are not ours. */
const finish = Effect.fnUntraced(function* (writer: Writer.Writer, id: string, { atEnd }: { readonly atEnd: boolean }) {
  const { tracker } = writer
  const { files } = tracker
  yield* flush(writer, id)
  const loaded = yield* writer.cache.load(id)
  const session = loaded?.ahead === true ? yield* takeOver(writer, id) : loaded
  // Nothing was written of it yet.
  if (session === undefined || session.record.seq < 0) return
  const { folder, record, rendering } = session
  const { fold, pack } = rendering
  const address = Writer.addressAt(writer, id, fold)
  if (address === undefined) return yield* drop(writer, id)
  yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
  // Refuses anything but a regular file before anything changes.
  for (const name of folder.records.keys()) yield* files.stamp(`${folder.path}/${name}`)
  for (const name of logs) {
    yield* Repair.mend(writer, session, name, nothing, atEnd)
    yield* Repair.permitLog(writer, session, name)
  }
  const long = fold.latest?.some(isStored) === true ? yield* streamed(writer, id, fold.latest) : ""
  const values = valueFiles(fold, address, () => long)
  // The context is that of the last step and changes only with a later one.
  let due = (pack.step?.seq ?? -1) > record.shown
  let context = due ? yield* contextOf(writer, session, address.session) : new Map<string, TrackedFolder.Content>()
  const sums = new Map<string, Sum>(
    [...context, ...values].map(([name, content]) => [name, TrackedFolder.sumOf(content)])
  )
  const names = [...folder.records.keys(), ...sums.keys()].filter((name) => !isLog(name))
  const inspection = yield* TrackedFolder.inspect(tracker, folder, names, sums)
  const broken = new Set([...inspection.foreign, ...inspection.missing])
  const restored = yield* Repair.restoreBlobs(writer, session, inspection, broken)
  const foreign = new Set([...inspection.foreign].filter((name) => !restored.has(name)))
  if (!due && [...broken].some((name) => name.startsWith(contextPrefix))) {
    due = true
    context = yield* contextOf(writer, session, address.session)
  }
  const spared = (name: string): boolean =>
    isLog(name) ||
    folder.records.get(name)?.lasting === true ||
    (!due && name.startsWith(contextPrefix) && !foreign.has(name))
  yield* TrackedFolder.bring(
    tracker,
    folder,
    new Map<string, TrackedFolder.Content<ReadError>>([...context, ...values]),
    { ...inspection, foreign },
    spared
  )
  // Before the session is recorded as shown, so that a kill repeats it.
  if (due) yield* removeEmptied(files, folder)
  const entry = JSON.stringify(entryOf(fold, address.session))
  const follows = entry !== record.entry
  // It is no longer behind once its whole log was read.
  const behind = record.behind && !session.whole
  if (follows || record.shown !== record.seq || record.behind !== behind) {
    session.record = { ...record, shown: record.seq, entry, behind }
    // With a checkpoint, because retention may remove the events before it.
    yield* writer.cache.keep(session, new Map(), 1)
  }
  if (follows) writer.indexes.add(record.index)
})

// Checks whether a session's files are unchanged since they were written, and rewrites them from the log.

/** Equals no file's content. */
const noContent: Sum = { size: -1, crc: 0 }

/** Removes context folders that became empty. */
const removeEmptied = (files: SafeFiles, folder: TrackedFolder.Folder) =>
  Effect.forEach(
    contextFolders.filter((path) => ![...folder.records.keys()].some((name) => name.startsWith(`${path}/`))),
    (path) => files.removeFolder(`${folder.path}/${path}`),
    { discard: true }
  )

/** Whether all files of a recorded session are unchanged since they were written. */
const intact = Effect.fnUntraced(function* ({ tracker }: Pick<Writer.Writer, "tracker">, record: SessionRecord) {
  const { files, ledger, modes } = tracker
  if (record.behind || record.shown !== record.seq) return false
  const folder = { path: record.folder, records: new Map(yield* ledger.files(record.folder)) }
  if (!(yield* files.reach(`${folder.path}/context`))) return false
  yield* TrackedFolder.sweepLeftovers(tracker, folder)
  yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
  yield* removeEmptied(files, folder)
  for (const [name, { next, size, stamp }] of folder.records) {
    const found = yield* files.stamp(`${folder.path}/${name}`)
    if (found?.text !== stamp || found.size !== size || next !== null) return false
    if (!isPermitted(modes, folder.path, found)) return false
  }
  return true
})

/** Whether the blob's content has the hash in its name. */
const isNamedByContent = Effect.fnUntraced(function* (files: SafeFiles, folder: TrackedFolder.Folder, name: string) {
  const path = `${folder.path}/${name}`
  const found = yield* files.stamp(path)
  return found !== undefined && name === blobFile(`sha256-${yield* files.digest(path, 0, found.size)}`)
})

/** Renders the logs again and replaces each log that differs; `finish` does the same for the other files. */
const rewrite = Effect.fnUntraced(function* (writer: Writer.Writer, id: string): Effect.fn.Return<void, WriteError> {
  yield* advance(writer, id)
  const session = yield* writer.cache.load(id)
  if (session === undefined) return
  for (const name of logs) yield* Repair.restore(writer, session, name, "unknown")
  // Forces a comparison of contents instead of stamps, and a new context.
  for (const [name, record] of session.folder.records) {
    if (isLog(name)) continue
    const unknown = record.lasting && !(yield* isNamedByContent(writer.tracker.files, session.folder, name))
    session.folder.records.set(name, { ...record, ...(unknown ? noContent : {}), stamp: "?" })
  }
  session.record = { ...session.record, shown: -1 }
})

/** The writer of all sessions under one root. */
export const make = (options: Writer.WriterOptions) => {
  const writer = Writer.make(options)
  const { adopted, indexes, waiting } = writer
  return {
    /** Takes events of one session in order and skips known ones. Written per portion, `flush` or `finish`. */
    append: (id: string, events: ReadonlyArray<SessionEvent>) => Appending.append(writer, id, events),
    flush: (id: string) => Appending.flush(writer, id),
    leave: (id: string) => Appending.leave(writer, id),
    advance: (id: string) => Appending.advance(writer, id),
    finish: (id: string, options: { readonly atEnd: boolean }) => finish(writer, id, options),
    intact: (record: SessionRecord) => intact(writer, record),
    rewrite: (id: string) => rewrite(writer, id),
    drop: (id: string) => drop(writer, id),
    forget: (id: string) => Writer.forget(writer, id),
    /** The former entries in this index of adopted sessions. */
    adopted: (index: string) => [...(adopted.get(index)?.values() ?? [])],
    /** The folders of indexes to be written. */
    dueIndexes: () => [...indexes],
    written: (index: string) => void indexes.delete(index),
    waiting: () => [...waiting.keys()],
    /** Whether the pending portions together have reached the memory bound. */
    isFull: () =>
      waiting.size > remembered || [...waiting.values()].reduce((sum, { size }) => sum + size, 0) >= Pieces.portionLimit
  }
}

export type SessionWriter = ReturnType<typeof make>

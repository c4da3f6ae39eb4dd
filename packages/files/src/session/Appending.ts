/**
 * Appends a session's events to its two logs, a portion at a time. A session that is behind, or was created again, is
 * read from the log. Spec: FI-69, FI-75, FI-81, FI-82 in specs/files.md (FL-6, FL-8).
 */
import { Effect } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { SessionNotFound } from "@daybook/log/log/EventLog"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { addressOf, sessionFolder } from "../layout/Layout.ts"
import type { FileRecord, SessionRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import * as Pieces from "../render/Pieces.ts"
import { linesFrom, readerOf } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { isLog, logs, piecesOf } from "../render/Rendering.ts"
import { contextFolders, contextPrefix } from "../render/SessionContext.ts"
import type { CachedState, WriteError } from "./CachedSession.ts"
import * as Repair from "./Repair.ts"
import { addressAt, checkpointEvery, emptyLogs, forget, placeOf, unwritten, type Writer } from "./Writer.ts"

// Removes the files of a session that was removed or moved to another address; each step can be repeated.

/** Whether the file holds recorded or intended content; for a log, its beginning. Undefined if it is absent. */
const isOurs = Effect.fnUntraced(function* (files: SafeFiles, path: string, name: string, record: FileRecord) {
  const found = yield* files.stamp(path)
  if (found === undefined) return undefined
  if (found.text === record.stamp) return true
  if (isLog(name)) return TrackedFolder.same(yield* files.sum(path, record.size), record)
  const sum = yield* files.sum(path)
  return TrackedFolder.same(sum, record) || TrackedFolder.same(sum, record.next)
})

/** Removes one file of a removed session. A refused path is reported and left, and does not stop the others. */
const removeFile = (tracker: TrackedFolder.Tracker, folder: TrackedFolder.Folder, name: string, record: FileRecord) =>
  Effect.gen(function* () {
    const path = `${folder.path}/${name}`
    if (!(yield* tracker.files.reach(path.slice(0, path.lastIndexOf("/"))))) return
    const ours = yield* isOurs(tracker.files, path, name, record)
    if (ours === true) yield* tracker.files.remove(path)
    else if (ours === false) yield* TrackedFolder.setAside(tracker, folder, name)
  }).pipe(
    Effect.catchTag("PathRefused", (error) => TrackedFolder.report(tracker, folder, name, "refused", error.message))
  )

/** Removes the session's own files, and then its record. */
export const drop = Effect.fnUntraced(function* (writer: Writer, id: string) {
  const { tracker } = writer
  const { files, ledger } = tracker
  forget(writer, id)
  const record = yield* ledger.session(id)
  if (record === undefined) return
  writer.indexes.add(record.index)
  const folder = yield* TrackedFolder.recorded(ledger, record)
  if (yield* files.reach(folder.path)) {
    yield* TrackedFolder.sweepLeftovers(tracker, folder)
    for (const [name, file] of folder.records) yield* removeFile(tracker, folder, name, file)
    for (const path of contextFolders) yield* files.removeFolder(`${folder.path}/${path}`)
    yield* files.removeFolder(`${folder.path}/${contextPrefix}`)
    yield* files.removeEmpty(folder.path)
  }
  yield* ledger.keep(folder.path, new Map([...folder.records.keys()].map((name) => [name, undefined])))
  yield* ledger.forget(id)
})

/** The context folder exists even while it is empty. */
const inContext = [contextPrefix]

export const flush = (writer: Writer, id: string): Effect.Effect<void, WriteError> =>
  Effect.suspend(() => {
    const portion = writer.waiting.get(id)
    writer.waiting.delete(id)
    return portion === undefined ? Effect.void : write(writer, id, portion)
  })

/** Begins a session that was not written yet. */
const begin = Effect.fnUntraced(function* ({ tracker }: Writer, record: SessionRecord) {
  const { files, ledger } = tracker
  const { folder: path } = record
  const session: CachedState = {
    record,
    rendering: Rendering.initial,
    folder: yield* TrackedFolder.recorded(ledger, record),
    whole: false,
    // Existing files may be ours, of a lost record.
    ahead: yield* files.reach(path)
  }
  // Recorded before the first byte, so that a session removed after a kill leaves nothing behind.
  for (const [name, empty] of emptyLogs) session.folder.records.set(name, empty)
  yield* ledger.keep(path, emptyLogs, record)
  yield* TrackedFolder.sweepLeftovers(tracker, session.folder)
  return session
})

/** Appends a portion to both logs, then records it. */
const write = Effect.fnUntraced(function* (writer: Writer, id: string, portion: Pieces.Portion) {
  const before = yield* writer.cache.load(id)
  const { position, seq } = portion
  const { rendering } = portion.run
  const { fold } = rendering
  const address = addressAt(writer, id, fold)
  if (address === undefined) return yield* drop(writer, id)
  const path = sessionFolder(address)
  if (before !== undefined && before.record.folder !== path) {
    // Its address changed: it is written whole at the new one. Files of pruned events stay.
    yield* Repair.isWhole(writer.log, id)
    yield* drop(writer, id)
    return yield* advance(writer, id)
  }
  const session = before ?? (yield* begin(writer, unwritten(placeOf(id, address), portion.first)))
  yield* TrackedFolder.ensureFolders(writer.tracker, session.folder, inContext)
  const changes = new Map<string, FileRecord>()
  const read = readerOf(writer.log, id)
  const next = logs.map((name) => ({ name, source: linesFrom(piecesOf(portion, name), read) }))
  // Check both before either changes.
  for (const { name } of next) yield* writer.tracker.files.stamp(`${path}/${name}`)
  yield* Repair.keepBlobs(writer, session, portion.blobs, () => true)
  let ahead = session.ahead
  for (const { name, source } of next) {
    const surplus = yield* Repair.mend(writer, session, name, source, false)
    ahead ||= surplus > 0
    const untouched = source.size === 0 && session.folder.records.get(name)?.stamp !== ""
    if (!untouched)
      changes.set(name, yield* TrackedFolder.append(writer.tracker, session.folder, name, source, surplus))
  }
  const first = session.record.seq < 0 ? portion.first : session.record.first
  const record: SessionRecord = { ...session.record, first, seq, position }
  const moved: CachedState = { ...session, record, rendering, settled: portion.settled ?? session.settled, ahead }
  yield* writer.cache.keep(moved, changes, checkpointEvery(record))
  for (const [name, record] of changes) session.folder.records.set(name, record)
  yield* writer.cache.remember(id, moved)
})

/** Renders new events and writes each full portion. */
const gather = Effect.fnUntraced(function* (writer: Writer, id: string, events: ReadonlyArray<SessionEvent>) {
  for (const event of events) {
    let portion = writer.waiting.get(id)
    if (portion === undefined) {
      const session = yield* writer.cache.load(id)
      if (event.seq <= (session?.record.seq ?? -1)) continue
      portion = Pieces.begin(session?.rendering ?? Rendering.initial, event)
      writer.waiting.set(id, portion)
    }
    if (event.seq > portion.seq) Pieces.take(portion, event)
    if (portion.size < Pieces.portionLimit) continue
    yield* flush(writer, id)
    // Its address changed to one without files.
    if ((yield* writer.cache.load(id)) === undefined) return
  }
})

/** Takes events of one session in order and skips known ones. */
export const append = Effect.fnUntraced(function* (writer: Writer, id: string, events: ReadonlyArray<SessionEvent>) {
  const portion = writer.waiting.get(id)
  const record = portion === undefined ? (yield* writer.cache.load(id))?.record : undefined
  const at = portion ?? record
  if (at !== undefined && events.some(({ position, seq }) => seq <= at.seq && position > at.position)) {
    // Removed, and created again under its id.
    writer.waiting.delete(id)
    yield* drop(writer, id)
    return yield* advance(writer, id)
  }
  const seq = at?.seq ?? -1
  const next = events.filter((event) => event.seq > seq)
  // After a gap, or while behind, read the log: it knows whether an event is missing.
  if (record?.behind === true || next.some((event, index) => event.seq !== seq + 1 + index))
    return yield* advance(writer, id)
  yield* gather(writer, id, next)
})

/** The incarnation that the record belongs to. If it has ended, nothing is added: its removal comes next. */
const incarnationOf = Effect.fnUntraced(function* (writer: Writer, { id, position, seq }: SessionRecord) {
  if (seq < 0) return undefined
  const sessionID = SessionID.make(id)
  const { incarnation } = yield* writer.log.head(sessionID)
  // It is the position of the session's first event.
  if (incarnation <= position) return incarnation
  return yield* new SessionNotFound({ sessionID, removed: true })
})

/** Takes and writes all events of the session's log. */
export const advance = (writer: Writer, id: string): Effect.Effect<void, WriteError> =>
  Effect.gen(function* () {
    // The log holds these events too.
    writer.waiting.delete(id)
    const record = (yield* writer.cache.load(id))?.record
    let after = record?.seq ?? -1
    let incarnation = record === undefined ? undefined : yield* incarnationOf(writer, record)
    while (true) {
      const page = yield* writer.log.read({ sessionID: SessionID.make(id), after, incarnation })
      incarnation = page.incarnation
      yield* gather(writer, id, page.events)
      if (!writer.waiting.has(id) && (yield* writer.cache.load(id)) === undefined) return
      if (!page.hasMore) break
      after = page.cursor
    }
    yield* flush(writer, id)
    const session = yield* writer.cache.load(id)
    if (session !== undefined) session.whole = true
  })

/** Writes the pending portion and marks the session behind; returns its folder. */
export const leave = Effect.fnUntraced(function* (writer: Writer, id: string): Effect.fn.Return<string, WriteError> {
  yield* flush(writer, id)
  const record = yield* writer.tracker.ledger.session(id)
  if (record !== undefined) {
    yield* writer.tracker.ledger.setBehind(id)
    forget(writer, id)
    return record.folder
  }
  // None of its events can be read: it is recorded under the address of a session that was given none.
  const address = addressOf({ id }, undefined, writer.uid)
  if (address === undefined) return ""
  const begun: SessionRecord = { ...unwritten(placeOf(id, address), ""), behind: true }
  yield* writer.tracker.ledger.keep(begun.folder, emptyLogs, begun)
  return begun.folder
})

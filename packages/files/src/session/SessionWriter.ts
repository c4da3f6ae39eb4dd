/**
 * Writes one session's folder: appends events to the logs in portions (`Portion.ts`), then brings the single values and
 * the context up to the logs. `SessionCache.ts` caches sessions, `Repair.ts` repairs files. Every step can be killed
 * and repeated. The exporter calls one operation at a time. Spec: FI-69..FI-83 in specs/files.md (FL-6, FL-8).
 */
import { Effect, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReadError, SessionNotFound } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { isStored, type Text } from "@daybook/transcript/Fold"
import type { PackState } from "../context/PackState.ts"
import type { Sum } from "../disk/SafeFiles.ts"
import { addressOf, indexFolder, sessionFolder } from "../layout/Layout.ts"
import { isPermitted } from "../layout/Modes.ts"
import type { FileRecord, SessionRecord } from "../record/Ledger.ts"
import * as LogFile from "../record/LogFile.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { entryOf, type IndexEntry } from "../render/IndexFiles.ts"
import { answerFrom, linesFrom, readerOf, type Source, sumOfStream } from "../render/Pieces.ts"
import * as Portion from "../render/Portion.ts"
import * as Rendering from "../render/Rendering.ts"
import { isLog, logs, piecesOf } from "../render/Rendering.ts"
import * as SessionContext from "../render/SessionContext.ts"
import { blobFile, contextFolders, contextPrefix } from "../render/SessionContext.ts"
import { valueFiles } from "../render/Values.ts"
import * as Adoption from "./Adoption.ts"
import type { Known, WriteError } from "./CachedSession.ts"
import * as Repair from "./Repair.ts"
import * as SessionCache from "./SessionCache.ts"
import { checkpointEvery, remembered } from "./SessionCache.ts"

export interface WriterOptions {
  readonly tracker: TrackedFolder.Tracker
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  /** The owner of sessions without an address. */
  readonly uid: number
}

/** Equals no file's content. */
const noContent: Sum = { size: -1, crc: 0 }

const nothing: Source = { size: 0, bytes: Stream.empty }

/** The context folder exists even while it is empty. */
const inContext = [contextPrefix]

export interface SessionWriter {
  /**
   * Takes events of one session in order and skips known ones. They are written when a portion is full, or by `flush`
   * or `finish`.
   */
  readonly append: (id: string, events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, WriteError>
  /** Writes the session's pending portion. */
  readonly flush: (id: string) => Effect.Effect<void, WriteError>
  /**
   * Writes the session's pending portion and marks the session behind, to be retried from the log; returns its folder.
   */
  readonly leave: (id: string) => Effect.Effect<string, WriteError>
  /** Sessions with a pending portion. */
  readonly waiting: () => ReadonlyArray<string>
  /** Whether the pending portions together have reached the memory bound. */
  readonly isFull: () => boolean
  /** Takes and writes all events of the session's log. */
  readonly advance: (id: string) => Effect.Effect<void, WriteError>
  /**
   * Brings values and context up to the logs and restores changed files. `atEnd` says that the session's log has no
   * more events, so that surplus bytes in a file are not ours.
   */
  readonly finish: (id: string, options: { readonly atEnd: boolean }) => Effect.Effect<void, WriteError>
  /** Whether all files of a recorded session are unchanged since they were written. */
  readonly intact: (record: SessionRecord) => Effect.Effect<boolean, TrackedFolder.TrackError>
  /** Renders the logs again and replaces those that differ; `finish` does the same for the other files. */
  readonly rewrite: (id: string) => Effect.Effect<void, WriteError>
  /** Removes the session's own files. */
  readonly drop: (id: string) => Effect.Effect<void, TrackedFolder.TrackError>
  /** The former entries in this index of adopted sessions. */
  readonly adopted: (index: string) => ReadonlyArray<IndexEntry>
  /** The folders of indexes to be written. */
  readonly dueIndexes: () => ReadonlyArray<string>
  /** Marks the index as written. */
  readonly written: (index: string) => void
  /** Drops the cached state and the pending portion; written files stay. */
  readonly forget: (id: string) => void
}

const emptyLogs: ReadonlyMap<string, FileRecord> = new Map(logs.map((name) => [name, LogFile.empty]))

/** The record of a session before its first write. */
const unwritten = (id: string, address: Exclude<ReturnType<typeof addressOf>, undefined>, first: string) => ({
  id,
  folder: sessionFolder(address),
  index: indexFolder(address),
  seq: -1,
  position: 0,
  first,
  shown: -1,
  checkpointSeq: -1,
  checkpointSize: 0,
  entry: null,
  behind: false
})

/** The writer of all sessions under one root. */
export const make = ({ tracker, log, store, uid }: WriterOptions): SessionWriter => {
  const { files, ledger, modes } = tracker
  const sessions = SessionCache.make({ tracker, log })
  const { keep, load, remember } = sessions
  const { keepBlobs, mend, permitLog, restore, restoreBlobs } = Repair.make(tracker, log, sessions)
  const indexes = new Set<string>()
  const waiting = new Map<string, Portion.Portion>()

  /** Writes the session's pending portion. */
  const flush = (id: string): Effect.Effect<void, WriteError> =>
    Effect.suspend(() => {
      const portion = waiting.get(id)
      waiting.delete(id)
      return portion === undefined ? Effect.void : write(id, portion)
    })

  const write = Effect.fnUntraced(function* (id: string, portion: Portion.Portion): Effect.fn.Return<void, WriteError> {
    const before = yield* load(id)
    const { position, seq } = portion
    const { rendering } = portion.run
    const { fold } = rendering
    const address = addressOf({ id, agent: fold.firstAgent }, fold.address, uid)
    if (address === undefined) return yield* drop(id)
    const path = sessionFolder(address)
    if (before !== undefined && before.record.folder !== path) {
      // Its address changed: it is written whole at the new one.
      yield* drop(id)
      return yield* advance(id)
    }
    const session: Known = before ?? {
      record: unwritten(id, address, portion.first),
      rendering: Rendering.initial,
      folder: { path, sessionID: id, records: new Map(yield* ledger.files(path)) },
      whole: false,
      // Existing files may be ours, of a lost record.
      ahead: yield* files.reach(path)
    }
    if (before === undefined) {
      // Recorded before the first byte, so that a session removed after a kill leaves nothing behind.
      for (const [name, record] of emptyLogs) session.folder.records.set(name, record)
      yield* ledger.keep(path, emptyLogs, session.record)
      yield* TrackedFolder.sweepLeftovers(tracker, session.folder)
    }
    yield* TrackedFolder.ensureFolders(tracker, session.folder, inContext)
    const changes = new Map<string, FileRecord>()
    const read = readerOf(log, id)
    const next = logs.map((name) => ({ name, source: linesFrom(piecesOf(portion, name), read) }))
    // Check both before either changes.
    for (const { name } of next) yield* files.stamp(`${path}/${name}`)
    yield* keepBlobs(session, portion.blobs, () => true)
    let ahead = session.ahead
    for (const { name, source } of next) {
      const surplus = yield* mend(session, name, source, false)
      ahead ||= surplus > 0
      const untouched = source.size === 0 && session.folder.records.get(name)?.stamp !== ""
      if (!untouched) changes.set(name, yield* LogFile.append(tracker, session.folder, name, source, surplus))
    }
    const first = session.record.seq < 0 ? portion.first : session.record.first
    const record: SessionRecord = { ...session.record, first, seq, position }
    const moved: Known = { ...session, record, rendering, ahead }
    yield* keep(moved, changes, checkpointEvery(record))
    for (const [name, record] of changes) session.folder.records.set(name, record)
    yield* remember(id, moved)
  })

  /** Renders new events and writes each full portion. */
  const gather = Effect.fnUntraced(function* (
    id: string,
    events: ReadonlyArray<SessionEvent>
  ): Effect.fn.Return<void, WriteError> {
    for (const event of events) {
      let portion = waiting.get(id)
      if (portion === undefined) {
        const session = yield* load(id)
        if (event.seq <= (session?.record.seq ?? -1)) continue
        portion = Portion.begin(session?.rendering ?? Rendering.initial, event)
        waiting.set(id, portion)
      }
      if (event.seq > portion.seq) Portion.take(portion, event)
      if (portion.size < Portion.portionLimit) continue
      yield* flush(id)
      // Its address changed to one without files.
      if ((yield* load(id)) === undefined) return
    }
  })

  const append = Effect.fnUntraced(function* (
    id: string,
    events: ReadonlyArray<SessionEvent>
  ): Effect.fn.Return<void, WriteError> {
    const portion = waiting.get(id)
    const record = portion === undefined ? (yield* load(id))?.record : undefined
    const at = portion ?? record
    if (at !== undefined && events.some(({ position, seq }) => seq <= at.seq && position > at.position)) {
      // Removed, and created again under its id.
      waiting.delete(id)
      yield* drop(id)
      return yield* advance(id)
    }
    const seq = at?.seq ?? -1
    const next = events.filter((event) => event.seq > seq)
    // After a gap, or while behind, read the log: it knows whether an event is missing.
    if (record?.behind === true || next.some((event, index) => event.seq !== seq + 1 + index)) return yield* advance(id)
    yield* gather(id, next)
  })

  /** The incarnation that the record belongs to. If it has ended, nothing is added: its removal comes next. */
  const incarnationOf = Effect.fnUntraced(function* ({
    first,
    id
  }: SessionRecord): Effect.fn.Return<number | undefined, WriteError> {
    if (first === "") return undefined
    const sessionID = SessionID.make(id)
    const { incarnation } = yield* log.head(sessionID)
    // Its first event still exists, so it did when the head was read.
    if ((yield* log.placeOf(sessionID, first)) !== undefined) return incarnation
    return yield* new SessionNotFound({ sessionID, removed: true })
  })

  const advance = (id: string): Effect.Effect<void, WriteError> =>
    Effect.gen(function* () {
      // The log holds these events too.
      waiting.delete(id)
      const record = (yield* load(id))?.record
      let after = record?.seq ?? -1
      let incarnation = record === undefined ? undefined : yield* incarnationOf(record)
      while (true) {
        const page = yield* log.read({ sessionID: SessionID.make(id), after, incarnation })
        incarnation = page.incarnation
        yield* gather(id, page.events)
        if (!waiting.has(id) && (yield* load(id)) === undefined) return
        if (!page.hasMore) break
        after = page.cursor
      }
      yield* flush(id)
      const session = yield* load(id)
      if (session !== undefined) session.whole = true
    })

  const leave = Effect.fnUntraced(function* (id: string): Effect.fn.Return<string, WriteError> {
    yield* flush(id)
    const record = yield* ledger.session(id)
    if (record !== undefined) {
      yield* ledger.setBehind(id)
      forget(id)
      return record.folder
    }
    // None of its events can be read: it is recorded under the address of a session that was given none.
    const address = addressOf({ id }, undefined, uid)
    if (address === undefined) return ""
    const begun: SessionRecord = { ...unwritten(id, address, ""), behind: true }
    yield* ledger.keep(begun.folder, emptyLogs, begun)
    return begun.folder
  })

  const forget = (id: string): void => {
    waiting.delete(id)
    sessions.forget(id)
  }

  /** The context that the last step was shown. Swapped lines are read from the logs, which are repaired by now. */
  const contextAt = (session: Known, name: string, pack: PackState) =>
    SessionContext.contextOf(session.record.id, name, pack, (at, bytes) =>
      files.digest(`${session.folder.path}/messages.jsonl`, at, bytes)
    ).pipe(Effect.provideService(EventLog, log), Effect.provideService(SessionStore, store))

  const contextOf = (session: Known, name: string) =>
    Effect.map(contextAt(session, name, session.rendering.pack), ({ files, state }) => {
      session.rendering = { ...session.rendering, pack: state }
      return files
    })

  const { adopt } = Adoption.make({
    tracker,
    log,
    contextOf: (session, name, pack) => Effect.map(contextAt(session, name, pack), ({ files }) => files)
  })

  /** The former index entries of adopted sessions, by index folder. */
  const adopted = new Map<string, Map<string, IndexEntry>>()

  /** Adopts the session's unrecorded files at the end of its log, so that no value goes back to an earlier one. */
  const takeOver = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Known | undefined, WriteError> {
    yield* advance(id)
    const session = yield* load(id)
    if (session === undefined || session.record.seq < 0) return session
    const { fold } = session.rendering
    const address = addressOf({ id, agent: fold.firstAgent }, fold.address, uid)
    if (address === undefined) return session
    const entry = yield* adopt(session, address)
    if (entry !== undefined) {
      const entries = adopted.get(session.record.index) ?? new Map<string, IndexEntry>()
      adopted.set(session.record.index, entries.set(id, entry))
    }
    session.ahead = false
    return session
  })

  /** Checksums of long answers: each is read once for its checksum and once to be written. */
  const answers = new WeakMap<ReadonlyArray<Text>, Sum>()

  /** A long answer, read from the log as it is written. */
  const streamed = Effect.fnUntraced(function* (id: string, latest: ReadonlyArray<Text>) {
    const bytes = answerFrom(latest, readerOf(log, id))
    const sum = answers.get(latest) ?? (yield* sumOfStream(bytes))
    answers.set(latest, sum)
    return { sum, bytes }
  })

  /** Removes context folders that became empty. */
  const removeEmptied = (folder: TrackedFolder.Folder) =>
    Effect.forEach(
      contextFolders.filter((path) => ![...folder.records.keys()].some((name) => name.startsWith(`${path}/`))),
      (path) => files.removeFolder(`${folder.path}/${path}`),
      { discard: true }
    )

  const finish = Effect.fnUntraced(function* (
    id: string,
    { atEnd }: { readonly atEnd: boolean }
  ): Effect.fn.Return<void, WriteError> {
    yield* flush(id)
    const loaded = yield* load(id)
    const session = loaded?.ahead === true ? yield* takeOver(id) : loaded
    // Nothing was written of it yet.
    if (session === undefined || session.record.seq < 0) return
    const { folder, record, rendering } = session
    const { fold, pack } = rendering
    const address = addressOf({ id, agent: fold.firstAgent }, fold.address, uid)
    if (address === undefined) return yield* drop(id)
    yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
    // Refuses anything but a regular file before anything changes.
    for (const name of folder.records.keys()) yield* files.stamp(`${folder.path}/${name}`)
    for (const name of logs) {
      yield* mend(session, name, nothing, atEnd)
      yield* permitLog(session, name)
    }
    const long = fold.latest?.some(isStored) === true ? yield* streamed(id, fold.latest) : ""
    const values = valueFiles(fold, address, () => long)
    // The context is that of the last step and changes only with a later one.
    let due = (pack.step?.seq ?? -1) > record.shown
    let context = due ? yield* contextOf(session, address.session) : new Map<string, TrackedFolder.Content>()
    const sums = new Map<string, Sum>(
      [...context, ...values].map(([name, content]) => [name, TrackedFolder.sumOf(content)])
    )
    const names = [...folder.records.keys(), ...sums.keys()].filter((name) => !isLog(name))
    const inspection = yield* TrackedFolder.inspect(tracker, folder, names, sums)
    const broken = new Set([...inspection.foreign, ...inspection.missing])
    const restored = yield* restoreBlobs(session, inspection, broken)
    const foreign = new Set([...inspection.foreign].filter((name) => !restored.has(name)))
    if (!due && [...broken].some((name) => name.startsWith(contextPrefix))) {
      due = true
      context = yield* contextOf(session, address.session)
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
    if (due) yield* removeEmptied(folder)
    const entry = JSON.stringify(entryOf(fold, address.session))
    const follows = entry !== record.entry
    // It is no longer behind once its whole log was read.
    const behind = record.behind && !session.whole
    if (follows || record.shown !== record.seq || record.behind !== behind) {
      session.record = { ...record, shown: record.seq, entry, behind }
      yield* ledger.keep(folder.path, new Map(), session.record)
    }
    if (follows) indexes.add(record.index)
  })

  const intact = Effect.fnUntraced(function* (
    record: SessionRecord
  ): Effect.fn.Return<boolean, TrackedFolder.TrackError> {
    if (record.behind || record.shown !== record.seq) return false
    const folder = { path: record.folder, records: new Map(yield* ledger.files(record.folder)) }
    if (!(yield* files.reach(`${folder.path}/context`))) return false
    yield* TrackedFolder.sweepLeftovers(tracker, folder)
    yield* TrackedFolder.ensureFolders(tracker, folder, [contextPrefix, ...folder.records.keys()])
    yield* removeEmptied(folder)
    for (const [name, { next, size, stamp }] of folder.records) {
      const found = yield* files.stamp(`${folder.path}/${name}`)
      if (found?.text !== stamp || found.size !== size || next !== null) return false
      if (!isPermitted(modes, folder.path, found)) return false
    }
    return true
  })

  /** Whether the blob's content has the hash in its name. */
  const isNamedByContent = Effect.fnUntraced(function* (folder: TrackedFolder.Folder, name: string) {
    const path = `${folder.path}/${name}`
    const found = yield* files.stamp(path)
    return found !== undefined && name === blobFile(`sha256-${yield* files.digest(path, 0, found.size)}`)
  })

  const rewrite = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, WriteError> {
    yield* advance(id)
    const session = yield* load(id)
    if (session === undefined) return
    for (const name of logs) yield* restore(session, name, "unknown")
    // Forces a comparison of contents instead of stamps, and a new context.
    for (const [name, record] of session.folder.records) {
      if (isLog(name)) continue
      const unknown = record.lasting && !(yield* isNamedByContent(session.folder, name))
      session.folder.records.set(name, { ...record, ...(unknown ? noContent : {}), stamp: "?" })
    }
    session.record = { ...session.record, shown: -1 }
  })

  /**
   * Whether the file holds the recorded or the intended content; for a log, its recorded beginning counts. Undefined if
   * it is absent.
   */
  const isOurs = Effect.fnUntraced(function* (path: string, name: string, record: FileRecord) {
    const found = yield* files.stamp(path)
    if (found === undefined) return undefined
    if (found.text === record.stamp) return true
    if (isLog(name)) return TrackedFolder.same(yield* files.sum(path, record.size), record)
    const sum = yield* files.sum(path)
    return TrackedFolder.same(sum, record) || TrackedFolder.same(sum, record.next)
  })

  /** Removes one file of a removed session. A refused path is reported and left, and does not stop the others. */
  const removeFile = (folder: TrackedFolder.Folder, name: string, record: FileRecord) =>
    Effect.gen(function* () {
      const path = `${folder.path}/${name}`
      if (!(yield* files.reach(path.slice(0, path.lastIndexOf("/"))))) return
      const ours = yield* isOurs(path, name, record)
      if (ours === true) yield* files.remove(path)
      else if (ours === false) yield* TrackedFolder.setAside(tracker, folder, name)
    }).pipe(
      Effect.catchTag("PathRefused", (error) => TrackedFolder.report(tracker, folder, name, "refused", error.message))
    )

  const drop = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, TrackedFolder.TrackError> {
    forget(id)
    const record = yield* ledger.session(id)
    if (record === undefined) return
    indexes.add(record.index)
    const folder: TrackedFolder.Folder = {
      path: record.folder,
      sessionID: id,
      records: new Map(yield* ledger.files(record.folder))
    }
    if (yield* files.reach(folder.path)) {
      yield* TrackedFolder.sweepLeftovers(tracker, folder)
      for (const [name, file] of folder.records) yield* removeFile(folder, name, file)
      for (const path of contextFolders) yield* files.removeFolder(`${folder.path}/${path}`)
      yield* files.removeFolder(`${folder.path}/${contextPrefix}`)
      yield* files.removeEmpty(folder.path)
    }
    yield* ledger.keep(folder.path, new Map([...folder.records.keys()].map((name) => [name, undefined])))
    yield* ledger.forget(id)
  })

  return {
    append,
    advance,
    finish,
    intact,
    rewrite,
    drop,
    adopted: (index) => [...(adopted.get(index)?.values() ?? [])],
    dueIndexes: () => [...indexes],
    written: (index) => void indexes.delete(index),
    waiting: () => [...waiting.keys()],
    isFull: () =>
      waiting.size > remembered ||
      [...waiting.values()].reduce((sum, { size }) => sum + size, 0) >= Portion.portionLimit,
    flush,
    leave,
    forget
  }
}

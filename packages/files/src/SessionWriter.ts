/**
 * One session's folder: takes events as they come, appends to the logs in portions (`Portion.ts`), and brings the single
 * values and the context to where the logs are. What is remembered of a session is in `KnownSessions.ts`, what puts its
 * files back in `Mending.ts`. Every step can be killed and repeated. The exporter calls one operation at a time. Spec: FI-69..FI-83 in specs/files.md (FL-6, FL-8).
 */
import { EventLog, SessionID, SessionNotFound, SessionStore, type ReadError, type SessionEvent } from "@daybook/core"
import { Effect, Stream } from "effect"
import * as Adopting from "./Adopting.ts"
import { entryOf, type IndexEntry } from "./IndexFiles.ts"
import * as Keeper from "./Keeper.ts"
import * as KnownSessions from "./KnownSessions.ts"
import { checkpointEvery, remembered, type Known, type WriteError } from "./KnownSessions.ts"
import { addressOf, indexFolder, sessionFolder } from "./Layout.ts"
import { isStored, type Text } from "./Fold.ts"
import type { FileRecord, SessionRecord } from "./Ledger.ts"
import * as LogFile from "./LogFile.ts"
import * as Mending from "./Mending.ts"
import { isPermitted } from "./Modes.ts"
import * as Portion from "./Portion.ts"
import { answerFrom, linesFrom, readerOf, sumOfStream, type Source } from "./Pieces.ts"
import { isLog, logs, piecesOf } from "./Rendering.ts"
import * as Rendering from "./Rendering.ts"
import type { PackState } from "./context/PackState.ts"
import type { Sum } from "./SafeFiles.ts"
import * as SessionContext from "./SessionContext.ts"
import { blobFile, contextFolders, contextPrefix } from "./SessionContext.ts"
import { valueFiles } from "./Values.ts"

export interface WriterOptions {
  readonly keeper: Keeper.Keeper
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  /** Whose sessions without an address are. */
  readonly uid: number
}

/** No file has it. */
const noContent: Sum = { size: -1, crc: 0 }

const nothing: Source = { size: 0, bytes: Stream.empty }

/** Every session has the folder, also while it is empty. */
const inContext = [contextPrefix]

export interface SessionWriter {
  /**
   * Takes events of one session, in order; those that it has already are passed over. They wait to be written with those
   * that follow, until there are enough of them, or `flush` or `finish` is called.
   */
  readonly append: (id: string, events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, WriteError>
  /** Writes what waits of the session. */
  readonly flush: (id: string) => Effect.Effect<void, WriteError>
  /** Writes what waits of the session and leaves it there, to be tried again from the log; gives its folder. */
  readonly leave: (id: string) => Effect.Effect<string, WriteError>
  /** Sessions that something waits of. */
  readonly waiting: () => ReadonlyArray<string>
  /** Whether as much waits, of all sessions together, as is held in memory. */
  readonly isFull: () => boolean
  /** Takes and writes everything that the session's log holds. */
  readonly advance: (id: string) => Effect.Effect<void, WriteError>
  /**
   * Brings values and context to where the logs are, and puts back what is not as it was left. `atEnd`: the session's log
   * holds nothing more, so that nothing may lie behind the end of a file.
   */
  readonly finish: (id: string, options: { readonly atEnd: boolean }) => Effect.Effect<void, WriteError>
  /** Whether the files of a recorded session are all as they were left. */
  readonly intact: (record: SessionRecord) => Effect.Effect<boolean, Keeper.KeepError>
  /** Renders the logs anew and puts them in place where a byte differs; `finish` does the same for the rest. */
  readonly rewrite: (id: string) => Effect.Effect<void, WriteError>
  /** Removes the session's files, as far as they are ours. */
  readonly drop: (id: string) => Effect.Effect<void, Keeper.KeepError>
  /** What the index in this folder had to say of sessions whose files were taken over. */
  readonly adopted: (index: string) => ReadonlyArray<IndexEntry>
  /** The folders of indexes that have to follow what was done since they were last written. */
  readonly dueIndexes: () => ReadonlyArray<string>
  /** The index was written. */
  readonly written: (index: string) => void
  /** Forgets what is remembered and what waits, not what is written. */
  readonly forget: (id: string) => void
}

const emptyLogs: ReadonlyMap<string, FileRecord> = new Map(logs.map((name) => [name, LogFile.empty]))

/** The record of a session that nothing was written of. */
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
export const make = ({ keeper, log, store, uid }: WriterOptions): SessionWriter => {
  const { files, ledger, modes } = keeper
  const sessions = KnownSessions.make({ keeper, log })
  const { keep, load, remember } = sessions
  const { keepBlobs, mend, permitLog, restore, restoreBlobs } = Mending.make(keeper, log, sessions)
  const indexes = new Set<string>()
  const waiting = new Map<string, Portion.Portion>()

  /** Writes what waits of the session. */
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
      // It has another address now: its files are made anew there, as if it had always been so.
      yield* drop(id)
      return yield* advance(id)
    }
    const session: Known = before ?? {
      record: unwritten(id, address, portion.first),
      rendering: Rendering.initial,
      folder: { path, sessionID: id, records: new Map(yield* ledger.files(path)) },
      whole: false,
      // Files that lie there already may be ours of a record that is lost.
      ahead: yield* files.reach(path)
    }
    if (before === undefined) {
      // Known before the first byte: a session that is removed after a kill leaves nothing behind.
      for (const [name, record] of emptyLogs) session.folder.records.set(name, record)
      yield* ledger.keep(path, emptyLogs, session.record)
      yield* Keeper.sweepLeftovers(keeper, session.folder)
    }
    yield* Keeper.ensureFolders(keeper, session.folder, inContext)
    const changes = new Map<string, FileRecord>()
    const read = readerOf(log, id)
    const next = logs.map((name) => ({ name, source: linesFrom(piecesOf(portion, name), read) }))
    // Both are looked at before either changes.
    for (const { name } of next) yield* files.stamp(`${path}/${name}`)
    yield* keepBlobs(session, portion.blobs, () => true)
    let ahead = session.ahead
    for (const { name, source } of next) {
      const surplus = yield* mend(session, name, source, false)
      ahead ||= surplus > 0
      const untouched = source.size === 0 && session.folder.records.get(name)?.stamp !== ""
      if (!untouched) changes.set(name, yield* LogFile.append(keeper, session.folder, name, source, surplus))
    }
    const first = session.record.seq < 0 ? portion.first : session.record.first
    const record: SessionRecord = { ...session.record, first, seq, position }
    const moved: Known = { ...session, record, rendering, ahead }
    yield* keep(moved, changes, checkpointEvery(record))
    for (const [name, record] of changes) session.folder.records.set(name, record)
    yield* remember(id, moved)
  })

  /** Renders the events that are new, and writes when enough of them wait. */
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
      // There is none where its address is one that is not kept.
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
      // Removed, and begun again under its id.
      waiting.delete(id)
      yield* drop(id)
      return yield* advance(id)
    }
    const seq = at?.seq ?? -1
    const next = events.filter((event) => event.seq > seq)
    // From the log where the events do not join what is written: it knows whether one is missing.
    if (record?.behind === true || next.some((event, index) => event.seq !== seq + 1 + index)) return yield* advance(id)
    yield* gather(id, next)
  })

  /** The session's life that the record tells of. Where it has ended, its removal comes next: nothing is added before. */
  const incarnationOf = Effect.fnUntraced(function* ({
    first,
    id
  }: SessionRecord): Effect.fn.Return<number | undefined, WriteError> {
    if (first === "") return undefined
    const sessionID = SessionID.make(id)
    const { incarnation } = yield* log.head(sessionID)
    // Its first event is there: so it was when the head was read.
    if ((yield* log.placeOf(sessionID, first)) !== undefined) return incarnation
    return yield* new SessionNotFound({ sessionID, removed: true })
  })

  const advance = (id: string): Effect.Effect<void, WriteError> =>
    Effect.gen(function* () {
      // It is in the log as well.
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
    // Known, though nothing of it can be read: under the address that it has if it was given none.
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

  /** The context as the last step was shown it. Swapped lines are read where they lie: the logs are in order by now. */
  const contextAt = (session: Known, name: string, pack: PackState) =>
    SessionContext.contextOf(session.record.id, name, pack, (at, bytes) =>
      files.digest(`${session.folder.path}/messages.jsonl`, at, bytes)
    ).pipe(Effect.provideService(EventLog, log), Effect.provideService(SessionStore, store))

  const contextOf = (session: Known, name: string) =>
    Effect.map(contextAt(session, name, session.rendering.pack), ({ files, state }) => {
      session.rendering = { ...session.rendering, pack: state }
      return files
    })

  const { adopt } = Adopting.make({
    keeper,
    log,
    contextOf: (session, name, pack) => Effect.map(contextAt(session, name, pack), ({ files }) => files)
  })

  /** What indexes had to say of sessions whose files were taken over, by folder. */
  const adopted = new Map<string, Map<string, IndexEntry>>()

  /**
   * Takes over the files of a session that the record does not know as they are, at the end of its log: values are never
   * set back to what they were in its middle.
   */
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

  /** Sums of long answers: each is read once to be known, and once to be written. */
  const answers = new WeakMap<ReadonlyArray<Text>, Sum>()

  /** A long answer, read from the log as it is written. */
  const streamed = Effect.fnUntraced(function* (id: string, latest: ReadonlyArray<Text>) {
    const bytes = answerFrom(latest, readerOf(log, id))
    const sum = answers.get(latest) ?? (yield* sumOfStream(bytes))
    answers.set(latest, sum)
    return { sum, bytes }
  })

  /** Removes folders of the context that hold nothing any more. */
  const removeEmptied = (folder: Keeper.Folder) =>
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
    // Of one that could not be begun there is nothing to tell.
    if (session === undefined || session.record.seq < 0) return
    const { folder, record, rendering } = session
    const { fold, pack } = rendering
    const address = addressOf({ id, agent: fold.firstAgent }, fold.address, uid)
    if (address === undefined) return yield* drop(id)
    yield* Keeper.ensureFolders(keeper, folder, [contextPrefix, ...folder.records.keys()])
    // Whatever is no regular file is refused before anything changes.
    for (const name of folder.records.keys()) yield* files.stamp(`${folder.path}/${name}`)
    for (const name of logs) {
      yield* mend(session, name, nothing, atEnd)
      yield* permitLog(session, name)
    }
    const long = fold.latest?.some(isStored) === true ? yield* streamed(id, fold.latest) : ""
    const values = valueFiles(fold, address, () => long)
    // The context is that of the last step: it stays while there is no other.
    let due = (pack.step?.seq ?? -1) > record.shown
    let context = due ? yield* contextOf(session, address.session) : new Map<string, Keeper.Content>()
    const sums = new Map<string, Sum>([...context, ...values].map(([name, content]) => [name, Keeper.sumOf(content)]))
    const names = [...folder.records.keys(), ...sums.keys()].filter((name) => !isLog(name))
    const inspection = yield* Keeper.inspect(keeper, folder, names, sums)
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
    yield* Keeper.bring(
      keeper,
      folder,
      new Map<string, Keeper.Content<ReadError>>([...context, ...values]),
      { ...inspection, foreign },
      spared
    )
    // Before the session is recorded as shown: after a kill it is done again.
    if (due) yield* removeEmptied(folder)
    const entry = JSON.stringify(entryOf(fold, address.session))
    const follows = entry !== record.entry
    // Whoever was left behind is no longer, when all of its log was read since.
    const behind = record.behind && !session.whole
    if (follows || record.shown !== record.seq || record.behind !== behind) {
      session.record = { ...record, shown: record.seq, entry, behind }
      yield* ledger.keep(folder.path, new Map(), session.record)
    }
    if (follows) indexes.add(record.index)
  })

  const intact = Effect.fnUntraced(function* (record: SessionRecord): Effect.fn.Return<boolean, Keeper.KeepError> {
    if (record.behind || record.shown !== record.seq) return false
    const folder = { path: record.folder, records: new Map(yield* ledger.files(record.folder)) }
    if (!(yield* files.reach(`${folder.path}/context`))) return false
    yield* Keeper.sweepLeftovers(keeper, folder)
    yield* Keeper.ensureFolders(keeper, folder, [contextPrefix, ...folder.records.keys()])
    yield* removeEmptied(folder)
    for (const [name, { next, size, stamp }] of folder.records) {
      const found = yield* files.stamp(`${folder.path}/${name}`)
      if (found?.text !== stamp || found.size !== size || next !== null) return false
      if (!isPermitted(modes, folder.path, found)) return false
    }
    return true
  })

  /** Whether the blob holds the bytes that its name is the hash of. */
  const isNamedByContent = Effect.fnUntraced(function* (folder: Keeper.Folder, name: string) {
    const path = `${folder.path}/${name}`
    const found = yield* files.stamp(path)
    return found !== undefined && name === blobFile(`sha256-${yield* files.digest(path, 0, found.size)}`)
  })

  const rewrite = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, WriteError> {
    yield* advance(id)
    const session = yield* load(id)
    if (session === undefined) return
    for (const name of logs) yield* restore(session, name, "unknown")
    // Contents are compared, not stamps; and the context is made anew.
    for (const [name, record] of session.folder.records) {
      if (isLog(name)) continue
      const unknown = record.lasting && !(yield* isNamedByContent(session.folder, name))
      session.folder.records.set(name, { ...record, ...(unknown ? noContent : {}), stamp: "?" })
    }
    session.record = { ...session.record, shown: -1 }
  })

  /** Whether the file is what was written, or was about to be; of a log, what it begins with. */
  const isOurs = Effect.fnUntraced(function* (path: string, name: string, record: FileRecord) {
    const found = yield* files.stamp(path)
    if (found === undefined) return undefined
    if (found.text === record.stamp) return true
    if (isLog(name)) return Keeper.same(yield* files.sum(path, record.size), record)
    const sum = yield* files.sum(path)
    return Keeper.same(sum, record) || Keeper.same(sum, record.next)
  })

  /** Removes a file of a folder that goes. What is refused in its place is reported and left, and holds up no other. */
  const removeFile = (folder: Keeper.Folder, name: string, record: FileRecord) =>
    Effect.gen(function* () {
      const path = `${folder.path}/${name}`
      if (!(yield* files.reach(path.slice(0, path.lastIndexOf("/"))))) return
      const ours = yield* isOurs(path, name, record)
      if (ours === true) yield* files.remove(path)
      else if (ours === false) yield* Keeper.setAside(keeper, folder, name)
    }).pipe(Effect.catchTag("PathRefused", (error) => Keeper.report(keeper, folder, name, "refused", error.message)))

  const drop = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, Keeper.KeepError> {
    forget(id)
    const record = yield* ledger.session(id)
    if (record === undefined) return
    indexes.add(record.index)
    const folder: Keeper.Folder = {
      path: record.folder,
      sessionID: id,
      records: new Map(yield* ledger.files(record.folder))
    }
    if (yield* files.reach(folder.path)) {
      yield* Keeper.sweepLeftovers(keeper, folder)
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

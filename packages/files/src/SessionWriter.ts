/**
 * One session's folder: takes events as they come, in whatever portions, appends to the logs, and brings the single values
 * and the context to where the logs are. What it remembers of a session is bounded, can be dropped at any time, and is
 * made again from the ledger's checkpoint and the log. Every step can be killed and repeated. The exporter calls one
 * operation at a time. Spec: FI-69..FI-83 in specs/files.md (FL-6, FL-8).
 */
import {
  SessionID,
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type SessionEvent,
  type SessionNotFound,
  SessionStore,
  type StoreError
} from "@daybook/core"
import { Effect } from "effect"
import type { IndexEntry } from "./IndexFiles.ts"
import * as Keeper from "./Keeper.ts"
import { addressOf, indexFolder, sessionFolder } from "./Layout.ts"
import { recordOf, type FileRecord, type SessionRecord } from "./Ledger.ts"
import * as LogFile from "./LogFile.ts"
import { isLog, logs, textOf, type LogName } from "./Rendering.ts"
import * as Rendering from "./Rendering.ts"
import type { Sum } from "./SafeFiles.ts"
import * as SessionContext from "./SessionContext.ts"
import { blobFile, contextPrefix } from "./SessionContext.ts"
import { valueFiles } from "./Values.ts"

export interface WriterOptions {
  readonly keeper: Keeper.Keeper
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  /** Whose sessions without an address are. */
  readonly uid: number
}

/** What a session's export can fail with; `SessionNotFound`: it was removed meanwhile. */
export type WriteError =
  Keeper.KeepError | SessionNotFound | CursorAhead | CursorExpired | EventUnreadable | LogUnavailable | StoreError

/** Every session has the folder, also while it is empty. */
const inContext = [contextPrefix]

/** Sessions whose folds are remembered. */
const remembered = 64
/** Events after which a fold at rest is written down: for a long one more, so that it costs its share of each. */
const checkpointEvery = ({ checkpointSize }: SessionRecord): number => Math.max(256, checkpointSize / 64)

/** A session as it is remembered. */
interface Known {
  record: SessionRecord
  rendering: Rendering.Rendering
  readonly folder: Keeper.Folder
}

export interface SessionWriter {
  /** Takes events of one session, in order; those that it has already are passed over. */
  readonly append: (id: string, events: ReadonlyArray<SessionEvent>) => Effect.Effect<void, WriteError>
  /** Takes everything that the session's log holds. */
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
  /** The folders of indexes that have to follow what was done since they were last taken. */
  readonly takeIndexes: () => ReadonlyArray<string>
  /** Forgets what is remembered, not what is written. */
  readonly forget: (id: string) => void
}

/** What the index has to know of a session. */
export const entryOf = (fold: Rendering.Rendering["fold"], session: string): IndexEntry => ({
  session,
  cwd: fold.cwd,
  updatedAtMs: fold.updatedAtMs,
  position: fold.position,
  createdPosition: fold.createdPosition,
  ...(fold.runStartedPosition === undefined ? {} : { runStartedPosition: fold.runStartedPosition })
})

/** The writer of all sessions under one root. */
export const make = ({ keeper, log, store, uid }: WriterOptions): SessionWriter => {
  const { files, ledger, modes } = keeper
  const known = new Map<string, Known>()
  const indexes = new Set<string>()

  /** The session's stored events after one place up to another, page by page. */
  const replay = <E>(
    id: string,
    from: Rendering.Rendering,
    through: number,
    use: (added: Rendering.Added) => Effect.Effect<void, E>
  ): Effect.Effect<Rendering.Rendering, E | WriteError> =>
    Effect.gen(function* () {
      let rendering = from
      let after = from.fold.seq
      while (after < through) {
        const page = yield* log.read({ sessionID: SessionID.make(id), after })
        const next = Rendering.evolveAll(
          rendering,
          page.events.filter(({ seq }) => seq <= through)
        )
        yield* use(next.added)
        rendering = next.rendering
        if (!page.hasMore) break
        after = page.cursor
      }
      return rendering
    })

  const nothing = () => Effect.void

  /** Keeps files and session, and a checkpoint when enough has come since the last. */
  const keep = (session: Known, changes: ReadonlyMap<string, FileRecord>, every: number) =>
    Effect.suspend(() => {
      const { folder, record, rendering } = session
      const text = record.seq - record.checkpointSeq >= every ? Rendering.toText(rendering) : undefined
      if (text !== undefined) session.record = { ...record, checkpointSeq: record.seq, checkpointSize: text.length }
      return ledger.keep(folder.path, changes, session.record, text)
    })

  const remember = (id: string, session: Known): Effect.Effect<void, Keeper.KeepError> =>
    Effect.gen(function* () {
      known.delete(id)
      known.set(id, session)
      const [oldest] = known
      if (known.size <= remembered || oldest === undefined) return
      known.delete(oldest[0])
      if (oldest[1].record.seq > oldest[1].record.checkpointSeq) yield* keep(oldest[1], new Map(), 1)
    })

  const load = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Known | undefined, WriteError> {
    const hot = known.get(id)
    if (hot !== undefined) {
      yield* remember(id, hot)
      return hot
    }
    const record = yield* ledger.session(id)
    if (record === undefined) return undefined
    const folder: Keeper.Folder = {
      path: record.folder,
      sessionID: id,
      records: new Map(yield* ledger.files(record.folder))
    }
    const text = yield* ledger.checkpoint(id)
    const from = text === undefined ? undefined : Rendering.fromText(text)
    const rendering = yield* replay(id, from ?? Rendering.initial, record.seq, nothing)
    yield* Keeper.sweepLeftovers(keeper, folder)
    const session = { record, rendering, folder }
    yield* remember(id, session)
    return session
  })

  /** Renders a log anew up to where the session is, beside it, and puts it in place where it differs. */
  const restore = Effect.fnUntraced(function* (
    session: Known,
    name: LogName,
    found: "missing" | "changed" | "unknown"
  ) {
    const { folder, record } = session
    const path = `${folder.path}/${name}`
    yield* Effect.scoped(
      Effect.gen(function* () {
        const replacement = yield* files.begin(path, modes.file(folder.path))
        yield* replay(record.id, Rendering.initial, record.seq, (added) => replacement.write(textOf(added, name)))
        const sum = replacement.sum()
        if (found === "unknown") {
          const stamp = yield* files.stamp(path)
          if (stamp !== undefined) {
            const there = yield* files.sum(path)
            const mode = modes.file(folder.path)
            if (Keeper.same(there, sum) && stamp.mode === mode) {
              return yield* Keeper.remember(keeper, folder, new Map([[name, recordOf(sum, stamp, true)]]))
            }
            const written = folder.records.get(name)
            if (!Keeper.same(there, sum) && !Keeper.same(there, written)) yield* Keeper.setAside(keeper, folder, name)
          }
        } else if (found === "changed") yield* Keeper.setAside(keeper, folder, name)
        else yield* Keeper.report(keeper, folder, name, "missing", "the file was gone; it is written again")
        const stamp = yield* replacement.place
        yield* Keeper.remember(keeper, folder, new Map([[name, recordOf(sum, stamp, true)]]))
      })
    )
  })

  /** The log in order again, and how many of the next bytes it has already. */
  const mend = Effect.fnUntraced(function* (session: Known, name: LogName, next: Uint8Array, atEnd: boolean) {
    const state = yield* LogFile.look(keeper, session.folder, name, next)
    if (state.is === "ours" && !(atEnd && state.surplus > next.length)) return state.surplus
    yield* restore(session, name, state.is === "ours" ? "changed" : state.is)
    return 0
  })

  /** Writes bytes that rows name, each once. */
  const keepBlobs = Effect.fnUntraced(function* (
    session: Known,
    blobs: Rendering.Added["blobs"],
    wanted: (name: string) => boolean
  ) {
    for (const blob of blobs) {
      const name = blobFile(blob.hash)
      if (!wanted(name)) continue
      const record = session.folder.records.get(name)
      if (record !== undefined && record.stamp !== "") {
        // The pack has brought it before: from now on it stays when the pack changes.
        if (!record.lasting) {
          yield* Keeper.remember(keeper, session.folder, new Map([[name, { ...record, lasting: true }]]))
        }
        continue
      }
      const bytes = blob.bytes()
      const content = new Map([[name, bytes]])
      const inspection = yield* Keeper.inspect(keeper, session.folder, [name], new Map([[name, Keeper.sumOf(bytes)]]))
      yield* Keeper.bring(keeper, session.folder, content, inspection, () => true, true)
    }
  })

  const write = Effect.fnUntraced(function* (
    id: string,
    before: Known | undefined,
    events: ReadonlyArray<SessionEvent>
  ): Effect.fn.Return<void, WriteError> {
    const [first] = events
    if (first === undefined) return
    const { added, rendering } = Rendering.evolveAll(before?.rendering ?? Rendering.initial, events)
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
      record: {
        id,
        folder: path,
        index: indexFolder(address),
        seq: -1,
        position: 0,
        first: first.id,
        shown: -1,
        checkpointSeq: -1,
        checkpointSize: 0,
        entry: null,
        behind: false
      },
      rendering: Rendering.initial,
      folder: { path, sessionID: id, records: new Map(yield* ledger.files(path)) }
    }
    if (before === undefined) {
      // Known before the first byte: a session that is removed after a kill leaves nothing behind.
      const records = new Map<string, FileRecord>(logs.map((name) => [name, LogFile.empty]))
      for (const [name, record] of records) session.folder.records.set(name, record)
      yield* ledger.keep(path, records, session.record)
      yield* Keeper.sweepLeftovers(keeper, session.folder)
    }
    yield* Keeper.ensureFolders(keeper, session.folder, inContext)
    const changes = new Map<string, FileRecord>()
    const next = logs.map((name) => ({ name, bytes: Buffer.from(textOf(added, name), "utf8") }))
    // Both are looked at before either changes.
    for (const { name } of next) yield* files.stamp(`${path}/${name}`)
    yield* keepBlobs(session, added.blobs, () => true)
    for (const { bytes, name } of next) {
      const surplus = yield* mend(session, name, bytes, false)
      const untouched = bytes.length === 0 && session.folder.records.get(name)?.stamp !== ""
      if (!untouched) changes.set(name, yield* LogFile.append(keeper, session.folder, name, bytes, surplus))
    }
    const last = events.at(-1) ?? first
    const record: SessionRecord = { ...session.record, seq: last.seq, position: last.position }
    const moved: Known = { ...session, record, rendering }
    yield* keep(moved, changes, checkpointEvery(record))
    for (const [name, record] of changes) session.folder.records.set(name, record)
    yield* remember(id, moved)
  })

  const append = Effect.fnUntraced(function* (
    id: string,
    events: ReadonlyArray<SessionEvent>
  ): Effect.fn.Return<void, WriteError> {
    let session = yield* load(id)
    const record = session?.record
    if (record !== undefined && events.some(({ position, seq }) => seq <= record.seq && position > record.position)) {
      // Removed, and begun again under its id.
      yield* drop(id)
      session = undefined
    }
    // From the log where the portion does not join what is written.
    if (session === undefined ? events[0]?.seq !== 0 : session.record.behind) return yield* advance(id)
    const seq = session?.record.seq ?? -1
    yield* write(
      id,
      session,
      events.filter((event) => event.seq > seq)
    )
  })

  const advance = (id: string): Effect.Effect<void, WriteError> =>
    Effect.gen(function* () {
      let after = (yield* load(id))?.record.seq ?? -1
      while (true) {
        const page = yield* log.read({ sessionID: SessionID.make(id), after })
        yield* write(id, yield* load(id), page.events)
        const session = yield* load(id)
        // There is none where its address is one that is not kept.
        if (session === undefined || !page.hasMore) return
        // A session whose address changed on the way has been written to its end already.
        after = Math.max(page.cursor, session.record.seq)
      }
    })

  /** The context as the last step was shown it. Swapped lines are read where they lie: the logs are in order by now. */
  const contextOf = (session: Known, name: string) =>
    SessionContext.contextOf(session.record.id, name, session.rendering.pack, (at, bytes) =>
      files.digest(`${session.folder.path}/messages.jsonl`, at, bytes)
    ).pipe(
      Effect.provideService(EventLog, log),
      Effect.provideService(SessionStore, store),
      Effect.map(({ files, state }) => {
        session.rendering = { ...session.rendering, pack: state }
        return files
      })
    )

  const finish = Effect.fnUntraced(function* (
    id: string,
    { atEnd }: { readonly atEnd: boolean }
  ): Effect.fn.Return<void, WriteError> {
    const session = yield* load(id)
    if (session === undefined) return
    const { folder, record, rendering } = session
    const { fold, pack } = rendering
    const address = addressOf({ id, agent: fold.firstAgent }, fold.address, uid)
    if (address === undefined) return yield* drop(id)
    yield* Keeper.ensureFolders(keeper, folder, inContext)
    // Whatever is no regular file is refused before anything changes.
    for (const name of folder.records.keys()) yield* files.stamp(`${folder.path}/${name}`)
    for (const name of logs) {
      yield* mend(session, name, new Uint8Array(), atEnd)
      if (folder.records.get(name)?.stamp === "") {
        const made = yield* LogFile.append(keeper, folder, name, new Uint8Array(), 0)
        yield* Keeper.remember(keeper, folder, new Map([[name, made]]))
      } else yield* permitLog(session, name)
    }
    const values: ReadonlyMap<string, Keeper.Content> = valueFiles(fold, address)
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
    yield* Keeper.bring(keeper, folder, new Map([...context, ...values]), { ...inspection, foreign }, spared)
    const entry = JSON.stringify(entryOf(fold, address.session))
    const follows = entry !== record.entry
    if (follows || record.shown !== record.seq || record.behind) {
      session.record = { ...record, shown: record.seq, entry, behind: false }
      yield* ledger.keep(folder.path, new Map(), session.record)
    }
    if (follows) indexes.add(record.index)
  })

  /** A log's permissions as they should be. */
  const permitLog = Effect.fnUntraced(function* ({ folder }: Known, name: LogName) {
    const mode = modes.file(folder.path)
    const path = `${folder.path}/${name}`
    const record = folder.records.get(name)
    const stamp = yield* files.stamp(path)
    if (record === undefined || stamp === undefined) return
    if (stamp.mode === mode && (stamp.text === record.stamp || stamp.size !== record.size)) return
    const now = stamp.mode === mode ? stamp : yield* files.permit(path, mode)
    if (stamp.mode !== mode) {
      yield* Keeper.report(keeper, folder, name, "mode", "the file's permissions were changed; they were put back")
    }
    // Looked at before: the content is that of the record.
    if (now.size === record.size) {
      yield* Keeper.remember(keeper, folder, new Map([[name, { ...record, stamp: now.text }]]))
    }
  })

  /** Bytes that rows name and that are gone, or not ours: made again from the log. Gives those that were set aside. */
  const restoreBlobs = Effect.fnUntraced(function* (
    session: Known,
    { foreign }: Keeper.Inspection,
    broken: ReadonlySet<string>
  ): Effect.fn.Return<ReadonlySet<string>, WriteError> {
    const blobs = new Set([...broken].filter((name) => name.startsWith(blobFile(""))))
    const aside = new Set<string>()
    if (blobs.size === 0) return aside
    const { folder, record } = session
    for (const name of blobs) {
      const file = folder.records.get(name)
      if (!foreign.has(name) || file?.lasting !== true) continue
      yield* Keeper.setAside(keeper, folder, name)
      yield* Keeper.remember(keeper, folder, new Map([[name, { ...file, stamp: "" }]]))
      aside.add(name)
    }
    yield* replay(record.id, Rendering.initial, record.seq, (added) =>
      keepBlobs(session, added.blobs, (name) => blobs.has(name))
    )
    return aside
  })

  const intact = Effect.fnUntraced(function* (record: SessionRecord): Effect.fn.Return<boolean, Keeper.KeepError> {
    if (record.behind || record.shown !== record.seq) return false
    const folder = { path: record.folder, records: new Map(yield* ledger.files(record.folder)) }
    if (!(yield* files.reach(`${folder.path}/context`))) return false
    yield* Keeper.sweepLeftovers(keeper, folder)
    yield* Keeper.ensureFolders(keeper, folder, inContext)
    const mode = modes.file(folder.path)
    for (const [name, { next, size, stamp }] of folder.records) {
      const found = yield* files.stamp(`${folder.path}/${name}`)
      if (found?.text !== stamp || found.size !== size || found.mode !== mode || next !== null) return false
    }
    return true
  })

  const rewrite = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, WriteError> {
    yield* advance(id)
    const session = yield* load(id)
    if (session === undefined) return
    for (const name of logs) yield* restore(session, name, "unknown")
    // Contents are compared, not stamps; and the context is made anew.
    for (const [name, record] of session.folder.records) {
      session.folder.records.set(name, { ...record, stamp: isLog(name) ? record.stamp : "?" })
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

  const drop = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, Keeper.KeepError> {
    known.delete(id)
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
      const below = new Set([`${folder.path}/context`])
      for (const [name, file] of folder.records) {
        const path = `${folder.path}/${name}`
        const cut = name.lastIndexOf("/")
        if (cut !== -1) below.add(`${folder.path}/${name.slice(0, cut)}`)
        const ours = yield* isOurs(path, name, file)
        if (ours === true) yield* files.remove(path)
        else if (ours === false) yield* Keeper.setAside(keeper, folder, name)
      }
      for (const path of [...below, folder.path]) yield* files.removeEmpty(path)
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
    takeIndexes: () => {
      const taken = [...indexes]
      indexes.clear()
      return taken
    },
    forget: (id) => void known.delete(id)
  }
}

/**
 * The operations of an exporter on one record: exports pages of the feed, retries failed sessions, and restores changed
 * files. It caches the state of the files, so each record needs a new instance. `Exporter.ts` runs one operation at a
 * time. Spec: FI-60..FI-89 in specs/files.md.
 */
import { Array as Arr, Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type EventLog, SessionNotFound } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { ExportError, Finding } from "../layout/Errors.ts"
import type { Modes } from "../layout/Modes.ts"
import type { Cursor, SessionRecord } from "../record/Ledger.ts"
import type { Tracker } from "../record/TrackedFolder.ts"
import type { WriteError } from "../session/CachedSession.ts"
import * as SessionWriter from "../session/SessionWriter.ts"
import * as IndexWriter from "./IndexWriter.ts"
import * as Remains from "./Remains.ts"
import type { Root } from "./Root.ts"

export interface ExportOptions {
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  readonly modes: Modes
  /** The owner of sessions without an address. */
  readonly uid: number
  readonly report: (finding: Finding) => Effect.Effect<void>
}

/** Pages of the feed that are read before values, context and indexes are written. */
const pagesAtOnce = 16
/** Failed sessions that one retry takes. */
const behindAtOnce = 64
const sweptAtOnce = 256
/** Sessions and indexes that one background sweep checks. */
const lookedAtOnce = 128
const indexesAtOnce = 8

const isID = Schema.is(SessionID)

/** The result of one pull from the log. */
export interface Pulled {
  readonly position: number
  readonly hasMore: boolean
  readonly sessions: ReadonlyArray<string>
}

/** Makes the operations on the files of one root and its record; runs nothing. */
export const make = ({ files, ledger }: Root, { log, modes, report, store, uid }: ExportOptions) => {
  const tracker: Tracker = { files, ledger, modes, report }
  const writer = SessionWriter.make({ tracker, log, store, uid: uid })
  /** Sessions whose failure was reported; each is reported once. */
  const said = new Set<string>()

  /** Whether the log was followed to its end. */
  let caught = false

  const tell = (finding: Finding & { readonly sessionID: string }) => {
    if (said.has(finding.sessionID)) return Effect.void
    said.add(finding.sessionID)
    return report(finding)
  }

  const recovered = (id: string) =>
    Effect.map(ledger.session(id), (record) => {
      if (record?.behind !== true) said.delete(id)
    })

  /**
   * Runs the work of one session. If its folder is refused, an event cannot be read, or it is being removed, the
   * session is marked behind and retried later; other sessions continue.
   */
  const attempt = (id: string, work: Effect.Effect<void, WriteError>): Effect.Effect<boolean, ExportError> => {
    const later = Effect.zipRight(
      Effect.sync(() => writer.forget(id)),
      Effect.as(ledger.setBehind(id), false)
    )
    const refused = (kind: "refused" | "behind", path: string, details: string) =>
      Effect.zipRight(tell({ kind, path, sessionID: id, details }), later)
    return Effect.as(work, true).pipe(
      Effect.tap(said.has(id) ? recovered(id) : Effect.void),
      Effect.catchTags({
        SessionNotFound: () => later,
        CursorAhead: () => later,
        PathRefused: (error) => refused("refused", error.path.slice(files.root.length + 1), error.message),
        EventUnreadable: (error) =>
          Effect.flatMap(ledger.session(id), (record) => refused("behind", record?.folder ?? "", error.message))
      }),
      // The cached state may differ from the files.
      Effect.onError(() => Effect.sync(() => writer.forget(id)))
    )
  }

  const writeIndexes = (indexes: Iterable<string>, anew = false) =>
    Effect.forEach(
      new Set(indexes),
      (index) =>
        IndexWriter.write(tracker, index, { anew, adopted: writer.adopted(index) }).pipe(
          Effect.catchTag("PathRefused", (error) =>
            report({ kind: "refused", path: error.path.slice(files.root.length + 1), details: error.message })
          ),
          Effect.tap(() => Effect.sync(() => writer.written(index)))
        ),
      { discard: true }
    )

  const finish = (ids: Iterable<string>, atEnd: boolean) =>
    Effect.forEach(new Set(ids), (id) => attempt(id, writer.finish(id, { atEnd })), { discard: true })

  const flush = Effect.suspend(() =>
    Effect.forEach(writer.waiting(), (id) => attempt(id, writer.flush(id)), { discard: true })
  )

  const remains = Remains.make(tracker, log)
  /** Whether the folders of removed sessions that the record does not list were searched for. */
  let looked = false

  /** Indexes found under the root without a recorded session; kept until their first write. */
  let foundIndexes: ReadonlyArray<string> = []

  /** Removes files of removed sessions that a lost record left behind; returns whether there were any. */
  const removeRemains = Effect.gen(function* () {
    if (looked) return false
    const found = yield* remains.find()
    for (const { id } of found.remains) yield* attempt(id, writer.drop(id))
    foundIndexes = found.indexes
    looked = true
    return found.remains.length > 0
  })

  /** Applies the removals since the cursor, and returns the events that they leave of this page. */
  const followRemovals = (cursor: Cursor, events: ReadonlyArray<SessionEvent>) =>
    Effect.gen(function* () {
      const removed = new Map<string, number>()
      let after = cursor.removals
      while (true) {
        const page = yield* log.removals({ after })
        // Pending rows of a removed session are handled like written ones.
        if (page.length > 0) yield* flush
        for (const { number, position, sessionID } of page) {
          removed.set(sessionID, position)
          const record = yield* ledger.session(sessionID)
          if (record !== undefined && record.position <= position) yield* attempt(sessionID, writer.drop(sessionID))
          after = number
        }
        if (page.length < 512) break
      }
      return {
        removals: after,
        events: events.filter(({ position, sessionID }) => position > (removed.get(sessionID) ?? 0))
      }
    })

  /** Reads the next page. An unreadable event is an empty page, and its session stays before it. */
  const nextPage = (after: number) =>
    Effect.catchTag(log.readFeed({ after }), "EventUnreadable", (error) => {
      const { position, sessionID } = error
      if (position === undefined) return error
      const page = { events: [], position, hasMore: true }
      // The session id is unreadable too.
      if (!isID(sessionID))
        return Effect.as(tell({ kind: "behind", path: "", sessionID, details: error.message }), page)
      const leave = Effect.flatMap(writer.leave(sessionID), (path) =>
        tell({ kind: "behind", path, sessionID, details: error.message })
      )
      return Effect.as(attempt(sessionID, leave), page)
    })

  /** Exports the next batch: logs, then values, context and indexes, then the cursor. */
  const pull: Effect.Effect<Pulled, ExportError> = Effect.gen(function* () {
    yield* removeRemains
    let cursor = yield* ledger.cursor
    const before = cursor
    const touched = new Set<string>()
    let hasMore = true
    for (let pages = 0; hasMore && pages < pagesAtOnce; pages++) {
      const page = yield* nextPage(cursor.position)
      // Read after the page, so every removal before an event of the page is included.
      const { events, removals } = yield* followRemovals(cursor, page.events)
      for (const [id, portion] of Object.entries(Arr.groupBy(events, ({ sessionID }) => sessionID))) {
        touched.add(id)
        yield* attempt(id, writer.append(id, portion))
      }
      if (writer.isFull()) yield* flush
      const last = page.events.at(-1)
      const known = last?.position === page.position ? { eventID: last.id, sessionID: last.sessionID } : undefined
      cursor = {
        position: page.position,
        removals,
        ...(page.position === cursor.position
          ? { eventID: cursor.eventID, sessionID: cursor.sessionID }
          : (known ?? { eventID: null, sessionID: null }))
      }
      hasMore = page.hasMore
    }
    yield* finish(touched, !hasMore)
    caught ||= !hasMore
    // Until then the sessions of an existing index are not all known.
    if (caught) {
      yield* writeIndexes([...writer.dueIndexes(), ...foundIndexes])
      foundIndexes = []
    }
    if (cursor.position !== before.position || cursor.removals !== before.removals) yield* ledger.setCursor(cursor)
    return { position: cursor.position, hasMore, sessions: [...touched] }
  }).pipe(
    // The cursor did not move: the next pull reads these events again.
    Effect.onError(() => Effect.sync(() => writer.waiting().forEach(writer.forget)))
  )

  /** Retries sessions that are behind, from the log. */
  const retryBehind = Effect.gen(function* () {
    const ids = yield* ledger.behind(behindAtOnce)
    for (const id of ids) {
      const again = Effect.zipRight(writer.advance(id), writer.finish(id, { atEnd: true }))
      yield* attempt(
        id,
        Effect.catchIf(
          again,
          // It was removed while its export failed.
          (error) => error._tag === "SessionNotFound" && error.removed !== true,
          () => writer.drop(id)
        )
      )
    }
    yield* writeIndexes(writer.dueIndexes())
  })

  /** Compares the stamps of all files and restores the sessions and indexes that changed. */
  const sweep = Effect.gen(function* () {
    const put: Array<string> = []
    for (let after = ""; ;) {
      const records = yield* ledger.sessions(after, sweptAtOnce)
      const intact = yield* Effect.forEach(
        records,
        (record) =>
          Effect.map(
            Effect.catchTag(writer.intact(record), "PathRefused", () => Effect.succeed(false)),
            (intact) => ({ id: record.id, intact })
          ),
        { concurrency: 8 }
      )
      const broken = intact.filter(({ intact }) => !intact).map(({ id }) => id)
      yield* finish(broken, true)
      put.push(...broken)
      const last = records.at(-1)
      if (last === undefined) break
      after = last.id
    }
    yield* writeIndexes([...writer.dueIndexes(), ...(yield* ledger.indexes)])
    return put
  })

  /** The cursor of the background sweep: after a session, or after an index once all sessions are checked. */
  let round: { readonly sessions: string } | { readonly indexes: string } = { sessions: "" }

  const sweepSessions = (after: string) =>
    Effect.gen(function* () {
      const records = yield* ledger.sessions(after, lookedAtOnce)
      const last = records.at(-1)
      round = last === undefined ? { indexes: "" } : { sessions: last.id }
      const broken: Array<SessionRecord> = []
      for (const record of records) {
        // `retryBehind` handles it.
        if (record.behind) continue
        const intact = Effect.catchTag(writer.intact(record), "PathRefused", () => Effect.succeed(false))
        if (!(yield* intact)) broken.push(record)
      }
      yield* finish(
        broken.map(({ id }) => id),
        true
      )
      yield* writeIndexes([...writer.dueIndexes(), ...broken.map(({ index }) => index)])
      return broken.length > 0
    })

  const sweepIndexes = (after: string) =>
    Effect.gen(function* () {
      const indexes = (yield* ledger.indexes).filter((index) => index > after).slice(0, indexesAtOnce)
      const last = indexes.at(-1)
      round = last === undefined ? { sessions: "" } : { indexes: last }
      for (const index of indexes) {
        const intact = Effect.catchTag(IndexWriter.intact(tracker, index), "PathRefused", () => Effect.succeed(false))
        if (!(yield* intact)) yield* writeIndexes([index])
      }
      return false
    })

  /** Checks the next few sessions or indexes, so that time and memory do not depend on their number. */
  const sweepSome = Effect.suspend(() =>
    "sessions" in round ? sweepSessions(round.sessions) : sweepIndexes(round.indexes)
  )

  const pullAll = Effect.gen(function* () {
    const sessions = new Set<string>()
    while (true) {
      const pulled = yield* pull
      for (const id of pulled.sessions) sessions.add(id)
      if (!pulled.hasMore) return { position: pulled.position, sessions }
    }
  })

  const catchUp = Effect.gen(function* () {
    const { position, sessions } = yield* pullAll
    yield* retryBehind
    for (const id of yield* sweep) sessions.add(id)
    return { position, sessions: sessions.size }
  })

  const isUnknown = (index: string) =>
    Effect.flatMap(
      Effect.orElseSucceed(files.reach(index), () => false),
      (there) => (there ? Effect.map(ledger.files(index), ({ size }) => size === 0) : Effect.succeed(false))
    )

  const exportSession = Effect.fn("Exporter.exportSession")(function* (id: string) {
    if (!isID(id)) return yield* new SessionNotFound({ sessionID: id })
    yield* log.read({ sessionID: id, limit: 1 })
    const hadRemains = yield* removeRemains
    const { removals } = yield* followRemovals(yield* ledger.cursor, [])
    yield* ledger.setCursor({ ...(yield* ledger.cursor), removals })
    yield* attempt(id, Effect.zipRight(writer.advance(id), writer.finish(id, { atEnd: true })))
    const record = yield* ledger.session(id)
    // Adopting an unknown index needs all of its sessions.
    if (!caught && (hadRemains || (record !== undefined && (yield* isUnknown(record.index))))) yield* pullAll
    yield* writeIndexes(writer.dueIndexes())
  })

  const rebuild = Effect.fn("Exporter.rebuild")(function* (id?: string) {
    const again = (id: string) => attempt(id, Effect.zipRight(writer.rewrite(id), writer.finish(id, { atEnd: true })))
    if (id !== undefined) {
      yield* exportSession(id)
      yield* again(id)
      const record = yield* ledger.session(id)
      yield* writeIndexes(record === undefined ? [] : [record.index], true)
      return { position: (yield* ledger.cursor).position, sessions: 1 }
    }
    const { position } = yield* pullAll
    yield* retryBehind
    let [after, sessions] = ["", 0]
    while (true) {
      const records = yield* ledger.sessions(after, sweptAtOnce)
      for (const record of records) yield* again(record.id)
      sessions += records.length
      const last = records.at(-1)
      if (last === undefined) break
      after = last.id
    }
    yield* writeIndexes([...writer.dueIndexes(), ...(yield* ledger.indexes)], true)
    return { position, sessions }
  })

  return { catchUp, exportSession, pull, rebuild, retryBehind, sweepSome }
}

export type Export = ReturnType<typeof make>

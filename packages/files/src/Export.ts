/**
 * What an exporter does with one record: pages of the feed become files, sessions that something stood in the way of are
 * tried again, files that other hands changed are put back. It holds what it knows of the files in memory as well, so that
 * another record needs another one of these. One thing at a time: `Exporter.ts` sees to that.
 * Spec: FI-60..FI-89 in specs/files.md.
 */
import { SessionID, SessionNotFound, type EventLog, type SessionEvent, type SessionStore } from "@daybook/core"
import { Array as Arr, Effect, Schema } from "effect"
import type { ExportError, Finding } from "./Errors.ts"
import * as IndexWriter from "./IndexWriter.ts"
import type { Keeper } from "./Keeper.ts"
import type { WriteError } from "./KnownSessions.ts"
import type { Cursor, SessionRecord } from "./Ledger.ts"
import type { Modes } from "./Modes.ts"
import * as Remains from "./Remains.ts"
import type { Root } from "./Root.ts"
import * as SessionWriter from "./SessionWriter.ts"

export interface ExportOptions {
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  readonly modes: Modes
  /** Whose sessions without an address are. */
  readonly uid: number
  readonly report: (finding: Finding) => Effect.Effect<void>
}

/** Pages of the feed that are taken before values, context and indexes follow. */
const pagesAtOnce = 16
/** Sessions that something stood in the way of, tried again at once. */
const behindAtOnce = 64
const sweptAtOnce = 256
/** Sessions and indexes that are looked at in the background at once. */
const lookedAtOnce = 128
const indexesAtOnce = 8

const isID = Schema.is(SessionID)

/** A portion of the log that was brought into the files. */
export interface Pulled {
  readonly position: number
  readonly hasMore: boolean
  readonly sessions: ReadonlyArray<string>
}

/** The work on the files of one root, from its record; nothing is done yet. */
export const make = ({ files, ledger }: Root, { log, modes, report, store, uid }: ExportOptions) => {
  const keeper: Keeper = { files, ledger, modes, report }
  const writer = SessionWriter.make({ keeper, log, store, uid: uid })
  /** What was said of sessions that something stands in the way of: once each. */
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
   * A session whose folder is in the way, one of whose events cannot be read, or which is being removed, holds up no other:
   * it is tried again later.
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
      // What is remembered may be of another place than what is written.
      Effect.onError(() => Effect.sync(() => writer.forget(id)))
    )
  }

  const writeIndexes = (indexes: Iterable<string>, anew = false) =>
    Effect.forEach(
      new Set(indexes),
      (index) =>
        IndexWriter.write(keeper, index, { anew, adopted: writer.adopted(index) }).pipe(
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

  const remains = Remains.make(keeper, log)
  /** Whether folders of removed sessions that the record does not know were looked for. */
  let looked = false

  /** Indexes without a recorded session that were found under the root, until they are written for the first time. */
  let foundIndexes: ReadonlyArray<string> = []

  /** Removes what a lost record left of removed sessions; gives whether there was any. */
  const removeRemains = Effect.gen(function* () {
    if (looked) return false
    const found = yield* remains.find()
    for (const { id } of found.remains) yield* attempt(id, writer.drop(id))
    foundIndexes = found.indexes
    looked = true
    return found.remains.length > 0
  })

  /** Removals that came since, and what they leave of the events that were read before. */
  const followRemovals = (cursor: Cursor, events: ReadonlyArray<SessionEvent>) =>
    Effect.gen(function* () {
      const removed = new Map<string, number>()
      let after = cursor.removals
      while (true) {
        const page = yield* log.removals({ after })
        // What waits of a removed session is as if it had been written.
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

  /** The next page; an event that cannot be read is a page of its own, without it: its session stays where it was. */
  const nextPage = (after: number) =>
    Effect.catchTag(log.readFeed({ after }), "EventUnreadable", (error) => {
      const { position, sessionID } = error
      if (position === undefined) return error
      const page = { events: [], position, hasMore: true }
      // Not even whose it is can be read.
      if (!isID(sessionID))
        return Effect.as(tell({ kind: "behind", path: "", sessionID, details: error.message }), page)
      const leave = Effect.flatMap(writer.leave(sessionID), (path) =>
        tell({ kind: "behind", path, sessionID, details: error.message })
      )
      return Effect.as(attempt(sessionID, leave), page)
    })

  /** The next portion of the log, whole: logs, then values, context and indexes, then the cursor. */
  const pull: Effect.Effect<Pulled, ExportError> = Effect.gen(function* () {
    yield* removeRemains
    let cursor = yield* ledger.cursor
    const before = cursor
    const touched = new Set<string>()
    let hasMore = true
    for (let pages = 0; hasMore && pages < pagesAtOnce; pages++) {
      const page = yield* nextPage(cursor.position)
      // Read after the page: whatever was removed before an event of the page is known by now.
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
    // Before, it is not known which sessions an index that lies there had.
    if (caught) {
      yield* writeIndexes([...writer.dueIndexes(), ...foundIndexes])
      foundIndexes = []
    }
    if (cursor.position !== before.position || cursor.removals !== before.removals) yield* ledger.setCursor(cursor)
    return { position: cursor.position, hasMore, sessions: [...touched] }
  }).pipe(
    // The cursor stays: all of it comes again.
    Effect.onError(() => Effect.sync(() => writer.waiting().forEach(writer.forget)))
  )

  /** Tries what was left behind again, from the log. */
  const retryBehind = Effect.gen(function* () {
    const ids = yield* ledger.behind(behindAtOnce)
    for (const id of ids) {
      const again = Effect.zipRight(writer.advance(id), writer.finish(id, { atEnd: true }))
      yield* attempt(
        id,
        Effect.catchIf(
          again,
          // It was removed while something stood in the way of that.
          (error) => error._tag === "SessionNotFound" && error.removed !== true,
          () => writer.drop(id)
        )
      )
    }
    yield* writeIndexes(writer.dueIndexes())
  })

  /** Compares the stamps of all files, and puts back what is not as it was left. */
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

  /** Where the sweep in the background stands: after a session, or after an index when all sessions were looked at. */
  let round: { readonly sessions: string } | { readonly indexes: string } = { sessions: "" }

  const sweepSessions = (after: string) =>
    Effect.gen(function* () {
      const records = yield* ledger.sessions(after, lookedAtOnce)
      const last = records.at(-1)
      round = last === undefined ? { indexes: "" } : { sessions: last.id }
      const broken: Array<SessionRecord> = []
      for (const record of records) {
        // One that is behind is tried again by itself.
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
        const intact = Effect.catchTag(IndexWriter.intact(keeper, index), "PathRefused", () => Effect.succeed(false))
        if (!(yield* intact)) yield* writeIndexes([index])
      }
      return false
    })

  /** A part of all files, in turn: memory and time of one do not depend on how many there are. */
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
    // An index of which nothing is known can be told from one of other hands when all of its sessions are known.
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

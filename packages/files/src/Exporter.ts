/**
 * The exporter: keeps the files under a root as the log says, from a cursor of its own. It decides what is to be done and
 * in which order; `SessionWriter.ts` writes one session's folder, `IndexWriter.ts` one index, `Ledger.ts` keeps what was
 * written, and `Following.ts` repeats it. Spec: FI-60..FI-89 in specs/files.md.
 */
import { EventLog, SessionID, SessionNotFound, SessionStore, type SessionEvent } from "@daybook/core"
import { Array as Arr, Context, Effect, Layer, PubSub, Schema, type Scope, type Queue } from "effect"
import type { ExportError, Finding, RootBusy, RootOfAnotherStore, RootUnusable } from "./Errors.ts"
import { processUid } from "./FileCalls.ts"
import * as FollowerStatus from "./FollowerStatus.ts"
import * as Following from "./Following.ts"
import * as IndexWriter from "./IndexWriter.ts"
import type { Keeper } from "./Keeper.ts"
import type { WriteError } from "./KnownSessions.ts"
import type { SharedSpaces } from "./Layout.ts"
import type { Cursor, SessionRecord } from "./Ledger.ts"
import * as Remains from "./Remains.ts"
import * as Root from "./Root.ts"
import type { SafeFilesOptions } from "./SafeFiles.ts"
import * as SessionWriter from "./SessionWriter.ts"

/** Where the files lie, and whose they are. */
export interface ExporterOptions {
  /** The folder that holds the layout. It is made when it is not there. */
  readonly root: string
  /** Whose sessions without an address are: this process's user, if not given. */
  readonly uid?: number | undefined
  /** Who may read a shared space beside its owner. A space that is not named is its owner's alone. */
  readonly shared?: SharedSpaces | undefined
  /** Called before each operation on a file; what it throws is that operation's failure. For tests of failing disks. */
  readonly before?: SafeFilesOptions["before"]
}

/** How far an export came. */
export interface Exported {
  /** The last event that the files tell of, over all sessions. */
  readonly position: number
  /** Sessions that were brought up to date. */
  readonly sessions: number
}

/** The files of one store under one root. */
export class Exporter extends Context.Tag("@daybook/files/Exporter")<
  Exporter,
  {
    /** Brings all files to the end of the log, and puts back what was deleted or changed since it was written. */
    readonly catchUp: Effect.Effect<Exported, ExportError>
    /** Brings one session's files to the end of its log at once, wherever the others are. */
    readonly exportSession: (sessionID: string) => Effect.Effect<void, ExportError | SessionNotFound>
    /** Renders anew, compares every byte, and rewrites what differs; all sessions, or one. */
    readonly rebuild: (sessionID?: string) => Effect.Effect<Exported, ExportError | SessionNotFound>
    /**
     * Waits until the files tell of the event at this position. After a failure, which is logged, it returns at once:
     * nobody's run hangs on a full disk.
     */
    readonly reached: (position: number) => Effect.Effect<void>
    /** Keeps the files current for as long as it runs: at most a batch each 50 ms, again after a failure. */
    readonly follow: Effect.Effect<never>
    /** Listens, until the scope closes, to what is found of other hands; the newest 1,024 are kept. Each is logged as well. */
    readonly findings: Effect.Effect<Queue.Dequeue<Finding>, never, Scope.Scope>
  }
>() {
  /** The exporter of the store over one root; fails at once where another keeps it. It writes when it is asked to. */
  static layer(
    options: ExporterOptions
  ): Layer.Layer<Exporter, RootBusy | RootOfAnotherStore | RootUnusable, EventLog | SessionStore> {
    return Layer.scoped(Exporter, make(options))
  }

  /** Keeps the files current for as long as it runs. */
  static get follow(): Effect.Effect<never, never, Exporter> {
    return Effect.flatMap(Exporter, ({ follow }) => follow)
  }
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
interface Pulled {
  readonly position: number
  readonly hasMore: boolean
  readonly sessions: ReadonlyArray<string>
}

const make = Effect.fn("Exporter.make")(function* (
  options: ExporterOptions
): Effect.fn.Return<
  Exporter["Type"],
  RootBusy | RootOfAnotherStore | RootUnusable,
  EventLog | SessionStore | Scope.Scope
> {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  yield* Root.checkGroups(options.root, options.shared)
  const { modes, root } = yield* Root.openFolder(options.root, options.shared)
  const { files, ledger } = yield* Root.open({ root, before: options.before }, modes, log)
  const status = FollowerStatus.make(files, processUid)
  const findings = yield* PubSub.sliding<Finding>(1_024)
  yield* Effect.addFinalizer(() => PubSub.shutdown(findings))
  const report = (finding: Finding) =>
    Effect.zipRight(
      Effect.logWarning(`${root}/${finding.path}: ${finding.details}`),
      Effect.asVoid(PubSub.publish(findings, finding))
    )
  const keeper: Keeper = { files, ledger, modes, report }
  const writer = SessionWriter.make({ keeper, log, store, uid: options.uid ?? process.getuid?.() ?? 0 })
  /** One at a time: what writes, and what looks at what was written. */
  const alone = (yield* Effect.makeSemaphore(1)).withPermits(1)
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
        PathRefused: (error) => refused("refused", error.path.slice(root.length + 1), error.message),
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
            report({ kind: "refused", path: error.path.slice(root.length + 1), details: error.message })
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

  const following = yield* Following.make({
    log,
    position: Effect.map(ledger.cursor, ({ position }) => position),
    first: alone(catchUp),
    batch: alone(pull),
    retry: alone(retryBehind),
    sweep: alone(sweepSome),
    say: status.write
  })

  return {
    catchUp: Effect.withSpan(alone(catchUp), "Exporter.catchUp"),
    exportSession: (id) => alone(exportSession(id)),
    rebuild: (id) => alone(rebuild(id)),
    reached: following.reached,
    follow: following.follow,
    findings: PubSub.subscribe(findings)
  }
})

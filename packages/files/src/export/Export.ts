/**
 * The operations of an exporter on one record: exports pages of the feed, retries failed sessions, and restores changed
 * files. `Exporter.ts` runs one operation at a time. Spec: FI-60..FI-90 in specs/files.md.
 */
import { chmod, realpath, stat } from "node:fs/promises"
import { Effect } from "effect"
import { isSessionID, SessionID } from "@daybook/log/domain/Identifiers"
import { type EventLog, SessionNotFound } from "@daybook/log/log/EventLog"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import { codeOf, messageOf } from "@daybook/log/support/SystemError"
import { processUid } from "../disk/FileCalls.ts"
import * as SafeFiles from "../disk/SafeFiles.ts"
import { type Finding, PathRefused, RootOfAnotherStore, RootUnusable } from "../layout/Errors.ts"
import { type Modes, modesOf, type SharedSpaces } from "../layout/Layout.ts"
import * as Ledger from "../record/Ledger.ts"
import type { Cursor, SessionRecord } from "../record/Records.ts"
import type { Tracker } from "../record/TrackedFolder.ts"
import * as SessionWriter from "../session/SessionWriter.ts"
import { followRemovals, pull, pullAll, removeRemains } from "./Pull.ts"
import { attempt, finish, intactIndex, type Work, writeIndexes } from "./Work.ts"

// Takes a root: opens the folder, locks the exporter's record in it, and checks that its files belong to this store.

type Root = { readonly files: SafeFiles.SafeFiles; readonly ledger: Ledger.Ledger }

const saidBy = (error: unknown): string =>
  codeOf(error) === "EEXIST" ? "it is a file; give a folder" : messageOf(error)

/** The real path of the root, and the permissions below it. A new root is 0700, or 0711 with shared spaces. */
export const openFolder = (
  root: string,
  shared: SharedSpaces | undefined
): Effect.Effect<{ readonly root: string; readonly modes: Modes }, RootUnusable> =>
  Effect.tryPromise({
    try: async () => {
      await makeFolders(root, 0o700)
      const real = await realpath(root)
      // Another mode is the operator's choice.
      const mode = (await stat(real)).mode & 0o7777
      const wanted = modesOf(shared).passable ? 0o711 : 0o700
      if (mode !== wanted && (mode === 0o700 || mode === 0o711)) await chmod(real, wanted)
      return { root: real, modes: modesOf(shared, mode) }
    },
    catch: (error) => new RootUnusable({ root, details: saidBy(error) })
  })

/** Checks that this process may give files to the groups of the shared spaces. */
export const checkGroups = (root: string, shared: SharedSpaces = {}): Effect.Effect<void, RootUnusable> => {
  const groups = new Set([process.getegid?.(), ...(process.getgroups?.() ?? [])])
  const foreign = Object.entries(shared).find(
    ([, { group }]) => group !== undefined && processUid !== 0 && !groups.has(group)
  )
  if (foreign === undefined) return Effect.void
  const [space, { group }] = foreign
  const details = `the files of the shared space ${space} are for group ${group}, and user ${processUid} is not a member of it: add the user to the group, or remove the space from the configuration`
  return Effect.fail(new RootUnusable({ root, details }))
}

/** Whether the ledger's cursor is on an event of this log, or of a session removed from it. */
const isOfThisStore = (log: EventLog["Type"], { eventID, position, sessionID }: Cursor) =>
  Effect.gen(function* () {
    if (position === 0) return true
    const { events } = yield* log.readFeed({ after: position - 1, limit: 1, gaps: true })
    const [event] = events
    if (event?.position === position) return event.id === eventID
    // That event was not decoded, or no longer exists.
    if (eventID === null || sessionID === null) return true
    const pruned = yield* log.read({ sessionID: SessionID.make(sessionID), limit: 1 }).pipe(
      Effect.as(false),
      Effect.catchTag("SessionNotFound", () => Effect.succeed(false)),
      Effect.catchTag("CursorExpired", () => Effect.succeed(true))
    )
    if (pruned) return true
    for (let after = 0; ;) {
      const removals = yield* log.removals({ after })
      const last = removals.at(-1)
      if (last === undefined) return false
      if (removals.some((removal) => removal.sessionID === sessionID && removal.position >= position)) return true
      after = last.number
    }
  }).pipe(Effect.catchTag("CursorAhead", () => Effect.succeed(false)))

/** Takes the root until the scope closes; fails immediately if another process has it. */
export const open = Effect.fn("Root.open")(function* (
  options: SafeFiles.SafeFilesOptions,
  modes: Modes,
  log: EventLog["Type"]
) {
  const { root } = options
  const files = SafeFiles.make(options)
  const ledger = yield* Ledger.make(files, modes)
  const ours = yield* Effect.flatMap(ledger.cursor, (cursor) => isOfThisStore(log, cursor)).pipe(
    Effect.mapError((error) => new RootUnusable({ root, details: error.message }))
  )
  return ours ? { files, ledger } : yield* new RootOfAnotherStore({ root })
})

// Retries sessions that are behind, and restores changed files.

/** Failed sessions that one retry takes. */
const behindAtOnce = 64
/** Sessions whose stamps are compared at a time. */
const sweptAtOnce = 256
/** Sessions and indexes that one background sweep checks. */
const lookedAtOnce = 128
const indexesAtOnce = 8

/** Writes what a session's log has more than its files. */
const advance = ({ writer }: Work, id: string) =>
  Effect.zipRight(writer.advance(id), writer.finish(id, { atEnd: true }))

/** Whether files are as they were written; a refused path is not. */
const unlessRefused = <E>(intact: Effect.Effect<boolean, E | PathRefused>) =>
  Effect.catchIf(
    intact,
    (error): error is E & PathRefused => error instanceof PathRefused,
    () => Effect.succeed(false)
  )

const retryBehind = Effect.fnUntraced(function* (work: Work) {
  const ids = yield* work.tracker.ledger.behind(behindAtOnce)
  for (const id of ids) {
    yield* attempt(
      work,
      id,
      Effect.catchIf(
        advance(work, id),
        // It was removed while its export failed.
        (error) => error._tag === "SessionNotFound" && error.removed !== true,
        () => work.writer.drop(id)
      )
    )
  }
  yield* writeIndexes(work, work.writer.dueIndexes())
})

/** Compares the stamps of all files and restores the sessions and indexes that changed. */
const sweep = Effect.fnUntraced(function* (work: Work) {
  const put: Array<string> = []
  for (let after = ""; ;) {
    const records = yield* work.tracker.ledger.sessions(after, sweptAtOnce)
    const intact = yield* Effect.forEach(
      records,
      (record) => Effect.map(unlessRefused(work.writer.intact(record)), (intact) => ({ id: record.id, intact })),
      { concurrency: 8 }
    )
    const broken = intact.filter(({ intact }) => !intact).map(({ id }) => id)
    yield* finish(work, broken, true)
    put.push(...broken)
    const last = records.at(-1)
    if (last === undefined) break
    after = last.id
  }
  yield* writeIndexes(work, [...work.writer.dueIndexes(), ...(yield* work.tracker.ledger.indexes)])
  return put
})

const sweepSessions = Effect.fnUntraced(function* (work: Work, after: string) {
  const records = yield* work.tracker.ledger.sessions(after, lookedAtOnce)
  const last = records.at(-1)
  work.round = last === undefined ? { indexes: "" } : { sessions: last.id }
  const broken: Array<SessionRecord> = []
  for (const record of records) {
    // `retryBehind` handles it.
    if (record.behind) continue
    if (!(yield* unlessRefused(work.writer.intact(record)))) broken.push(record)
  }
  yield* finish(
    work,
    broken.map(({ id }) => id),
    true
  )
  yield* writeIndexes(work, [...work.writer.dueIndexes(), ...broken.map(({ index }) => index)])
  return broken.length > 0
})

const sweepIndexes = Effect.fnUntraced(function* (work: Work, after: string) {
  const indexes = (yield* work.tracker.ledger.indexes).filter((index) => index > after).slice(0, indexesAtOnce)
  const last = indexes.at(-1)
  work.round = last === undefined ? { sessions: "" } : { indexes: last }
  for (const index of indexes) {
    if (!(yield* unlessRefused(intactIndex(work.tracker, index)))) yield* writeIndexes(work, [index])
  }
  return false
})

/** Checks the next few sessions or indexes, so that time and memory do not depend on their number. */
const sweepSome = (work: Work) =>
  Effect.suspend(() =>
    "sessions" in work.round ? sweepSessions(work, work.round.sessions) : sweepIndexes(work, work.round.indexes)
  )

export interface ExportOptions {
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  readonly modes: Modes
  /** The owner of sessions without an address. */
  readonly uid: number
  readonly report: (finding: Finding) => Effect.Effect<void>
}

const catchUp = Effect.fnUntraced(function* (work: Work) {
  const { position, sessions } = yield* pullAll(work)
  yield* retryBehind(work)
  for (const id of yield* sweep(work)) sessions.add(id)
  return { position, sessions: sessions.size }
})

const isUnknown = (work: Work, index: string) =>
  Effect.flatMap(
    Effect.orElseSucceed(work.tracker.files.reach(index), () => false),
    (there) => (there ? Effect.map(work.tracker.ledger.files(index), ({ size }) => size === 0) : Effect.succeed(false))
  )

/** Removes the files of sessions that were removed since the cursor; returns whether a lost record had left some. */
const applyRemovals = Effect.fnUntraced(function* (work: Work) {
  const hadRemains = yield* removeRemains(work)
  const { removals } = yield* followRemovals(work, yield* work.tracker.ledger.cursor, [])
  yield* work.tracker.ledger.setCursor({ ...(yield* work.tracker.ledger.cursor), removals })
  return hadRemains
})

const removeFiles = Effect.fn("Exporter.removeFiles")(function* (work: Work) {
  // Adopting an unknown index needs all of its sessions.
  if (yield* applyRemovals(work)) yield* pullAll(work)
  yield* writeIndexes(work, work.writer.dueIndexes())
})

const exportSession = Effect.fn("Exporter.exportSession")(function* (work: Work, id: string) {
  if (!isSessionID(id)) return yield* new SessionNotFound({ sessionID: id })
  yield* work.log.head(id)
  const hadRemains = yield* applyRemovals(work)
  yield* attempt(work, id, advance(work, id))
  const record = yield* work.tracker.ledger.session(id)
  // Adopting an unknown index needs all of its sessions.
  if (!work.caught && (hadRemains || (record !== undefined && (yield* isUnknown(work, record.index)))))
    yield* pullAll(work)
  yield* writeIndexes(work, work.writer.dueIndexes())
})

const rebuild = Effect.fn("Exporter.rebuild")(function* (work: Work, id?: string) {
  const again = (id: string) =>
    attempt(work, id, Effect.zipRight(work.writer.rewrite(id), work.writer.finish(id, { atEnd: true })))
  if (id !== undefined) {
    yield* exportSession(work, id)
    const done = yield* again(id)
    const record = yield* work.tracker.ledger.session(id)
    yield* writeIndexes(work, record === undefined ? [] : [record.index], true)
    const { position } = yield* work.tracker.ledger.cursor
    return { position, sessions: done ? 1 : 0, left: done ? 0 : 1 }
  }
  const { position } = yield* pullAll(work)
  yield* retryBehind(work)
  let [after, sessions, left] = ["", 0, 0]
  while (true) {
    const records = yield* work.tracker.ledger.sessions(after, sweptAtOnce)
    for (const record of records) {
      if (yield* again(record.id)) sessions += 1
      else left += 1
    }
    const last = records.at(-1)
    if (last === undefined) break
    after = last.id
  }
  yield* writeIndexes(work, [...work.writer.dueIndexes(), ...(yield* work.tracker.ledger.indexes)], true)
  return { position, sessions, left }
})

/** Makes the operations on the files of one root and its record; runs nothing. */
export const make = ({ files, ledger }: Root, { log, modes, report, store, uid }: ExportOptions) => {
  const tracker: Tracker = { files, ledger, modes, report }
  const work: Work = {
    tracker,
    log,
    writer: SessionWriter.make({ tracker, log, store, uid }),
    said: new Set(),
    caught: false,
    looked: false,
    foundIndexes: [],
    round: { sessions: "" }
  }
  return {
    catchUp: catchUp(work),
    exportSession: (id: string) => exportSession(work, id),
    pull: pull(work),
    rebuild: (id?: string) => rebuild(work, id),
    removeFiles: removeFiles(work),
    retryBehind: retryBehind(work),
    sweepSome: sweepSome(work)
  }
}

export type Export = ReturnType<typeof make>

/** Exports the feed batch by batch, and follows removals. Spec: FI-69, FI-82, FI-97 in specs/files.md. */
import { Array as Arr, Effect, Option, Schema } from "effect"
import { isSessionID, SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { EventLog } from "@daybook/log/log/EventLog"
import { houses, lookForHouse, type SafeFiles } from "../disk/SafeFiles.ts"
import type { ExportError } from "../layout/Errors.ts"
import { indexFolder, type KeptAddress, Meta, sessionFolder } from "../layout/Layout.ts"
import { type Cursor, type FileRecord, recordOf } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { isLog } from "../render/Rendering.ts"
import { contextFolders, contextPrefix, isContextName } from "../render/SessionContext.ts"
import { valueNames } from "../render/Values.ts"
import { unwritten } from "../session/Writer.ts"
import { attempt, finish, flush, tell, type Work, writeIndexes } from "./Work.ts"

// Finds folders of removed sessions that a lost or older record does not list, so that they are removed too. A folder
// counts only if its `meta.json` names its own address and a session that the log removed.

type Remains = { readonly id: SessionID; readonly folder: string; readonly index: string }

const longestMeta = 1024 * 1024
const decodeMeta = Schema.decodeUnknownOption(Schema.parseJson(Meta))
const decodeID = Schema.decodeUnknownOption(SessionID)

const folders = ["", contextPrefix.slice(0, -1), ...contextFolders]

/** Whether the layout has a file of that name in a session's folder. */
const isOfLayout = (name: string): boolean => isLog(name) || valueNames.has(name) || isContextName(name)

/** The target of a temporary file name; any other name is unchanged. */
const targetOf = (name: string): string => /^\.(.+)\.tmp$/.exec(name)?.[1] ?? name

/** The address in the folder's metadata; the user id is that of its home. */
const addressAt = (folder: string, meta: Meta): KeptAddress | undefined => {
  const { kind, name, session } = meta
  if (meta.scope === "private") {
    return { scope: "private", uid: Number(folder.split("/")[1]), kind, name, session }
  }
  return meta.shared === undefined ? undefined : { scope: "shared", shared: meta.shared, kind, name, session }
}

/** The session that the folder's `meta.json` names, if the folder is at that session's address. */
const claimed = Effect.fnUntraced(function* (files: SafeFiles, folder: string) {
  const path = `${folder}/meta.json`
  if (!(yield* files.reach(folder))) return undefined
  const stamp = yield* files.stamp(path)
  if (stamp === undefined || stamp.size > longestMeta) return undefined
  const text = Buffer.from(yield* files.readRange(path, 0, stamp.size)).toString("utf8")
  return Option.getOrUndefined(
    Option.gen(function* () {
      const meta = yield* decodeMeta(text)
      const id = yield* decodeID(meta.session_id)
      const address = yield* Option.fromNullable(addressAt(folder, meta))
      if (sessionFolder(address) !== folder) return yield* Option.none()
      return { id, folder, index: indexFolder(address) } satisfies Remains
    })
  )
})

/** Keeps the sessions that the log removed and does not hold now. */
const removedOf = Effect.fnUntraced(function* (
  { ledger }: TrackedFolder.Tracker,
  log: EventLog["Type"],
  found: ReadonlyArray<Remains>
) {
  if (found.length === 0) return []
  const ids = new Set<string>(found.map(({ id }) => id))
  const removed = new Set<string>()
  for (let [after, more] = [0, true]; more;) {
    const page = yield* log.removals({ after })
    for (const { sessionID } of page) if (ids.has(sessionID)) removed.add(sessionID)
    after = page.at(-1)?.number ?? after
    more = page.length > 0
  }
  return yield* Effect.filter(found, ({ id }) =>
    Effect.gen(function* () {
      if (!removed.has(id) || (yield* ledger.session(id)) !== undefined) return false
      return yield* Effect.as(log.head(id), false).pipe(Effect.catchTag("SessionNotFound", () => Effect.succeed(true)))
    })
  )
})

/** The record of a file as it is now; undefined unless it is a regular file. */
const recorded = (files: SafeFiles, path: string) =>
  Effect.gen(function* () {
    const stamp = yield* files.stamp(path)
    return stamp === undefined ? undefined : recordOf(yield* files.sum(path), stamp)
  }).pipe(Effect.catchTag("PathRefused", () => Effect.void))

/** Records the layout's files in the folder, with any content, and targets of temporary files. */
const record = Effect.fnUntraced(function* ({ files, ledger }: TrackedFolder.Tracker, remains: Remains) {
  const { folder } = remains
  const found = new Map<string, FileRecord>()
  for (const sub of folders) {
    for (const entry of yield* lookForHouse(files, sub === "" ? folder : `${folder}/${sub}`)) {
      const target = targetOf(entry.name)
      const name = sub === "" ? target : `${sub}/${target}`
      if (entry.folder || !isOfLayout(name)) continue
      found.set(name, (yield* recorded(files, `${folder}/${name}`)) ?? TrackedFolder.empty)
    }
  }
  yield* ledger.keep(folder, found, unwritten(remains, ""))
})

/** Records index files that hold only names of sibling folders. */
const recordIndex = Effect.fnUntraced(function* (
  { files, ledger }: TrackedFolder.Tracker,
  index: string,
  names: ReadonlySet<string>
) {
  const known = yield* ledger.files(index)
  const hints = (yield* lookForHouse(files, `${index}/by-cwd`)).map(({ name }) => `by-cwd/${name}`)
  const found = new Map<string, FileRecord>()
  for (const name of ["list", "current", ...hints.filter((hint) => /\/[0-9a-f]{64}$/.test(hint))]) {
    const path = `${index}/${name}`
    const file = yield* recorded(files, path)
    if (file === undefined || file.stamp === known.get(name)?.stamp || file.size > 65 * (names.size + 1)) continue
    const lines = Buffer.from(yield* files.readRange(path, 0, file.size))
      .toString("utf8")
      .split("\n")
    if (lines.pop() === "" && lines.every((line) => names.has(line))) found.set(name, file)
  }
  yield* ledger.keep(index, found)
})

/** Records and returns the remains, and returns the indexes of houses without a recorded session. */
const find = Effect.fnUntraced(function* (tracker: TrackedFolder.Tracker, log: EventLog["Type"]) {
  const { files, ledger } = tracker
  const all: Array<Remains> = []
  const indexes: Array<string> = []
  for (const house of yield* houses(files)) {
    const index = `${house}/index`
    const [known, claims] = [yield* ledger.folders(index), new Array<Remains>()]
    const beside = (yield* lookForHouse(files, house)).filter(({ folder, name }) => folder && name !== "index")
    for (const { name } of beside) {
      const path = `${house}/${name}`
      if (known.has(path)) continue
      const claim = yield* Effect.catchTag(claimed(files, path), "PathRefused", () => Effect.void)
      if (claim !== undefined) claims.push(claim)
    }
    const remains = yield* removedOf(tracker, log, claims)
    // The index first: after a kill, a recorded folder is not searched again.
    if (remains.length > 0) yield* recordIndex(tracker, index, new Set(beside.map(({ name }) => name)))
    for (const one of remains) yield* record(tracker, one)
    all.push(...remains)
    if (known.size === 0) indexes.push(index)
  }
  return { remains: all, indexes }
})

/** Pages of the feed that are read before values, context and indexes are written. */
const pagesAtOnce = 16

export interface PullResult {
  readonly position: number
  readonly hasMore: boolean
  readonly sessions: ReadonlyArray<string>
}

/** Removes files of removed sessions that a lost record left behind; returns whether there were any. */
export const removeRemains = Effect.fnUntraced(function* (work: Work) {
  if (work.looked) return false
  const found = yield* find(work.tracker, work.log)
  for (const { id } of found.remains) yield* attempt(work, id, work.writer.drop(id))
  work.foundIndexes = found.indexes
  work.looked = true
  return found.remains.length > 0
})

/** Applies the removals since the cursor, and returns the events that they leave of this page. */
export const followRemovals = Effect.fnUntraced(function* (
  work: Work,
  cursor: Cursor,
  events: ReadonlyArray<SessionEvent>
) {
  const removed = new Map<string, number>()
  let after = cursor.removals
  while (true) {
    const page = yield* work.log.removals({ after })
    // Pending rows of a removed session are handled like written ones.
    if (page.length > 0) yield* flush(work)
    for (const { number, position, sessionID } of page) {
      removed.set(sessionID, position)
      const record = yield* work.tracker.ledger.session(sessionID)
      if (record !== undefined && record.position <= position)
        yield* attempt(work, sessionID, work.writer.drop(sessionID))
      after = number
    }
    if (page.length < 512) break
  }
  return {
    removals: after,
    events: events.filter(({ position, sessionID }) => position > (removed.get(sessionID) ?? 0))
  }
})

/** Reads the next page of the feed without pruned events. An unreadable event gives an empty page; its session waits there. */
const nextPage = (work: Work, after: number) =>
  Effect.catchTag(work.log.readFeed({ after, gaps: true }), "EventUnreadable", (error) => {
    const { position, sessionID } = error
    if (position === undefined) return error
    const page = { events: [], position, hasMore: true }
    // The session id is unreadable too.
    if (!isSessionID(sessionID))
      return Effect.as(tell(work, { kind: "behind", path: "", sessionID, details: error.message }), page)
    const leave = Effect.flatMap(work.writer.leave(sessionID), (path) =>
      tell(work, { kind: "behind", path, sessionID, details: error.message })
    )
    return Effect.as(attempt(work, sessionID, leave), page)
  })

/** Exports the next batch: logs, then values, context and indexes, then the cursor. */
export const pull = (work: Work): Effect.Effect<PullResult, ExportError> =>
  Effect.gen(function* () {
    yield* removeRemains(work)
    let cursor = yield* work.tracker.ledger.cursor
    const before = cursor
    const touched = new Set<string>()
    let hasMore = true
    for (let pages = 0; hasMore && pages < pagesAtOnce; pages++) {
      const page = yield* nextPage(work, cursor.position)
      // Read after the page, so every removal before an event of the page is included.
      const { events, removals } = yield* followRemovals(work, cursor, page.events)
      for (const [id, portion] of Object.entries(Arr.groupBy(events, ({ sessionID }) => sessionID))) {
        touched.add(id)
        yield* attempt(work, id, work.writer.append(id, portion))
      }
      if (work.writer.isFull()) yield* flush(work)
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
    yield* finish(work, touched, !hasMore)
    work.caught ||= !hasMore
    // Until then the sessions of an existing index are not all known.
    if (work.caught) {
      yield* writeIndexes(work, [...work.writer.dueIndexes(), ...work.foundIndexes])
      work.foundIndexes = []
    }
    if (cursor.position !== before.position || cursor.removals !== before.removals)
      yield* work.tracker.ledger.setCursor(cursor)
    return { position: cursor.position, hasMore, sessions: [...touched] }
  }).pipe(
    // The cursor did not move: the next pull reads these events again.
    Effect.onError(() => Effect.sync(() => work.writer.waiting().forEach(work.writer.forget)))
  )

export const pullAll = Effect.fnUntraced(function* (work: Work) {
  const sessions = new Set<string>()
  while (true) {
    const pulled = yield* pull(work)
    for (const id of pulled.sessions) sessions.add(id)
    if (!pulled.hasMore) return { position: pulled.position, sessions }
  }
})

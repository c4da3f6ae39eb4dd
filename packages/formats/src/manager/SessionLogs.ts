/**
 * Creates, opens, forks and moves sessions of entry logs. A session takes the lock of its file with the first write, or
 * when an existing file is opened; the scope releases the lock. Spec: FM-99, FM-125..FM-129 (PE-1, OP-2, OP-7, OP-8).
 */
import { basename, dirname, join } from "node:path"
import { Clock, Effect, Option, type Scope } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { BlobStore } from "../blob/BlobStore.ts"
import * as Breadcrumb from "../discovery/Breadcrumb.ts"
import * as Discovery from "../discovery/Discovery.ts"
import { logEnding, logName, seedFolder } from "../discovery/Discovery.ts"
import { type EntryError, NotASession } from "../entry/EntryReader.ts"
import { currentVersion, type Header } from "../entry/Entry.ts"
import { type FileMissing, SessionStorage } from "../storage/SessionStorage.ts"
import {
  entryID,
  EntryNotFound,
  isWorthKeeping,
  LogExists,
  make,
  sessionID,
  type SessionManager,
  type WriteError
} from "./SessionManager.ts"
import * as LogFile from "./LogFile.ts"
import { load } from "./LogFile.ts"

type Needs = SessionStorage | BlobStore | Scope.Scope

const newHeader = Effect.fnUntraced(function* (cwd: string, more: JsonRecord = {}) {
  const [id, now] = [yield* sessionID, yield* Clock.currentTimeMillis]
  const timestamp = new Date(now).toISOString()
  const header: Header = { type: "session", version: currentVersion, id, timestamp, cwd, ...more }
  return { header, now }
})

/** A session with these records in a new file, which an answer makes real. `isStored`: they come from a file. */
const begin = Effect.fnUntraced(function* (
  folder: string,
  { header, now }: { readonly header: Header; readonly now: number },
  records: ReadonlyArray<JsonRecord> = [],
  isStored = true
): Effect.fn.Return<SessionManager, WriteError, Needs> {
  const file = yield* LogFile.make(join(folder, logName(now, header.id)), false)
  if (!isWorthKeeping(records)) return yield* make({ before: [], header, records }, file)
  const stored = isStored ? records : (yield* Effect.forEach(records, file.stored)).map(({ value }) => value)
  yield* file.rewrite([header, ...stored])
  return yield* make({ before: [], header, records: stored }, file)
})

/** A new session. Nothing is written before its first answer. */
export const create = Effect.fn("SessionLogs.create")(function* (
  root: Discovery.Root,
  cwd: string
): Effect.fn.Return<SessionManager, WriteError, Needs> {
  return yield* begin(join(root.sessions, seedFolder(cwd)), yield* newHeader(cwd))
})

/** A session that is never written. */
export const inMemory = Effect.fn("SessionLogs.inMemory")(function* (cwd: string) {
  const { header } = yield* newHeader(cwd)
  return yield* make({ before: [], header, records: [] }, undefined)
})

/**
 * Opens the log. A missing or empty file becomes a new session; any other file that is not a session stays as it is. A log
 * of an older version is migrated at once. What a rewrite would lose is kept: the file before its migration as
 * `<name>.v1.bak`, one with damaged lines as `<name>.damaged.bak`.
 */
export const open = Effect.fn("SessionLogs.open")(function* (
  path: string,
  cwd: string
): Effect.fn.Return<SessionManager, EntryError | FileMissing | WriteError, Needs> {
  const storage = yield* SessionStorage
  const isThere = (yield* storage.exists(path)) && (yield* storage.stat(path)).sizeBytes > 0
  const file = yield* LogFile.make(path, isThere)
  if (!isThere) {
    const { header } = yield* newHeader(cwd)
    return yield* make({ before: [], header, records: [] }, file)
  }
  const loaded = yield* load(path)
  if (loaded === undefined) return yield* new NotASession({})
  if (loaded.migratedFrom !== undefined) {
    const options = { backup: `v${loaded.migratedFrom}`, tail: loaded.end }
    yield* file.rewrite([...loaded.before, loaded.header, ...loaded.records], options)
  }
  return yield* make(loaded, file)
})

/** The session of this terminal and directory, else the newest of the directory, else a new one. */
export const continueRecent = Effect.fn("SessionLogs.continueRecent")(function* (
  root: Discovery.Root,
  cwd: string,
  terminal?: Breadcrumb.Terminal
): Effect.fn.Return<SessionManager, EntryError | FileMissing | WriteError, Needs> {
  const left = terminal === undefined ? Option.none() : yield* Breadcrumb.read(terminal, cwd)
  if (Option.isSome(left)) return yield* open(left.value, cwd)
  const [newest] = yield* Discovery.list(root, cwd)
  return newest === undefined ? yield* create(root, cwd) : yield* open(newest.path, cwd)
})

/** A copy of the session with an id and a file of its own, beside it. The session itself is not changed. */
export const fork = Effect.fn("SessionLogs.fork")(function* (
  root: Discovery.Root,
  session: SessionManager
): Effect.fn.Return<SessionManager, WriteError, Needs> {
  const { timestamp: _time, version: _version, ...kept } = session.header()
  const { header, now } = yield* newHeader(cwdOf(session.header()), { parentSession: kept.id })
  const path = session.path()
  const folder = path === undefined ? join(root.sessions, seedFolder(cwdOf(header))) : dirname(path)
  const records = session.records().after
  return yield* begin(folder, { header: { ...kept, ...header }, now }, records, session.isWritten())
})

const cwdOf = ({ cwd }: Header): string => (typeof cwd === "string" ? cwd : "/")

/** A copy of a log, of any version, for another directory. The log is only read; an empty one is an error. */
export const forkFrom = Effect.fn("SessionLogs.forkFrom")(function* (
  root: Discovery.Root,
  source: string,
  cwd: string
): Effect.fn.Return<SessionManager, EntryError | FileMissing | WriteError, Needs> {
  const loaded = yield* load(source)
  if (loaded === undefined) return yield* new NotASession({})
  const { timestamp: _time, version: _version, ...kept } = loaded.header
  const { header, now } = yield* newHeader(cwd, { parentSession: kept.id })
  return yield* begin(join(root.sessions, seedFolder(cwd)), { header: { ...kept, ...header }, now }, loaded.records)
})

/**
 * A session of the path to an entry alone. Labels along the path are left out, and labels of its entries added again behind
 * them; entries below a label that is left out follow what precedes it.
 */
export const branched = Effect.fn("SessionLogs.branched")(function* (
  root: Discovery.Root,
  session: SessionManager,
  leaf: string
): Effect.fn.Return<SessionManager, EntryNotFound | WriteError, Needs> {
  const path = pathTo(session, leaf)
  if (path === undefined) return yield* new EntryNotFound({ id: leaf })
  let parentId: string | null = null
  const records: Array<JsonRecord> = []
  for (const record of path) {
    records.push({ ...record, parentId })
    parentId = String(record["id"])
  }
  const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
  const taken = new Set(records.map(({ id }) => id))
  for (const { id } of path) {
    const label = session.label(String(id))
    if (label === undefined) continue
    const own: string = yield* entryID((one) => taken.has(one))
    taken.add(own)
    records.push({ type: "label", id: own, parentId, timestamp, targetId: id, label })
    parentId = own
  }
  const cwd = cwdOf(session.header())
  const title = session.header()["title"]
  const from = session.path()
  const created = yield* newHeader(cwd, {
    ...(title === undefined ? {} : { title }),
    parentSession: from ?? session.header().id
  })
  const folder = from === undefined ? join(root.sessions, seedFolder(cwd)) : dirname(from)
  return yield* begin(folder, created, records, session.isWritten())
})

/** The records from the root to an entry, without labels. */
const pathTo = (session: SessionManager, leaf: string): ReadonlyArray<JsonRecord> | undefined => {
  const seen = new Set<string>()
  const path: Array<JsonRecord> = []
  for (let entry = session.entry(leaf); entry !== undefined && !seen.has(entry.id);) {
    seen.add(entry.id)
    if (entry.body?.type !== "label") path.push(entry.record)
    entry = entry.parentId === null ? undefined : session.entry(entry.parentId)
  }
  return seen.size === 0 ? undefined : path.toReversed()
}

/** The folder of a session's other files: the log's path without its ending. */
export const artifactsOf = (path: string): string => path.slice(0, -logEnding.length)

/** Moves the session's file, artifacts and header to another working directory, or undoes all of it. */
export const move = Effect.fn("SessionLogs.move")(function* (
  root: Discovery.Root,
  session: SessionManager,
  cwd: string
): Effect.fn.Return<void, LogExists | FileMissing | WriteError, SessionStorage> {
  const storage = yield* SessionStorage
  return yield* session.change((file, changeHeader) =>
    Effect.gen(function* () {
      const moved = (header: Header): Header => ({ ...header, cwd })
      if (file === undefined) return yield* changeHeader(moved)
      const [from, to] = [file.path(), join(root.sessions, seedFolder(cwd), basename(file.path()))]
      if (from === to) return yield* changeHeader(moved)
      const pairs = [
        [from, to],
        [artifactsOf(from), artifactsOf(to)]
      ] as const
      for (const [, target] of pairs) if (yield* storage.exists(target)) return yield* new LogExists({ path: target })
      const renamed: Array<readonly [string, string]> = []
      const undo = Effect.forEach(renamed, ([source, target]) => Effect.ignore(storage.rename(target, source)))
      const rename = Effect.forEach(pairs, ([source, target]) =>
        Effect.gen(function* () {
          if (!(yield* storage.exists(source))) return
          yield* storage.rename(source, target)
          renamed.unshift([source, target])
        })
      )
      yield* file.moveTo(
        to,
        Effect.onError(Effect.asVoid(rename), () => Effect.suspend(() => undo))
      )
      yield* Effect.onError(changeHeader(moved), () => Effect.suspend(() => undo))
    })
  )
})

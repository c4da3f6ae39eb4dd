/**
 * Opens `ledger.sqlite` and holds SQLite's exclusive lock on it, which allows one exporter per user and root. Moves a
 * damaged file, or a file of another version, aside. Spec: FI-65..FI-68 in specs/files.md,
 * specs/decisions/0008-ledger.md, FI-124 in specs/files.md, FI-91 in specs/files.md.
 */
import { lstatSync } from "node:fs"
import { type FileHandle, lstat, open as openFile } from "node:fs/promises"
import { join } from "node:path"
import * as Reactivity from "@effect/experimental/Reactivity"
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, ExecutionStrategy, Exit, Option, Schema, Scope } from "effect"
import * as Connection from "@daybook/log/storage/Connection"
import { immediately, pragma, reasonOf } from "@daybook/log/storage/Transaction"
import * as UnusedBytes from "@daybook/log/storage/UnusedBytes"
import { isAbsent } from "@daybook/log/support/SystemError"
import { processUid } from "../disk/FileCalls.ts"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { LedgerFailed, RootBusy, RootUnusable, type SafeError } from "../layout/Errors.ts"
import type { Modes } from "../layout/Layout.ts"

// Names the hold of a root in the database: it records how far the root's files are, as long as the folder of the
// record lives.

/** The folder of all exporters' records under the root. */
const recordsFolder = ".daybook"

const prefix = "files "

/** The name of the root's hold. No other consumer has a name with a space. */
export const nameOf = (root: string): string => prefix + root

/** Whether this is the hold of a root that was removed. A root that cannot be reached still holds. */
export const isGone = (name: string): Effect.Effect<boolean> =>
  name.startsWith(prefix)
    ? Effect.tryPromise(() => lstat(join(name.slice(prefix.length), recordsFolder))).pipe(
        Effect.as(false),
        Effect.catchAll(({ error }) => Effect.succeed(isAbsent(error)))
      )
    : Effect.succeed(false)

export { recordsFolder }
export const ownFolder = (uid: number): string => `${recordsFolder}/${uid}`
const version = 1
const applicationID = 0x4461794c

const schema = [
  `CREATE TABLE cursor (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL, event_id TEXT,
    session_id TEXT, removals INTEGER NOT NULL)`,
  `CREATE TABLE session (id TEXT PRIMARY KEY, folder TEXT NOT NULL, house TEXT NOT NULL, seq INTEGER NOT NULL,
    position INTEGER NOT NULL, first TEXT NOT NULL, shown INTEGER NOT NULL,
    checkpoint_seq INTEGER NOT NULL, checkpoint_size INTEGER NOT NULL, entry TEXT, behind INTEGER NOT NULL) WITHOUT ROWID`,
  `CREATE INDEX session_house ON session (house)`,
  `CREATE INDEX session_behind ON session (id) WHERE behind = 1`,
  `CREATE TABLE file (folder TEXT NOT NULL, name TEXT NOT NULL, stamp TEXT NOT NULL, size INTEGER NOT NULL,
    crc INTEGER NOT NULL, next_size INTEGER, next_crc INTEGER, lasting INTEGER NOT NULL, PRIMARY KEY (folder, name)) WITHOUT ROWID`,
  // A separate table: the session's own row changes with every batch.
  `CREATE TABLE checkpoint (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID`,
  `INSERT INTO cursor VALUES (1, 0, NULL, NULL, 0)`,
  `PRAGMA application_id = ${applicationID}`,
  `PRAGMA user_version = ${version}`
]

/** The file is not a ledger of this version, or is damaged. */
class NotOurs {
  readonly _tag = "NotOurs"
}

/** Truncates the write-ahead log and overwrites unused bytes, which may hold deleted rows. Only this connection uses the file. */
export const erase = (sql: SqlClient.SqlClient, filename: string) =>
  Effect.zipRight(sql`PRAGMA wal_checkpoint(TRUNCATE)`, UnusedBytes.overwrite(sql, filename))

const prepare = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  // A second exporter fails immediately.
  yield* sql`PRAGMA busy_timeout = 0`
  yield* sql`PRAGMA locking_mode = EXCLUSIVE`
  yield* sql`PRAGMA journal_mode = WAL`
  // A commit survives the process. After a power cut the files are compared with the log.
  yield* sql`PRAGMA synchronous = NORMAL`
  // The checkpoints hold text of sessions: a removed one leaves none here either (ST-39).
  yield* sql`PRAGMA secure_delete = ON`
  const tables = yield* sql`SELECT 1 FROM sqlite_master LIMIT 1`
  if (tables.length === 0) return yield* immediately(sql)(Effect.forEach(schema, (part) => sql.unsafe(part)))
  if ((yield* pragma(sql, "application_id")) !== applicationID || (yield* pragma(sql, "user_version")) !== version) {
    return yield* Effect.fail(new NotOurs())
  }
  if ((yield* pragma(sql, "quick_check(1)")) !== "ok") return yield* Effect.fail(new NotOurs())
  // A write takes the lock.
  yield* sql`UPDATE cursor SET one = 1`
  // A process that was killed may have left a removed session in it.
  yield* erase(sql, filename)
})

/** Opens the connection and takes its lock; undefined, with the connection closed, if the file must be kept aside. */
const connect = (
  filename: string,
  root: string
): Effect.Effect<SqlClient.SqlClient | undefined, RootBusy | RootUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
    const sql = yield* Connection.open({ filename }).pipe(
      Effect.map(({ client }) => client),
      Effect.tap((opened) => prepare(opened, filename)),
      // The driver throws if it cannot open a file or prepare a statement.
      Effect.catchAllDefect((defect) => Effect.fail(defect)),
      Effect.provideService(Scope.Scope, scope),
      Effect.provide(Reactivity.layer),
      Effect.either
    )
    if (Either.isRight(sql)) return sql.right
    yield* Scope.close(scope, Exit.void)
    const error = sql.left
    if (reasonOf(error) === "busy") return yield* new RootBusy({ root })
    if (error instanceof NotOurs || reasonOf(error) === "corrupt") return undefined
    return yield* new RootUnusable({ root, details: new LedgerFailed({ path: filename, cause: error }).message })
  })

/** Moves the record of a version that had one for all users. */
const adoptFormer = Effect.fnUntraced(function* (files: SafeFiles, fileName: string) {
  const former = `${recordsFolder}/ledger.sqlite`
  if ((yield* files.stamp(fileName)) !== undefined || (yield* files.stamp(former)) === undefined) return
  for (const suffix of ["-wal", "-shm", ""]) yield* files.rename(former + suffix, fileName + suffix)
})

const unusable = (root: string) => (error: SafeError) => new RootUnusable({ root, details: error.message })

/** Identifies the file at the path; empty if it is absent. */
const identity = (filename: string): string => {
  const stats = lstatSync(filename, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? "" : `${stats.dev}:${stats.ino}`
}

/** Creates the file, if it is absent, with the permissions that SQLite gives to its side files too. */
const create = (files: SafeFiles, modes: Modes, folder: string, fileName: string) =>
  Effect.gen(function* () {
    yield* files.ensureFolders([folder], modes)
    yield* adoptFormer(files, fileName)
    if ((yield* files.stamp(fileName)) === undefined) yield* files.append(fileName, "", 0o600)
  }).pipe(Effect.mapError(unusable(files.root)))

const setAside = (files: SafeFiles, fileName: string) =>
  Effect.gen(function* () {
    const aside = yield* files.keepAside(fileName)
    for (const suffix of ["-wal", "-shm", "-journal"]) yield* files.remove(fileName + suffix)
    yield* Effect.logWarning(
      `the exporter's record is damaged or of another version and was kept as ${aside}: all files are compared with the log`
    )
  }).pipe(Effect.mapError(unusable(files.root)))

/** The open file. */
export interface LedgerFile {
  readonly filename: string
  readonly sql: SqlClient.SqlClient
  /** Whether it is still the file under the root; otherwise its lock no longer protects the root. */
  readonly isHeld: Effect.Effect<boolean, LedgerFailed>
}

/** Opens the file and takes its lock until the scope closes. */
export const open = Effect.fnUntraced(function* (files: SafeFiles, modes: Modes) {
  const { root } = files
  const folder = ownFolder(processUid)
  const fileName = `${folder}/ledger.sqlite`
  const filename = files.absolute(fileName)
  const created = create(files, modes, folder, fileName)
  yield* created
  const sql =
    (yield* connect(filename, root)) ??
    (yield* setAside(files, fileName).pipe(Effect.zipRight(created), Effect.zipRight(connect(filename, root))))
  if (sql === undefined) return yield* new RootUnusable({ root, details: `${filename} cannot be created again` })
  const look = Effect.try({
    try: () => identity(filename),
    catch: (cause) => new LedgerFailed({ path: filename, cause })
  })
  const opened = yield* Effect.mapError(look, ({ message }) => new RootUnusable({ root, details: message }))
  let closed = false
  yield* Effect.addFinalizer(() => Effect.sync(() => (closed = true)))
  return {
    filename,
    sql,
    // Once the record is closed, another file may get its inode.
    isHeld: Effect.map(look, (there) => !closed && there !== "" && there === opened)
  }
})

// Writes and reads `follower.json`, the status of a follower. The file keeps its full length, so that a follower can
// report a full disk.

/** The status of a follower: following, failing and retrying, or stopped. */
export const FollowerState = Schema.Struct({
  version: Schema.Literal(1),
  pid: Schema.Int,
  state: Schema.Literal("following", "failing", "stopped"),
  /** The position that the files had reached when the state began. */
  position: Schema.Int,
  /** When the state began, in milliseconds since the epoch. */
  since: Schema.Finite,
  /** Why the last attempt failed. */
  error: Schema.optionalWith(Schema.String, { exact: true })
})
export type FollowerState = typeof FollowerState.Type

const Stored = Schema.parseJson(FollowerState)
const decode = Schema.decodeOption(Stored)

/** The fixed length of the file in bytes. */
const length = 2_048
const longestError = 400

const pathOf = (uid: number): string => `${ownFolder(uid)}/follower.json`

const textOf = ({ error, ...state }: FollowerState): Buffer =>
  Buffer.from(JSON.stringify(error === undefined ? state : { ...state, error: error.slice(0, longestError) }))

/** Writes the status of one user's follower; a failed write is ignored. */
export const makeFollowerStatus = (files: SafeFiles, uid: number) => ({
  write: (state: FollowerState): Effect.Effect<void> => {
    const text = textOf(state)
    const padding = Buffer.alloc(Math.max(1, length - text.length), " ")
    padding[padding.length - 1] = 10
    return Effect.ignore(files.overwrite(pathOf(uid), Buffer.concat([text, padding]), 0o600))
  }
})

const readStart = async (path: string): Promise<string> => {
  const file: FileHandle = await openFile(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0)
    return buffer.toString("utf8", 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Reads the status of this user's follower under the root; none if the file is absent or unreadable. */
export const follower = (root: string, uid: number): Effect.Effect<Option.Option<FollowerState>> =>
  Effect.tryPromise(() => readStart(join(root, pathOf(uid)))).pipe(
    Effect.map(decode),
    Effect.orElseSucceed(Option.none)
  )

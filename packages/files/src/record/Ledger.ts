/**
 * The exporter's record, `ledger.sqlite` in its folder under the root: the cursor, and what each file was when it was
 * written. SQLite's exclusive lock is held while the record is open and allows one exporter per user and root. A
 * damaged record, or one of another version, is kept aside; all files are then compared with the log. Spec:
 * FI-65..FI-68 in specs/files.md, specs/decisions/0008-ledger.md.
 */
import { lstatSync } from "node:fs"
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, ExecutionStrategy, Exit, Predicate, Scope } from "effect"
import { immediately } from "@daybook/log/storage/Database"
import { processUid } from "../disk/FileCalls.ts"
import type { SafeFiles, Stamp, Sum } from "../disk/SafeFiles.ts"
import { LedgerFailed, RootBusy, RootUnusable, type SafeError } from "../layout/Errors.ts"
import { type Modes, modesOf } from "../layout/Modes.ts"

/** The folder of all exporters' records under the root. */
export const recordsFolder = ".daybook"
/** The folder of this user's record. */
export const ownFolder = (uid: number): string => `${recordsFolder}/${uid}`
const version = 1
/** "DayL" */
const applicationID = 0x4461794c

/** The exporter's place in the log. */
export interface Cursor {
  readonly position: number
  /** The event at that position and its session. Another store has a different event there. */
  readonly eventID: string | null
  readonly sessionID: string | null
  /** The number of the last removal followed. */
  readonly removals: number
}

/** The export state of one session. */
export interface SessionRecord {
  readonly id: string
  /** Relative to the root. */
  readonly folder: string
  /** The folder of its index. */
  readonly index: string
  /** The last event in the logs, its position, and the id of the session's first event. */
  readonly seq: number
  readonly position: number
  readonly first: string
  /** The last event that the single values reflect. */
  readonly shown: number
  /** The event of the stored checkpoint and its length; -1 and 0 without one. */
  readonly checkpointSeq: number
  readonly checkpointSize: number
  /** Its index entry as JSON; null before its values are first written. */
  readonly entry: string | null
  /** The export failed; it is retried from the log. */
  readonly behind: boolean
}

/** One file as it was last written. */
export interface FileRecord extends Sum {
  /** Its stamp; empty if the content must be checked. */
  readonly stamp: string
  /** The content about to be written; after a kill the file may already hold it. */
  readonly next: Sum | null
  /** It is written once, from the log, and not again with the values. */
  readonly lasting: boolean
}

export type FileRecords = ReadonlyMap<string, FileRecord>

export const recordOf = ({ crc, size }: Sum, stamp: Stamp, lasting = false): FileRecord => ({
  crc,
  size,
  stamp: stamp.text,
  next: null,
  lasting
})

interface FileRow {
  readonly name: string
  readonly stamp: string
  readonly size: number
  readonly crc: number
  readonly next_size: number | null
  readonly next_crc: number | null
  readonly lasting: number
}

type SessionRow = Omit<SessionRecord, "index" | "behind" | "checkpointSeq" | "checkpointSize"> & {
  readonly house: string
  readonly behind: number
  readonly checkpoint_seq: number
  readonly checkpoint_size: number
}

const toSession = ({ behind, checkpoint_seq, checkpoint_size, house, ...row }: SessionRow): SessionRecord => ({
  ...row,
  index: house,
  checkpointSeq: checkpoint_seq,
  checkpointSize: checkpoint_size,
  behind: behind === 1
})

const isCode = (error: unknown, codes: ReadonlyArray<string>): boolean => {
  const cause = error instanceof SqlError.SqlError ? error.cause : error
  return (
    Predicate.hasProperty(cause, "code") &&
    typeof cause.code === "string" &&
    codes.some((code) => String(cause.code).startsWith(code))
  )
}

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

const pragma = (sql: SqliteClient.SqliteClient, name: string) =>
  Effect.map(sql.unsafe<Record<string, unknown>>(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])

const prepare = Effect.fnUntraced(function* (sql: SqliteClient.SqliteClient) {
  // A second exporter fails immediately.
  yield* sql`PRAGMA busy_timeout = 0`
  yield* sql`PRAGMA locking_mode = EXCLUSIVE`
  yield* sql`PRAGMA journal_mode = WAL`
  // A commit survives the process. After a power cut the files are compared with the log.
  yield* sql`PRAGMA synchronous = NORMAL`
  const tables = yield* sql`SELECT 1 FROM sqlite_master LIMIT 1`
  if (tables.length === 0) return yield* immediately(sql)(Effect.forEach(schema, (part) => sql.unsafe(part)))
  if ((yield* pragma(sql, "application_id")) !== applicationID || (yield* pragma(sql, "user_version")) !== version) {
    return yield* Effect.fail(new NotOurs())
  }
  if ((yield* pragma(sql, "quick_check(1)")) !== "ok") return yield* Effect.fail(new NotOurs())
  // A write takes the lock.
  yield* sql`UPDATE cursor SET one = 1`
})

/** Opens the connection and takes its lock; undefined, with the connection closed, if the file must be kept aside. */
const open = (
  filename: string,
  root: string
): Effect.Effect<SqliteClient.SqliteClient | undefined, RootBusy | RootUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
    const sql = yield* SqliteClient.make({ filename, disableWAL: true }).pipe(
      Effect.tap(prepare),
      // The driver throws if it cannot open a file or prepare a statement.
      Effect.catchAllDefect((defect) => Effect.fail(defect)),
      Effect.provideService(Scope.Scope, scope),
      Effect.provide(Reactivity.layer),
      Effect.either
    )
    if (Either.isRight(sql)) return sql.right
    yield* Scope.close(scope, Exit.void)
    const error = sql.left
    if (isCode(error, ["SQLITE_BUSY", "SQLITE_LOCKED"])) return yield* new RootBusy({ root })
    if (error instanceof NotOurs || isCode(error, ["SQLITE_NOTADB", "SQLITE_CORRUPT"])) return undefined
    return yield* new RootUnusable({ root, details: new LedgerFailed({ path: filename, cause: error }).message })
  })

/** Moves the record of a version that had one for all users. */
const adoptFormer = (files: SafeFiles, fileName: string) =>
  Effect.gen(function* () {
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

/** The record of a root; `fresh` if nothing was recorded. */
export interface Ledger {
  /** Whether the open record is still the file under the root; otherwise its lock no longer protects the root. */
  readonly isHeld: Effect.Effect<boolean, LedgerFailed>
  readonly cursor: Effect.Effect<Cursor, LedgerFailed>
  readonly setCursor: (cursor: Cursor) => Effect.Effect<void, LedgerFailed>
  readonly session: (id: string) => Effect.Effect<SessionRecord | undefined, LedgerFailed>
  /** The last stored checkpoint of the session's fold, as JSON. */
  readonly checkpoint: (id: string) => Effect.Effect<string | undefined, LedgerFailed>
  /** The next records after an id, in id order. */
  readonly sessions: (after: string, limit: number) => Effect.Effect<ReadonlyArray<SessionRecord>, LedgerFailed>
  /** Sessions whose export failed, at most `limit`. */
  readonly behind: (limit: number) => Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  readonly setBehind: (id: string) => Effect.Effect<void, LedgerFailed>
  /** The entries of this index, as JSON. */
  readonly entries: (index: string) => Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  readonly indexes: Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  /** The folders of the sessions in this index. */
  readonly folders: (index: string) => Effect.Effect<ReadonlySet<string>, LedgerFailed>
  readonly files: (folder: string) => Effect.Effect<FileRecords, LedgerFailed>
  /** Stores a session and files of its folder in one transaction; an undefined file is deleted from the record. */
  readonly keep: (
    folder: string,
    files: ReadonlyMap<string, FileRecord | undefined>,
    session?: SessionRecord,
    checkpoint?: string
  ) => Effect.Effect<void, LedgerFailed>
  /** Deletes the session's record. The records of its files are deleted one by one, with the files. */
  readonly forget: (id: string) => Effect.Effect<void, LedgerFailed>
}

/** Opens the record and takes its lock until the scope closes. */
export const make = Effect.fn("Ledger.make")(function* (
  files: SafeFiles,
  modes: Modes = modesOf()
): Effect.fn.Return<Ledger, RootBusy | RootUnusable, Scope.Scope> {
  const folder = ownFolder(processUid)
  const fileName = `${folder}/ledger.sqlite`
  const filename = files.absolute(fileName)
  const prepared = Effect.gen(function* () {
    yield* files.ensureFolders([folder], modes)
    yield* adoptFormer(files, fileName)
    // Created here, because SQLite gives its side files the permissions of this one.
    if ((yield* files.stamp(fileName)) === undefined) yield* files.append(fileName, "", 0o600)
  }).pipe(Effect.mapError(unusable(files.root)))
  yield* prepared
  const look = Effect.try({
    try: () => identity(filename),
    catch: (cause) => new LedgerFailed({ path: filename, cause })
  })
  const setAside = Effect.gen(function* () {
    const aside = yield* files.keepAside(fileName)
    for (const suffix of ["-wal", "-shm", "-journal"]) yield* files.remove(fileName + suffix)
    yield* Effect.logWarning(
      `the exporter's record is damaged or of another version and was kept as ${aside}: all files are compared with the log`
    )
  }).pipe(Effect.mapError(unusable(files.root)))
  const sql =
    (yield* open(filename, files.root)) ??
    (yield* setAside.pipe(Effect.zipRight(prepared), Effect.zipRight(open(filename, files.root))))
  if (sql === undefined) {
    return yield* new RootUnusable({ root: files.root, details: `${filename} cannot be created again` })
  }

  const opened = yield* Effect.mapError(look, (error) => new RootUnusable({ root: files.root, details: error.message }))
  let closed = false
  yield* Effect.addFinalizer(() => Effect.sync(() => (closed = true)))

  const run = <A>(effect: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, LedgerFailed> =>
    effect.pipe(
      Effect.mapError(({ cause }) => cause),
      // The driver throws on some disk faults.
      Effect.catchAllDefect(Effect.fail),
      Effect.mapError((cause) => new LedgerFailed({ path: filename, cause })),
      Effect.uninterruptible
    )

  const putFiles = (folder: string, records: ReadonlyMap<string, FileRecord | undefined>) => {
    const rows = [...records].flatMap(([name, record]) =>
      record === undefined
        ? []
        : [
            {
              folder,
              name,
              stamp: record.stamp,
              size: record.size,
              crc: record.crc,
              next_size: record.next?.size ?? null,
              next_crc: record.next?.crc ?? null,
              lasting: record.lasting ? 1 : 0
            }
          ]
    )
    const gone = [...records].flatMap(([name, record]) => (record === undefined ? [name] : []))
    return Effect.zipRight(
      Effect.forEach(chunksOf(rows), (chunk) => sql`INSERT OR REPLACE INTO file ${sql.insert(chunk)}`, {
        discard: true
      }),
      Effect.forEach(
        chunksOf(gone),
        (chunk) => sql`DELETE FROM file WHERE folder = ${folder} AND name IN ${sql.in(chunk)}`,
        { discard: true }
      )
    )
  }

  const putSession = ({ behind, checkpointSeq, checkpointSize, index, ...record }: SessionRecord) =>
    sql`INSERT OR REPLACE INTO session ${sql.insert({
      ...record,
      house: index,
      checkpoint_seq: checkpointSeq,
      checkpoint_size: checkpointSize,
      behind: behind ? 1 : 0
    })}`

  return {
    // Once the record is closed, another file may get its inode.
    isHeld: Effect.map(look, (there) => !closed && there !== "" && there === opened),
    cursor: run(
      sql<{
        readonly position: number
        readonly event_id: string | null
        readonly session_id: string | null
        readonly removals: number
      }>`
        SELECT position, event_id, session_id, removals FROM cursor`
    ).pipe(
      Effect.map(([row]) => ({
        position: row?.position ?? 0,
        eventID: row?.event_id ?? null,
        sessionID: row?.session_id ?? null,
        removals: row?.removals ?? 0
      }))
    ),
    setCursor: ({ eventID, position, removals, sessionID }) =>
      run(
        sql`UPDATE cursor SET position = ${position}, event_id = ${eventID}, session_id = ${sessionID}, removals = ${removals}`
      ),
    session: (id) =>
      Effect.map(run(sql<SessionRow>`SELECT * FROM session WHERE id = ${id}`), ([row]) => row && toSession(row)),
    checkpoint: (id) =>
      Effect.map(
        run(sql<{ readonly text: string }>`SELECT text FROM checkpoint WHERE id = ${id}`),
        ([row]) => row?.text
      ),
    sessions: (after, limit) =>
      Effect.map(run(sql<SessionRow>`SELECT * FROM session WHERE id > ${after} ORDER BY id LIMIT ${limit}`), (rows) =>
        rows.map(toSession)
      ),
    behind: (limit) =>
      Effect.map(
        run(sql<{ readonly id: string }>`SELECT id FROM session WHERE behind = 1 ORDER BY id LIMIT ${limit}`),
        (rows) => rows.map(({ id }) => id)
      ),
    setBehind: (id) => run(sql`UPDATE session SET behind = 1 WHERE id = ${id}`),
    entries: (index) =>
      Effect.map(
        run(sql<{ readonly entry: string }>`SELECT entry FROM session WHERE house = ${index} AND entry IS NOT NULL`),
        (rows) => rows.map(({ entry }) => entry)
      ),
    indexes: Effect.map(
      run(sql<{ readonly house: string }>`SELECT DISTINCT house FROM session ORDER BY house`),
      (rows) => rows.map(({ house }) => house)
    ),
    folders: (index) =>
      Effect.map(
        run(sql<{ readonly folder: string }>`SELECT folder FROM session WHERE house = ${index}`),
        (rows) => new Set(rows.map(({ folder }) => folder))
      ),
    files: (folder) =>
      Effect.map(
        run(
          sql<FileRow>`SELECT name, stamp, size, crc, next_size, next_crc, lasting FROM file WHERE folder = ${folder}`
        ),
        (rows) =>
          new Map(
            rows.map(({ crc, lasting, name, next_crc, next_size, size, stamp }) => [
              name,
              {
                stamp,
                size,
                crc,
                lasting: lasting === 1,
                next: next_size === null || next_crc === null ? null : { size: next_size, crc: next_crc }
              }
            ])
          )
      ),
    keep: (folder, records, session, checkpoint) =>
      records.size === 0 && session === undefined
        ? Effect.void
        : run(
            immediately(sql)(
              Effect.gen(function* () {
                yield* putFiles(folder, records)
                if (session === undefined) return
                yield* putSession(session)
                if (checkpoint === undefined) return
                yield* sql`INSERT OR REPLACE INTO checkpoint ${sql.insert({ id: session.id, text: checkpoint })}`
              })
            )
          ),
    forget: (id) =>
      run(
        immediately(sql)(
          Effect.zipRight(sql`DELETE FROM checkpoint WHERE id = ${id}`, sql`DELETE FROM session WHERE id = ${id}`)
        )
      ).pipe(Effect.asVoid)
  }
})

/** Splits rows to bound the parameters of a statement. */
const chunksOf = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / 64) }, (_, i) => items.slice(i * 64, (i + 1) * 64))

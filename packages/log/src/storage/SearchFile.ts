/**
 * Opens the search index: an SQLite database of its own on this machine, so that indexing never holds the log's lock. It
 * holds terms and places, no text, and can be built again from the log at any time. Removed sessions are erased from it.
 * Spec: SE-1..SE-4, SE-20..SE-22 in specs/storage.md, PG-50, PG-51 in specs/postgres.md.
 */
import { existsSync, realpathSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import * as Reactivity from "@effect/experimental/Reactivity"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Clock, Context, Effect, Option, type Scope } from "effect"
import { DatabaseError, open } from "./Database.ts"
import * as Dialect from "./Dialect.ts"
import { makeFolders, makePrivate } from "./PrivateFile.ts"
import { pragma, directly, immediately, reasonOf, retryBusy } from "./Transaction.ts"
import { codeOf } from "../support/SystemError.ts"
import * as UnusedBytes from "./UnusedBytes.ts"
import { truncate } from "./UnusedBytes.ts"

/** The application id in SQLite's header, "DayS". */
const applicationID = 0x44617953

/** Version of tables, tokens and indexed texts. An index of another version is built again. */
const version = 2

export const searchPath = (filename: string): string => {
  try {
    return `${realpathSync(filename)}.search`
  } catch {
    return `${filename}.search`
  }
}

/** The file of a client's database; empty for one in memory. */
export const fileOf = (sql: SqlClient.SqlClient): Effect.Effect<string, SqlError.SqlError> =>
  Effect.map(
    sql<{ readonly file: string }>`SELECT file FROM pragma_database_list WHERE name = 'main'`,
    ([main]) => main?.file ?? ""
  )

/** SQLite's name of a temporary database: it moves to a nameless file when it grows, and ends with its connection. */
export const temporaryIndex = ""

/** Where the index of a log in PostgreSQL is kept on this machine. */
export class IndexFile extends Context.Reference<IndexFile>()("@daybook/log/IndexFile", {
  defaultValue: () => temporaryIndex
}) {}

/** Where the index of a log is kept. */
export const indexPath = (log: SqlClient.SqlClient): Effect.Effect<string, SqlError.SqlError> =>
  Dialect.isPostgres(log) ? IndexFile : Effect.map(fileOf(log), (file) => (file === "" ? ":memory:" : searchPath(file)))

const isFile = (path: string): boolean => path !== ":memory:" && path !== temporaryIndex

const tables = [
  // One row: the log that the index belongs to, the position up to which it is complete, and an event to compare.
  `CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT NOT NULL,
    position INTEGER NOT NULL,
    compared INTEGER NOT NULL,
    checksum INTEGER NOT NULL
  ) STRICT`,
  // The sessions with documents.
  `CREATE TABLE session (session INTEGER PRIMARY KEY) STRICT`,
  // A document is the text of one event; its key is the event's position.
  `CREATE TABLE document (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    role INTEGER NOT NULL,
    created INTEGER NOT NULL,
    size INTEGER NOT NULL
  ) STRICT`,
  // Prompts, in the order of their times: imports store old ones.
  `CREATE INDEX document_prompt ON document (created, position) WHERE role = 0`,
  // The first and the last document of each day, so that a range of times is a range of positions.
  `CREATE TABLE day (day INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT`,
  // Contentless: the texts are in the log. \`tag\` holds the session and the role.
  `CREATE VIRTUAL TABLE terms USING fts5(
    text, tag, tool, model, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
  )`
]

const names = ["terms", "day", "document", "session", "state"]

/** Empties the index in one transaction: the next update builds it again. */
export const reset = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  retryBusy(
    immediately(sql)(
      Effect.forEach(
        [
          ...names.map((name) => `DROP TABLE IF EXISTS ${name}`),
          ...tables,
          `PRAGMA application_id = ${applicationID}`,
          `PRAGMA user_version = ${version}`
        ],
        (statement) => sql.unsafe(statement),
        { discard: true }
      )
    )
  )

const foreign = (filename: string) =>
  new DatabaseError({
    filename,
    reason: "not-daybook",
    details: "this file is not a search index of Daybook; move it away, and the index is built again"
  })

const prepare = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  yield* sql`PRAGMA busy_timeout = 50`
  const [found] = yield* sql<{ readonly count: number }>`SELECT count(*) AS count FROM sqlite_master`
  const isEmpty = found?.count === 0
  if (!isEmpty && (yield* pragma(sql, "application_id")) !== applicationID) return yield* foreign(filename)
  if (isEmpty) yield* sql`PRAGMA auto_vacuum = INCREMENTAL`
  yield* sql`PRAGMA journal_mode = WAL`
  // A lost commit is indexed again.
  yield* sql`PRAGMA synchronous = NORMAL`
  yield* sql`PRAGMA secure_delete = ON`
  yield* sql`PRAGMA cache_size = -16000`
  yield* sql.unsafe("PRAGMA journal_size_limit = 0")
  if ((yield* pragma(sql, "user_version")) !== version) yield* reset(sql)
})

const unusable = (filename: string, reason: DatabaseError["reason"], details: string) =>
  new DatabaseError({ filename, reason, details: `the search index cannot be used: ${details}` })

const failed = (filename: string) => (error: SqlError.SqlError) => {
  const reason = reasonOf(error)
  const said = error.cause instanceof Error ? error.cause.message : error.message
  return unusable(filename, reason === "unknown" ? "cannot-open" : reason, said)
}

const unopened = ({ details, filename, reason }: DatabaseError) =>
  unusable(filename, reason, reason === "read-only" ? "this user may not write its file" : details)

/** Deletes the files of an index. A temporary one ends with its connection. */
export const discard = (path: string): Effect.Effect<void> =>
  Effect.sync(() => {
    if (!isFile(path)) return
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true })
  })

const opened = (path: string) =>
  Effect.gen(function* () {
    if (isFile(path)) {
      yield* Effect.tryPromise({
        try: () => makeFolders(dirname(path), 0o700),
        catch: (cause) => unusable(path, "cannot-open", `its folder cannot be made (${codeOf(cause)})`)
      })
      yield* Effect.promise(() => makePrivate(path))
    }
    const sql = yield* Effect.mapError(open({ filename: path }), unopened)
    yield* Effect.catchTag(retryBusy(prepare(sql, path)), "SqlError", failed(path))
    return sql
  })

/** Opens the index of a database, and creates it if it does not exist. A damaged one is deleted and created again. */
export const openIndex = (path: string): Effect.Effect<SqlClient.SqlClient, DatabaseError, Scope.Scope> =>
  opened(path).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "corrupt" && isFile(path),
      () => Effect.zipRight(discard(path), opened(path))
    ),
    Effect.provide(Reactivity.layer)
  )

/** Opens an index if there is a file of it. */
export const openExisting = (path: string) =>
  isFile(path) && existsSync(path) ? Effect.asSome(openIndex(path)) : Effect.succeedNone

// Removes from the search index what belongs to removed sessions, whose terms FTS5 keeps until segments are merged.

/** Documents that one transaction deletes. */
const stepDocuments = 500

/** Pages that one transaction merges: a few milliseconds. */
const stepPages = 32

/** Between two steps other processes get the index. */
const betweenSteps = Effect.withClock(Effect.sleep("1 millis"), Clock.make())

/** The sessions of the index that the log does not have any more. */
const selectGone = Effect.fnUntraced(function* (log: SqlClient.SqlClient, index: SqlClient.SqlClient) {
  const indexed = yield* index<{ readonly session: number }>`SELECT session FROM session`
  if (indexed.length === 0) return []
  const gone = yield* log<{ readonly session: number }>`SELECT j.value AS session
    FROM ${Dialect.numbers(
      log,
      indexed.map(({ session }) => session)
    )}
    WHERE NOT EXISTS (SELECT 1 FROM event_sequence q WHERE q.session = j.value AND q.session_id IS NOT NULL)`
  return gone.map(({ session }) => session)
})

/** Deletes some of a session's documents. Returns whether there may be more. */
const deleteStep = (index: SqlClient.SqlClient, session: number) =>
  retryBusy(
    immediately(index)(
      directly(index, (statements) => {
        const found = statements.all<{ readonly position: number }>(
          `SELECT rowid AS position FROM terms WHERE terms MATCH ? LIMIT ${stepDocuments}`,
          [`tag : "s${session}"`]
        )
        for (const { position } of found) {
          statements.run("DELETE FROM terms WHERE rowid = ?", [position])
          statements.run("DELETE FROM document WHERE position = ?", [position])
        }
        return found.length === stepDocuments
      })
    )
  )

/** Merges some pages of segments. `first` begins a merge of all segments. Returns whether there was work. */
const mergeStep = (index: SqlClient.SqlClient, first: boolean) =>
  retryBusy(
    immediately(index)(
      directly(index, (statements) => {
        const changes = () => statements.all<{ readonly n: number }>("SELECT total_changes() AS n", [])[0]?.n ?? 0
        const before = changes()
        statements.run("INSERT INTO terms (terms, rank) VALUES ('merge', ?)", [first ? -stepPages : stepPages])
        return changes() - before >= 2
      })
    )
  )

/** Truncates the write-ahead log of the index, and overwrites unused bytes. Returns whether no reader prevented it. */
const overwritten = (index: SqlClient.SqlClient, path: string) =>
  Effect.flatMap(truncate(index), (truncated) =>
    truncated ? UnusedBytes.overwriteShared(index, path) : Effect.succeed(false)
  )

/**
 * Deletes the documents of removed sessions, and merges all segments, so that none of their terms is left. The removal
 * from a log in a file overwrites unused bytes (`eraseBeside`); for a log elsewhere, which other machines remove from,
 * this does. Returns whether nothing is left of them.
 */
export const erase = Effect.fnUntraced(function* (log: SqlClient.SqlClient, index: SqlClient.SqlClient) {
  const gone = yield* selectGone(log, index)
  if (gone.length === 0) return true
  for (const session of gone) while (yield* deleteStep(index, session)) yield* betweenSteps
  let first = true
  while (yield* mergeStep(index, first)) {
    first = false
    yield* betweenSteps
  }
  if (Dialect.isPostgres(log)) {
    const path = yield* fileOf(index)
    if (path !== "" && !(yield* overwritten(index, path))) return false
  }
  // Last: after a kill or a reader before this, the next run merges and overwrites again.
  yield* retryBusy(index`DELETE FROM session WHERE session IN (SELECT value FROM json_each(${JSON.stringify(gone)}))`)
  return true
})

/** `erase` for a process that updates often: to compare all sessions with the log takes long if there are many. */
export const makeErasing = (log: SqlClient.SqlClient, index: SqlClient.SqlClient) => {
  /** The last removal before everything was erased. */
  let erased: number | undefined
  return Effect.gen(function* () {
    const [last] = yield* log<{ readonly number: number | null }>`SELECT max(number) AS number FROM session_removal`
    const removed = last?.number ?? 0
    if (removed !== erased && (yield* erase(log, index))) erased = removed
  })
}

/**
 * Erases removed sessions from the log's index on this machine, if there is one. Returns whether nothing is left of them;
 * false if a reader still needs the write-ahead log.
 */
export const eraseBeside = (log: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError | DatabaseError> =>
  Effect.gen(function* () {
    const path = yield* indexPath(log)
    const index = yield* openExisting(path)
    if (Option.isNone(index)) return true
    return yield* Effect.catchIf(
      Effect.flatMap(erase(log, index.value), (erased) =>
        Dialect.isPostgres(log) ? Effect.succeed(erased) : overwritten(index.value, path)
      ),
      // A damaged index is deleted as a whole; the next update builds it again.
      (error) => reasonOf(error) === "corrupt",
      () => Effect.as(discard(path), true)
    )
  }).pipe(Effect.scoped)

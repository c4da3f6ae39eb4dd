/**
 * Opens the search index: a database of its own beside the log's, so that indexing never holds the log's lock. It holds
 * terms and places, no text, and can be built again from the log at any time. `SearchErasure.ts` removes sessions from
 * it. Spec: specs/search.md SE-1..SE-4.
 */
import { existsSync, realpathSync, rmSync } from "node:fs"
import * as Reactivity from "@effect/experimental/Reactivity"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, type Scope } from "effect"
import { DatabaseError, open } from "./Database.ts"
import { immediately, retryBusy } from "./Transaction.ts"
import { makePrivate } from "./PrivateFile.ts"
import { reasonOf } from "./StorageReason.ts"

/** The application id in SQLite's header, "DayS". */
const applicationID = 0x44617953

/** Version of tables, tokens and indexed texts. An index of another version is built again. */
const version = 2

/** The path of the index of a database. */
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

const pragma = (sql: SqlClient.SqlClient, name: string) =>
  Effect.map(sql.unsafe<Record<string, unknown>>(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])

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

const unusable = (filename: string) => (error: SqlError.SqlError) =>
  new DatabaseError({
    filename,
    reason: reasonOf(error) === "unknown" ? "cannot-open" : reasonOf(error),
    details: `the search index cannot be used: ${error.cause instanceof Error ? error.cause.message : error.message}`
  })

/** Deletes the files of an index. */
export const discard = (path: string): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true })
  })

const opened = (path: string) =>
  Effect.gen(function* () {
    if (path !== ":memory:") yield* Effect.promise(() => makePrivate(path))
    const sql = yield* open({ filename: path })
    yield* Effect.catchTag(retryBusy(prepare(sql, path)), "SqlError", unusable(path))
    return sql
  })

/** Opens the index of a database, and creates it if it does not exist. A damaged one is deleted and created again. */
export const openIndex = (path: string): Effect.Effect<SqlClient.SqlClient, DatabaseError, Scope.Scope> =>
  opened(path).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "corrupt" && path !== ":memory:",
      () => Effect.zipRight(discard(path), opened(path))
    ),
    Effect.provide(Reactivity.layer)
  )

/** Opens the index of a database if it exists. */
export const openExisting = (path: string) => (existsSync(path) ? Effect.asSome(openIndex(path)) : Effect.succeedNone)

/**
 * Opening the database: pragmas, version check, migrations, the write transaction, and the second connection that
 * reads. Everything else sees only `SqlClient` (writes) and `ReadSql` (reads). Spec: specs/storage.md ST-2..ST-8.
 */
import { constants } from "node:fs"
import { access, realpath, stat } from "node:fs/promises"
import { dirname } from "node:path"
import { Reactivity } from "@effect/experimental"
import { Migrator, SqlClient, SqlError } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Cause, Context, Effect, Layer, Option, Predicate, Schedule, Schema, type Scope } from "effect"
import initial from "./migrations/0001_initial.ts"
import context from "./migrations/0002_context.ts"
import addresses from "./migrations/0003_addresses.ts"
import leases from "./migrations/0004_leases.ts"
import incarnations from "./migrations/0005_incarnations.ts"
import approvals from "./migrations/0006_approvals.ts"
import { makePrivate } from "./PrivateFile.ts"
import { reasonOf, StorageReason } from "./StorageReason.ts"

/** The database cannot be used. `reason` says why, the message what to do. Nothing was changed. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>("@daybook/core/DatabaseError")("DatabaseError", {
  filename: Schema.String,
  reason: Schema.Union(StorageReason, Schema.Literal("newer-version", "not-daybook", "cannot-open")),
  details: Schema.String
}) {
  override get message() {
    return `${this.filename}: ${this.details}`
  }
}

/** A read-only connection of its own, so that reads never wait behind the writer. In memory it is the same one. */
export class ReadSql extends Context.Tag("@daybook/core/ReadSql")<ReadSql, SqlClient.SqlClient>() {}

export interface DatabaseOptions {
  /** A path, or `:memory:`. */
  readonly filename: string
}

/** Marks a file as ours in SQLite's header ("DayB"). */
export const applicationID = 0x44617942

const migrations: Record<string, Effect.Effect<unknown, unknown, SqlClient.SqlClient>> = {
  "0001_initial": initial,
  "0002_context": context,
  "0003_addresses": addresses,
  "0004_leases": leases,
  "0005_incarnations": incarnations,
  "0006_approvals": approvals
}

/** The newest schema that this build knows. */
export const schemaVersion = Object.keys(migrations).length

/** Waits for a lock that another process holds: from 5 ms, growing, about ten seconds in all (EV-11). */
const busySchedule = Schedule.exponential("5 millis", 1.5).pipe(
  Schedule.union(Schedule.spaced("250 millis")),
  Schedule.jittered,
  Schedule.upTo("10 seconds")
)

const isBusy = (error: unknown): boolean => error instanceof SqlError.SqlError && reasonOf(error) === "busy"

/** Repeats while the database is busy, for about ten seconds: at once, then by the schedule, which few ever need. */
export const retryBusy = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catchIf(effect, isBusy, () => Effect.retry(effect, { schedule: busySchedule, while: isBusy }))

const failedInside = (error: SqlError.SqlError): boolean =>
  error.cause instanceof Error && error.cause.message.includes("within a transaction")

/**
 * Runs the effect between `begin` and a commit, and undoes it when it fails or is interrupted. Every failure of the
 * database is typed, that of the commit included: the driver's own `withTransaction` makes defects of them, which no
 * retry sees.
 */
const bracketed =
  (sql: SqlClient.SqlClient, begin: "BEGIN" | "BEGIN IMMEDIATE") =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.scoped(
        Effect.flatMap(restore(sql.reserve), (connection) => {
          const run = (statement: string) => connection.executeRaw(statement, [])
          // SQLite has ended the transaction by itself after some errors (disk full): then there is nothing to undo.
          const undo = Effect.ignore(Effect.retry(run("ROLLBACK"), { times: 1 }))
          // The connection is reserved: a transaction that is open is what a failed rollback left.
          const start = Effect.catchIf(run(begin), failedInside, () => Effect.zipRight(run("ROLLBACK"), run(begin)))
          const inside = restore(
            Effect.provideService(effect, SqlClient.TransactionConnection, [connection, 0] as const)
          )
          return Effect.zipRight(
            start,
            Effect.matchCauseEffect(inside, {
              onFailure: (cause) => Effect.zipRight(undo, Effect.failCause(cause)),
              onSuccess: (value) =>
                Effect.as(
                  Effect.tapErrorCause(run("COMMIT"), () => undo),
                  value
                )
            })
          )
        })
      )
    )

/**
 * Runs the effect inside the transaction of the context so that its failure undoes what it wrote and leaves the rest.
 * When that cannot be undone, the failure is a `SqlError`: the transaction is lost.
 */
const nested = <A, E, R>(
  [connection, depth]: readonly [Effect.Effect.Success<SqlClient.SqlClient["reserve"]>, number],
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.uninterruptibleMask((restore) => {
    const name = `daybook_${depth + 1}`
    const run = (statement: string) => connection.executeRaw(`${statement} ${name}`, [])
    const undo = Effect.zipRight(run("ROLLBACK TO"), run("RELEASE"))
    const inside = restore(
      Effect.provideService(effect, SqlClient.TransactionConnection, [connection, depth + 1] as const)
    )
    return Effect.zipRight(
      run("SAVEPOINT"),
      Effect.matchCauseEffect(inside, {
        onFailure: (cause) => Effect.zipRight(undo, Effect.failCause(cause)),
        onSuccess: (value) => Effect.as(run("RELEASE"), value)
      })
    )
  })

const transaction =
  (sql: SqlClient.SqlClient, begin: "BEGIN" | "BEGIN IMMEDIATE") =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.withFiberRuntime(({ currentContext }) => {
      const around = Context.getOption(currentContext, SqlClient.TransactionConnection)
      return Option.isSome(around) ? nested(around.value, effect) : bracketed(sql, begin)(effect)
    })

/**
 * Runs the effect in one write transaction that takes the write lock at its start (`BEGIN IMMEDIATE`): a deferred one
 * cannot upgrade once a second writer has come between. `sql` statements inside join it. Inside a transaction it is a
 * savepoint of that one: its failure undoes its own writes and leaves the rest.
 */
export const immediately = (sql: SqlClient.SqlClient) => transaction(sql, "BEGIN IMMEDIATE")

/** Runs the reads in one transaction: all of them see the same commit. */
export const snapshot = (sql: SqlClient.SqlClient) => transaction(sql, "BEGIN")

/**
 * One statement. Inside a write transaction it goes straight to the connection: the span and the scope that a statement
 * has otherwise cost several times what a short statement does, and the group commit runs many of them.
 */
export const execute = <Row>(
  sql: SqlClient.SqlClient,
  text: string,
  parameters: ReadonlyArray<string | number | null>
): Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError> =>
  Effect.withFiberRuntime(({ currentContext }) => {
    const transaction = Context.getOption(currentContext, SqlClient.TransactionConnection)
    return Option.isSome(transaction)
      ? transaction.value[0].execute(text, parameters, undefined)
      : sql.unsafe<Row & object>(text, parameters)
  })

/** As `execute`, for a statement without rows: the driver's own result, with the number of changed rows. */
export const executeRaw = (
  sql: SqlClient.SqlClient,
  text: string,
  parameters: ReadonlyArray<string | number | null>
): Effect.Effect<unknown, SqlError.SqlError> =>
  Effect.withFiberRuntime(({ currentContext }) => {
    const transaction = Context.getOption(currentContext, SqlClient.TransactionConnection)
    return Option.isSome(transaction)
      ? transaction.value[0].executeRaw(text, parameters)
      : sql.unsafe(text, parameters).raw
  })

const makeWritable =
  "make it writable, or choose a writable place and copy the database there, with its -wal file if there is one"

const sentences: Record<string, string> = {
  busy: "another process holds the database; try again when it is done",
  "read-only": `the database cannot be written: its file, its folder or their disk is read-only for this user; ${makeWritable}`,
  "disk-full": "the disk is full; make room and try again",
  corrupt: "the file is damaged or no SQLite database; restore it from a copy",
  io: "the disk could not be read or written",
  closed: "the database is closed",
  unknown: "the database could not be opened"
}

const refuse = (filename: string, failure: unknown): DatabaseError => {
  // A migration's error wraps the statement's.
  const cause = failure instanceof Migrator.MigrationError ? failure.cause : failure
  const reason = reasonOf(cause)
  const said = cause instanceof SqlError.SqlError ? cause.cause : cause
  const detail = said instanceof Error ? said.message : ""
  return reason === "unknown"
    ? new DatabaseError({ filename, reason: "cannot-open", details: `the database could not be opened: ${detail}` })
    : new DatabaseError({ filename, reason, details: sentences[reason] ?? detail })
}

const open = (
  options: SqliteClient.SqliteClientConfig
): Effect.Effect<SqliteClient.SqliteClient, DatabaseError, Scope.Scope | Reactivity.Reactivity> =>
  // The driver throws where a file cannot be opened.
  SqliteClient.make(options).pipe(Effect.catchAllDefect((cause) => refuse(options.filename, cause)))

const pragma = (sql: SqlClient.SqlClient, name: string) =>
  Effect.map(sql.unsafe<Record<string, unknown>>(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])

/**
 * Refuses a file that is not ours, or that a newer build has migrated; else its schema, 0 for a file without tables. It
 * asks for no table that is not there: the driver remembers a statement that could not be prepared. Runs in a snapshot:
 * another process may make the database between two of these reads.
 */
const checkVersion = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  const ours = yield* pragma(sql, "application_id")
  const names = yield* sql<{ readonly name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`
  if (names.length === 0) return 0
  if (ours !== applicationID || !names.some(({ name }) => name === "migration")) {
    return yield* new DatabaseError({
      filename,
      reason: "not-daybook",
      details: "this SQLite file is not a Daybook database; choose another one"
    })
  }
  const rows = yield* sql<{ readonly latest: number | null }>`SELECT max(migration_id) AS latest FROM migration`
  const latest = rows[0]?.latest ?? 0
  if (latest > schemaVersion) {
    return yield* new DatabaseError({
      filename,
      reason: "newer-version",
      details: `the database has schema ${latest}, this build knows ${schemaVersion}; use a newer Daybook`
    })
  }
  return latest
})

/** Bytes that the write-ahead log keeps on the disk: twice what it has when it is copied back. */
export const walLimit = 16 * 1024 * 1024

/**
 * SQLite opens a file that cannot be written for reading alone, begins its transactions, and says so at the first write:
 * here, by one that changes nothing. Who waits for another process that writes could write as well.
 */
const checkWritable = (sql: SqlClient.SqlClient) =>
  Effect.catchIf(immediately(sql)(sql`DELETE FROM migration WHERE migration_id < 0`), isBusy, () => Effect.void)

/** Why a file system takes no writes; a file that is not there is no obstacle. */
const isUnwritable = (error: unknown): boolean =>
  Predicate.hasProperty(error, "code") && (error.code === "EACCES" || error.code === "EPERM" || error.code === "EROFS")

/**
 * The first of an existing database's files, and of its folder, that this process may not write. It is asked before SQLite
 * opens the file: beside a read-only one SQLite leaves files that are read-only too, and refuses the database by them
 * after it was made writable.
 */
const findUnwritable = async (filename: string): Promise<string | undefined> => {
  const real = await realpath(filename).catch(() => undefined)
  if (real === undefined) return undefined
  for (const path of [real, dirname(real), `${real}-wal`, `${real}-shm`]) {
    const refused = await access(path, constants.W_OK).then(() => false, isUnwritable)
    if (refused) return path
  }
  return undefined
}

/**
 * Copies the write-ahead log back and cuts it, if it has outgrown its limit: while a long reader needs it, it only grows,
 * and no commit may come after the reader's end.
 */
const trim = (sql: SqlClient.SqlClient, filename: string) =>
  Effect.tryPromise(() => stat(`${filename}-wal`)).pipe(
    Effect.flatMap(({ size }) => Effect.when(sql`PRAGMA wal_checkpoint(TRUNCATE)`, () => size > walLimit)),
    Effect.ignore
  )

const prepare = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  yield* sql`PRAGMA busy_timeout = 50`
  // Before the first table, or it would need a VACUUM.
  const latest = yield* snapshot(sql)(checkVersion(sql, filename))
  if (latest === 0) yield* sql`PRAGMA auto_vacuum = INCREMENTAL`
  const [journal] = yield* sql<{ readonly journal_mode: string }>`PRAGMA journal_mode = WAL`
  if (journal?.journal_mode !== (filename === ":memory:" ? "memory" : "wal")) {
    return yield* new DatabaseError({
      filename,
      reason: "cannot-open",
      details: "this file system cannot hold a write-ahead log; put the database on a local disk"
    })
  }
  // The driver's default, NORMAL, loses acknowledged commits at a power cut.
  yield* sql`PRAGMA synchronous = FULL`
  yield* sql`PRAGMA foreign_keys = ON`
  // A database in memory leaves nothing on a disk, large sorts and statement journals included.
  if (filename === ":memory:") yield* sql`PRAGMA temp_store = MEMORY`
  yield* sql`PRAGMA cache_size = -64000`
  // Pages that many commits touch are copied back once; a longer log than 8 MB only makes each commit's flush slower.
  yield* sql`PRAGMA wal_autocheckpoint = 2000`
  yield* sql.unsafe(`PRAGMA journal_size_limit = ${walLimit}`)
  if (latest === schemaVersion) return yield* checkWritable(sql)
  yield* immediately(sql)(
    Effect.zipRight(
      sql.unsafe(`PRAGMA application_id = ${applicationID}`),
      Migrator.make({})({ loader: Migrator.fromRecord(migrations), table: "migration" })
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  )
})

const writer = (options: DatabaseOptions) =>
  Effect.gen(function* () {
    // SQLite takes an empty name as a file that is gone at its end, and reads a name only up to a NUL.
    if (options.filename === "" || options.filename.includes("\0")) {
      return yield* new DatabaseError({
        filename: JSON.stringify(options.filename),
        reason: "cannot-open",
        details: "this is no name of a file; give the path of one, or :memory:"
      })
    }
    const unwritable =
      options.filename === ":memory:" ? undefined : yield* Effect.promise(() => findUnwritable(options.filename))
    if (unwritable !== undefined) {
      const details = `the database cannot be written: ${unwritable} is read-only for this user; ${makeWritable}`
      return yield* new DatabaseError({ filename: options.filename, reason: "read-only", details })
    }
    if (options.filename !== ":memory:") yield* Effect.promise(() => makePrivate(options.filename.trim()))
    const sql = yield* open({ filename: options.filename, disableWAL: true })
    yield* prepare(sql, options.filename).pipe(
      retryBusy,
      Effect.catchTags({
        SqlError: (error) => refuse(options.filename, error),
        MigrationError: (error) => refuse(options.filename, error)
      }),
      Effect.catchAllCause((cause) =>
        Option.match(Cause.dieOption(cause), {
          onNone: () => Effect.failCause(cause),
          onSome: (defect) => refuse(options.filename, defect)
        })
      )
    )
    return sql
  })

const reader = (options: DatabaseOptions, sql: SqliteClient.SqliteClient) =>
  options.filename === ":memory:"
    ? Effect.succeed<SqlClient.SqlClient>(sql)
    : open({ filename: options.filename, readonly: true, disableWAL: true }).pipe(
        Effect.tap((client) =>
          Effect.mapError(client`PRAGMA busy_timeout = 1000`, (error) => refuse(options.filename, error))
        )
      )

const trimEvery = "10 seconds"

/** Opens the database, brings its schema up to date, and gives both connections for the life of the layer. */
export const layer = (
  options: DatabaseOptions
): Layer.Layer<SqlClient.SqlClient | SqliteClient.SqliteClient | ReadSql, DatabaseError> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const sql = yield* writer(options)
      const read = yield* reader(options, sql)
      if (options.filename !== ":memory:") {
        yield* Effect.forkScoped(Effect.repeat(trim(sql, options.filename), Schedule.spaced(trimEvery)))
      }
      return Context.make(SqlClient.SqlClient, sql as SqlClient.SqlClient).pipe(
        Context.add(SqliteClient.SqliteClient, sql),
        Context.add(ReadSql, read)
      )
    })
  ).pipe(Layer.provide(Reactivity.layer))

/**
 * An empty database of this build's schema, for comparing with: it goes with the scope, and SQLite moves it to a
 * temporary file when it grows. One session at a time lives in it, without the rows that its keys refer to.
 */
export const scratch: Effect.Effect<SqlClient.SqlClient, DatabaseError, Scope.Scope> = Effect.gen(function* () {
  const sql = yield* open({ filename: "", disableWAL: true })
  const empty = Effect.forEach(["journal_mode = MEMORY", "synchronous = OFF", "foreign_keys = OFF"], (setting) =>
    sql.unsafe(`PRAGMA ${setting}`)
  )
  yield* Effect.zipRight(
    empty,
    Migrator.make({})({ loader: Migrator.fromRecord(migrations), table: "migration" })
  ).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.mapError((error) => refuse("the scratch database", error))
  )
  return sql
}).pipe(Effect.provide(Reactivity.layer))

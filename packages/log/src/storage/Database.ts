/**
 * Opens the database: pragmas, version check, migrations, and the second connection for reads.
 * Other modules see only `SqlClient` (writes) and `ReadSql` (reads). Spec: ST-2..ST-8 in specs/storage.md.
 */
import { constants, statSync } from "node:fs"
import { access, realpath, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import * as Reactivity from "@effect/experimental/Reactivity"
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import { TransactionConnection } from "@effect/sql/SqlClient"
import type * as SqlConnection from "@effect/sql/SqlConnection"
import * as SqlError from "@effect/sql/SqlError"
import type { Statement } from "@effect/sql/Statement"
import { Cause, Context, Effect, Layer, Option, Predicate, Schedule, Schema, type Scope } from "effect"
import { isTraced } from "../support/Spans.ts"
import { fullDisk } from "./FullDisk.ts"
import * as Connection from "./Connection.ts"
import type { DirectConnection } from "./Connection.ts"
import { makePrivate } from "./PrivateFile.ts"
import { pragma, immediately, isBusy, reasonOf, retryBusy, snapshot, StorageReason } from "./Transaction.ts"
import { default as initial } from "./migrations/0001_initial.ts"
import { codeOf } from "../support/SystemError.ts"

// Runs statements without the span and the scope of `@effect/sql`, which cost several short statements; a host with a
// tracer gets the spans.

type Rows = Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>

const isStatement = (made: unknown): made is Statement<unknown> & { readonly commit: () => Rows } =>
  Predicate.hasProperty(made, "compile") && Predicate.hasProperty(made, "commit")

/**
 * The same client with lean statements. A statement runs directly on its transaction's connection, or on `connection`
 * while no transaction has reserved it: the driver is synchronous, so nothing can come between. Otherwise it waits as
 * the client's own statements do.
 */
const lean = <Client extends SqlClient.SqlClient>(client: Client, connection: DirectConnection): Client => {
  /** Runs on the connection that is free for the fiber, or as usual if there is none or the host wants the span. */
  const directly = <A>(
    run: (at: SqlConnection.Connection) => Effect.Effect<A, SqlError.SqlError>,
    usual: () => Effect.Effect<A, SqlError.SqlError>
  ) =>
    Effect.withFiberRuntime<A, SqlError.SqlError>((fiber) => {
      if (isTraced(fiber)) return usual()
      const around = Context.getOption(fiber.currentContext, TransactionConnection)
      const at = Option.isSome(around) ? around.value[0] : connection.isReserved() ? undefined : connection
      return at === undefined ? usual() : run(at)
    })

  const shorten = (made: unknown): unknown => {
    if (!isStatement(made)) return made
    const usual = made.commit.bind(made)
    const commit = (): Rows => directly((at) => at.execute(...made.compile(), undefined), usual)
    const usualValues = (): Statement<unknown>["values"] => Reflect.get(Object.getPrototypeOf(made), "values", made)
    const values = directly((at) => at.executeValues(...made.compile()), usualValues)
    return Object.defineProperties(made, { commit: { value: commit }, values: { value: values } })
  }

  return new Proxy(client, {
    apply: (target, self, parameters) => shorten(Reflect.apply(target, self, parameters)),
    get: (target, key) => {
      if (key !== "unsafe") return Reflect.get(target, key)
      return (...parameters: Parameters<typeof client.unsafe>) => shorten(client.unsafe(...parameters))
    }
  })
}

/** The database cannot be used. `reason` says why, the message what to do. Nothing was changed. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>("@daybook/log/DatabaseError")("DatabaseError", {
  filename: Schema.String,
  reason: Schema.Union(StorageReason, Schema.Literal("not-found", "newer-version", "not-daybook", "cannot-open")),
  details: Schema.String
}) {
  override get message() {
    return `${this.filename}: ${this.details}`
  }
}

/** A read-only connection, so that reads never wait behind the writer. For `:memory:` it is the writing one. */
export class ReadSql extends Context.Tag("@daybook/log/ReadSql")<ReadSql, SqlClient.SqlClient>() {}

export interface DatabaseOptions {
  readonly filename: string
}

/** The application id in SQLite's header, "DayB": marks a Daybook database. */
export const applicationID = 0x44617942

const migrations: Record<string, Effect.Effect<unknown, unknown, SqlClient.SqlClient>> = {
  "0001_initial": initial
}

/** The newest schema version that this build knows. */
export const schemaVersion = Object.keys(migrations).length

const makeWritable =
  "make it writable, or choose a writable place and copy the database there, with its -wal file if there is one"

const sentences: Record<string, string> = {
  busy: "another process holds the database; try again when it is done",
  "read-only": `the database cannot be written: its file, its folder or their disk is read-only for this user; ${makeWritable}`,
  corrupt: "the file is damaged or not an SQLite database; restore it from a copy",
  io: "the disk could not be read or written",
  closed: "the database is closed",
  unknown: "the database could not be opened"
}

const refuse = (filename: string, failure: unknown): DatabaseError => {
  // A migration error wraps the statement's error.
  const cause = failure instanceof Migrator.MigrationError ? failure.cause : failure
  const reason = reasonOf(cause)
  const full = fullDisk(filename, cause)
  if (full !== undefined) return new DatabaseError({ filename, reason: "disk-full", details: full })
  if (reason === "read-only" && statSync(filename, { throwIfNoEntry: false })?.isDirectory()) {
    const details = `it is a folder and cannot be used as a file; name a file, such as ${join(filename, "daybook.sqlite")}`
    return new DatabaseError({ filename, reason: "cannot-open", details })
  }
  const said = cause instanceof SqlError.SqlError ? cause.cause : cause
  const detail = said instanceof Error ? said.message : ""
  return reason === "unknown"
    ? new DatabaseError({ filename, reason: "cannot-open", details: `the database could not be opened: ${detail}` })
    : new DatabaseError({ filename, reason, details: sentences[reason] ?? detail })
}

/** Opens a file as a client with lean statements. */
export const open = (
  options: Connection.Options
): Effect.Effect<SqlClient.SqlClient, DatabaseError, Scope.Scope | Reactivity.Reactivity> =>
  Connection.open(options).pipe(
    Effect.map(({ client, connection }) => lean(client, connection)),
    // The driver throws if the file cannot be opened.
    Effect.catchAllDefect((cause) => refuse(options.filename, cause))
  )

/** Builds before the first release counted more versions than this one knows. */
export const anotherBuild = (version: number): string =>
  `another build of Daybook made this database (schema ${version}, this one knows ${schemaVersion}): use a newer Daybook, ` +
  "or, if a build before 23 November 2026 made it, export its sessions with that build and import them into another database"

/**
 * Rejects a file that is not Daybook's or has a newer schema; otherwise returns its schema version, 0 for a file
 * without tables. Queries only tables that exist, because the driver remembers a statement that failed to prepare. Runs
 * in a snapshot, because another process may create the database between two of these reads.
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
      details: anotherBuild(latest)
    })
  }
  return latest
})

/** Maximum size of the write-ahead log on disk, in bytes: twice its size at a checkpoint. */
export const walLimit = 16 * 1024 * 1024

/**
 * SQLite opens an unwritable file read-only and reports it only at the first write. This write changes nothing and
 * makes it report now. If another process is writing, the file is writable.
 */
const checkWritable = (sql: SqlClient.SqlClient) =>
  Effect.catchIf(immediately(sql)(sql`DELETE FROM migration WHERE migration_id < 0`), isBusy, () => Effect.void)

/** Whether the error means that the file cannot be written. A missing file does not count. */
const isUnwritable = (error: unknown): boolean => ["EACCES", "EPERM", "EROFS"].includes(codeOf(error))

/**
 * Returns the first path that this process may not write, of an existing database's files and folder. It runs before
 * SQLite opens the file: beside a read-only database SQLite leaves read-only files, and because of them it would still
 * refuse the database after it was made writable.
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
 * Checkpoints and truncates the write-ahead log if it has outgrown its limit. It grows while a long reader needs it,
 * and after that reader ends there may be no commit that would checkpoint it.
 */
const trim = (sql: SqlClient.SqlClient, filename: string) =>
  Effect.tryPromise(() => stat(`${filename}-wal`)).pipe(
    Effect.flatMap(({ size }) => Effect.when(sql`PRAGMA wal_checkpoint(TRUNCATE)`, () => size > walLimit)),
    Effect.ignore
  )

const prepare = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  yield* sql`PRAGMA busy_timeout = 50`
  // Set before the first table exists; later it would need a VACUUM.
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
  // Deleted content is overwritten, also what an update leaves behind: a removed session leaves no text (ST-38).
  yield* sql`PRAGMA secure_delete = ON`
  // An in-memory database leaves nothing on disk, not even large sorts and statement journals.
  if (filename === ":memory:") yield* sql`PRAGMA temp_store = MEMORY`
  yield* sql`PRAGMA cache_size = -16000`
  // Pages that many commits touch are copied back once. A log longer than 8 MB only slows each commit's flush.
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

/** Checks the name and the files before SQLite opens them, and makes them private. */
const checkFiles = (options: DatabaseOptions) =>
  Effect.gen(function* () {
    // SQLite treats an empty name as a temporary file, and reads a name only up to a NUL.
    if (options.filename === "" || options.filename.includes("\0")) {
      return yield* new DatabaseError({
        filename: JSON.stringify(options.filename),
        reason: "cannot-open",
        details: "this is not a valid file name; give a path, or :memory:"
      })
    }
    const unwritable =
      options.filename === ":memory:" ? undefined : yield* Effect.promise(() => findUnwritable(options.filename))
    if (unwritable !== undefined) {
      const details = `the database cannot be written: ${unwritable} is read-only for this user; ${makeWritable}`
      return yield* new DatabaseError({ filename: options.filename, reason: "read-only", details })
    }
    if (options.filename !== ":memory:") yield* Effect.promise(() => makePrivate(options.filename.trim()))
  })

const writer = (options: DatabaseOptions) =>
  Effect.gen(function* () {
    yield* checkFiles(options)
    const sql = yield* open({ filename: options.filename })
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

const openReading = ({ filename }: DatabaseOptions) =>
  Effect.tap(open({ filename, readonly: true }), (client) =>
    Effect.mapError(
      // Pages that it reads again are in the system's cache.
      Effect.zipRight(client`PRAGMA busy_timeout = 1000`, client`PRAGMA cache_size = -8000`),
      (error) => refuse(filename, error)
    )
  )

const reader = (options: DatabaseOptions, sql: SqlClient.SqlClient) =>
  options.filename === ":memory:" ? Effect.succeed<SqlClient.SqlClient>(sql) : openReading(options)

const trimEvery = "10 seconds"

type Connections = SqlClient.SqlClient | ReadSql

/** Opens the database, migrates it, and provides both connections for the life of the layer. */
export const layer = (options: DatabaseOptions): Layer.Layer<Connections, DatabaseError> =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const sql = yield* writer(options)
      const read = yield* reader(options, sql)
      if (options.filename !== ":memory:") {
        yield* Effect.forkScoped(Effect.repeat(trim(sql, options.filename), Schedule.spaced(trimEvery)))
      }
      return Context.make(SqlClient.SqlClient, sql).pipe(Context.add(ReadSql, read))
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** One read-only connection to a database with this build's schema. */
const readingOnly = (options: DatabaseOptions) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      yield* checkFiles(options)
      const sql = yield* openReading(options)
      const latest = yield* snapshot(sql)(checkVersion(sql, options.filename))
      if (latest !== schemaVersion) return yield* Effect.fail("another schema" as const)
      return Context.make(SqlClient.SqlClient, sql).pipe(Context.add(ReadSql, sql))
    })
  ).pipe(Layer.provide(Reactivity.layer))

/**
 * Opens an existing database only for reads, on one connection, for a second thread or process: it writes nothing, takes half
 * the time of `layer`, and an append fails. A database that cannot be opened so, for example one with an older schema, is
 * opened by `layer`, which migrates it or says what is wrong with it.
 */
export const layerReading = (options: DatabaseOptions): Layer.Layer<Connections, DatabaseError> =>
  options.filename === ":memory:" ? layer(options) : Layer.catchAllCause(readingOnly(options), () => layer(options))

/**
 * Creates an empty database with this build's schema, for comparisons. It is deleted with the scope, and SQLite moves
 * it to a temporary file when it grows. It holds one session at a time, without the rows that the session's keys refer
 * to.
 */
export const scratch: Effect.Effect<SqlClient.SqlClient, DatabaseError, Scope.Scope> = Effect.gen(function* () {
  const sql = yield* open({ filename: "" })
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

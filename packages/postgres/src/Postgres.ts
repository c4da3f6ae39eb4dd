/**
 * Keeps the log and its stores in PostgreSQL. The services are those of a file: nothing else of Daybook knows which
 * database it uses. Spec: specs/postgres.md.
 *
 * @module @daybook/postgres/Postgres
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import * as Moves from "@daybook/log/coordination/Moves"
import { anotherBuild, DatabaseError, ReadSql } from "@daybook/log/storage/Database"
import { IndexFile, temporaryIndex } from "@daybook/log/storage/SearchFile"
import { immediately, Patience, reasonOf } from "@daybook/log/storage/Transaction"
import { unansweredWords } from "@daybook/log/support/SystemError"
import type { LogUnavailable } from "@daybook/log/log/EventLog"
import type { Options } from "@daybook/log/log/SqlEventLog"
import { type Elsewhere, layerStore, type Services } from "@daybook/log/Store"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import * as Address from "./Address.ts"
import * as Connections from "./Connections.ts"
import * as PgEventLog from "./PgEventLog.ts"
import * as Wakes from "./Wakes.ts"
import { default as initial } from "./migrations/0001_initial.ts"
import { default as nodes } from "./migrations/0002_nodes.ts"
import { default as nodeWork } from "./migrations/0003_node_work.ts"
import { default as refusals } from "./migrations/0004_refuse.ts"

/** Which database to use. */
export interface Settings {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, or `postgres://USER@/DATABASE?host=FOLDER`, with the parameters that `pg` knows. */
  readonly url: string | Redacted.Redacted
  /** The schema of Daybook's tables. Default: `daybook`. */
  readonly schema?: string
  /** False refuses a schema that does not exist or is empty, with the reason `not-found`. Default: it is made. */
  readonly make?: boolean
  /** Connections of the pool, besides one for appends and one that listens. Default: 10. */
  readonly connections?: number
  /**
   * The file of the search index on this machine, made if it does not exist. Each database and schema needs a file of its
   * own. Default: a temporary index, which is built in each process and ends with it.
   */
  readonly searchIndex?: string
}

const migrations: Record<string, Effect.Effect<unknown, unknown, SqlClient.SqlClient>> = {
  "0001_initial": initial,
  "0002_nodes": nodes,
  "0003_node_work": nodeWork,
  "0004_refuse": refusals
}

const schemaVersion = Object.keys(migrations).length

const validSchema = /^[a-z_][a-z0-9_]{0,47}$/

/** The address without its password, for messages. */
const nameOf = (url: Redacted.Redacted): string => {
  const address = Address.parse(Redacted.value(url))
  return address === undefined ? "postgres" : Address.nameOf(address)
}

const refuse = (url: Redacted.Redacted, reason: DatabaseError["reason"], details: string) =>
  new DatabaseError({ filename: nameOf(url), reason, details })

const secretOf = ({ url }: Settings): Redacted.Redacted => (Redacted.isRedacted(url) ? url : Redacted.make(url))

/** Where the connections lead; fails if it is not valid. */
const settingsOf = (settings: Settings) => {
  const { connections = 10, schema = "daybook" } = settings
  const secret = secretOf(settings)
  const address = Address.parse(Redacted.value(secret))
  if (address === undefined) {
    return refuse(secret, "cannot-open", "this is not an address; write postgres://USER@HOST:PORT/DATABASE")
  }
  if (!validSchema.test(schema)) {
    const details = `${JSON.stringify(schema)} is not a name of a schema; use at most 48 lower-case letters, digits and _`
    return refuse(secret, "cannot-open", details)
  }
  return Effect.succeed<Connections.Settings>({
    url: Redacted.make(address.toString()),
    schema,
    connections: Math.max(2, Math.trunc(connections))
  })
}

/** Replaces messages that name a step of the protocol or an option of the runtime. */
const inWords = (said: string): string => {
  if (said.includes("client password must be a string"))
    return "the server requires a password: give it in the address, or in PGPASSWORD"
  if (said.includes("no encryption")) return `${said}: add sslmode=require to the address for an encrypted connection`
  if (/certificate/.test(said) && /self-signed|issuer|verify/.test(said))
    return "the server's certificate is not trusted here: give its authority with sslrootcert=FILE in the address"
  return said
}

const toDatabaseError =
  ({ url }: Connections.Settings) =>
  (error: SqlError.SqlError | Migrator.MigrationError | DatabaseError): DatabaseError => {
    if (error instanceof DatabaseError) return error
    const cause = error instanceof SqlError.SqlError ? error : error.cause
    const reason = reasonOf(cause)
    const said = inWords(unansweredWords(cause instanceof SqlError.SqlError ? cause.cause : cause))
    return refuse(url, reason === "unknown" ? "cannot-open" : reason, `the database could not be opened: ${said}`)
  }

/** Names the migrations of a schema among the advisory locks of a database. */
const lockText = "SELECT pg_advisory_xact_lock(hashtextextended('daybook ' || $1, 0))"

/** Makes the schema and its tables, one node at a time. Changes nothing in a schema of a newer Daybook. */
const migrate = (sql: SqlClient.SqlClient, { schema, url }: Connections.Settings, make: boolean) =>
  immediately(sql)(
    Effect.gen(function* () {
      yield* sql.unsafe(lockText, [schema])
      // Not IF NOT EXISTS: this requires the right to create also where the schema and the table exist.
      const [found] = yield* sql.unsafe<{ readonly schema: number; readonly migration: number }>(
        "SELECT to_regnamespace($1) IS NOT NULL AS schema, to_regclass($1 || '.migration') IS NOT NULL AS migration",
        [schema]
      )
      if (found?.migration !== 1 && !make) {
        const lacking =
          found?.schema === 1 ? `its schema ${schema} has no tables of Daybook` : `it has no schema ${schema}`
        return yield* refuse(url, "not-found", lacking)
      }
      if (found?.schema !== 1) yield* sql.unsafe(`CREATE SCHEMA "${schema}"`)
      if (found?.migration !== 1) {
        yield* sql.unsafe(`CREATE TABLE migration (
          migration_id integer PRIMARY KEY,
          created_at timestamptz NOT NULL DEFAULT now(),
          name text NOT NULL
        )`)
      }
      const [row] = yield* sql<{ readonly latest: number | null }>`SELECT max(migration_id) AS latest FROM migration`
      const latest = row?.latest ?? 0
      if (latest > schemaVersion) return yield* refuse(url, "newer-version", anotherBuild(latest))
      if (latest < schemaVersion) {
        yield* Migrator.make({})({ loader: Migrator.fromRecord(migrations), table: "migration" })
      }
    })
  ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

const open = (given: Settings) =>
  Effect.gen(function* () {
    const settings = yield* settingsOf(given)
    const sql = yield* Effect.mapError(
      Effect.tap(Connections.pool(settings), (client) => migrate(client, settings, given.make ?? true)),
      toDatabaseError(settings)
    )
    const line = yield* Connections.line(settings)
    const { text, values } = Wakes.moveNotice(settings)
    const { hear, ...moves } = yield* Moves.make(
      // A hint is not worth a wait for a database that is away.
      Effect.provideService(sql.unsafe(text, values), Patience, Duration.zero)
    )
    return Context.make(SqlClient.SqlClient, sql as SqlClient.SqlClient).pipe(
      Context.add(ReadSql, sql),
      Context.add(IndexFile, given.searchIndex ?? temporaryIndex),
      Context.add(Moves.Moves, moves),
      Context.add(PgEventLog.Lines, { line, settings, movedHere: hear })
    )
  })

export const layerConnections = (settings: Settings) =>
  Layer.provide(Layer.scopedContext(open(settings)), Reactivity.layer)

/** The log over the connections in the context. */
export const layerLog = PgEventLog.layer

/** `EventLog` and the stores beside it, over the connections in the context. */
export const layerSql = (options: Options = {}) => Layer.provideMerge(layerStore, layerLog(options))

/** The log, its stores and the connections. */
export const layer = (
  settings: Settings,
  options: Options = {}
): Layer.Layer<Services, DatabaseError | LogUnavailable> =>
  Layer.provideMerge(layerSql(options), layerConnections(settings))

/**
 * A database for the runtime.
 *
 * @example
 * ```ts
 * import { Daybook } from "@daybook/embedded"
 * import { Models } from "@daybook/models"
 * import { Postgres } from "@daybook/postgres"
 * import { Layer } from "effect"
 *
 * export const runtime = Daybook.layer({
 *   database: Postgres.config({ url: "postgres://daybook@127.0.0.1/daybook" })
 * }).pipe(Layer.provide(Models.layer))
 * ```
 */
export const config = (settings: Settings): Elsewhere => ({
  name: nameOf(secretOf(settings)),
  layer: (options) => layer(settings, options)
})

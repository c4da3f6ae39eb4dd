/**
 * Opens a database with better-sqlite3 as a client of `@effect/sql`. `@effect/sql-sqlite-node` hides its connection,
 * and installs a driver that aborts on Node 24. The connection of this module also runs statements directly, for code
 * that runs many statements in one transaction (`Statements`). Spec: ST-28, PA-3, PA-11.
 */
import type * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import * as SqlError from "@effect/sql/SqlError"
import * as SqlStatement from "@effect/sql/Statement"
import Sqlite from "better-sqlite3"
import { Context, Effect, type Scope } from "effect"
import { acquireRelease } from "../support/Closing.ts"
import * as FairLock from "../support/FairLock.ts"
import * as PrivateFile from "./PrivateFile.ts"
import { putNewest } from "../support/Newest.ts"

// Opens SQLite's driver, and is the only module that does. better-sqlite3 12 aborts the process on Node 24 when V8
// collects a statement, seconds or hours after the database was opened; better-sqlite3 13 crashes on Node 20. Both
// pairs are refused at once.

/** A prepared statement. `raw` and `pluck` change what it returns: values in order, or the first value, for a row. */
export interface Prepared {
  readonly reader: boolean
  readonly all: (...parameters: ReadonlyArray<unknown>) => Array<unknown>
  readonly get: (...parameters: ReadonlyArray<unknown>) => unknown
  readonly iterate: (...parameters: ReadonlyArray<unknown>) => IterableIterator<unknown>
  readonly run: (...parameters: ReadonlyArray<unknown>) => { readonly changes: number }
  readonly pluck: (toggle?: boolean) => this
  readonly raw: (toggle?: boolean) => this
  readonly safeIntegers: (toggle?: boolean) => this
}

/** What this package uses of the driver. Its own types are not declared, so that applications need not install them. */
export interface Database {
  readonly prepare: (text: string) => Prepared
  readonly exec: (text: string) => unknown
  readonly pragma: (text: string, options?: { readonly simple?: boolean }) => unknown
  readonly backup: (
    to: string,
    options: { readonly progress: (pages: { readonly totalPages: number; readonly remainingPages: number }) => number }
  ) => Promise<unknown>
  readonly close: () => unknown
}

/** How the driver opens a file. */
export interface OpenOptions {
  readonly readonly?: boolean
  readonly fileMustExist?: boolean
  readonly timeout?: number
}

/** The oldest major version of Node that Daybook supports. */
const oldestNode = 22

/** Says why this driver cannot be used on this version of Node; undefined if it can. */
export const problemOf = (driver: object, node: string): string | undefined => {
  const major = Number.parseInt(node)
  if (major < oldestNode) return `Daybook needs Node ${oldestNode} or newer, this is Node ${node}`
  // Each release of 13 has this method, and none of 12.
  const isOld = !("explain" in driver)
  return isOld && major >= 24
    ? `better-sqlite3 before version 13 aborts on Node ${node}; npm install better-sqlite3@13`
    : undefined
}

/** Opens a database. Throws the driver's error, or an `Error` if the driver cannot be used on this version of Node. */
export const openDatabase = (filename: string, options: OpenOptions = {}): Database => {
  const problem = problemOf(Sqlite.prototype, process.versions.node)
  if (problem !== undefined) throw new Error(problem)
  const db = new Sqlite(filename, options)
  return {
    prepare: (text) => db.prepare<Array<unknown>>(text),
    exec: (text) => db.exec(text),
    pragma: (text, how) => db.pragma(text, how),
    backup: (to, how) => db.backup(to, how),
    close: () => db.close()
  }
}

export type Parameters = ReadonlyArray<string | number | null>

/** Runs statements at once. A statement that fails throws a `SqlError`. */
export interface Statements {
  readonly all: <Row>(text: string, parameters: Parameters) => ReadonlyArray<Row>
  readonly run: (text: string, parameters: Parameters) => number
}

export interface DirectConnection extends Connection {
  readonly statements: Statements
  readonly isReserved: () => boolean
}

/** The key under which a client holds its connection. */
export const ConnectionId: unique symbol = Symbol.for("@daybook/log/Connection")

/** Prepared statements that a connection keeps. The log, the stores and their hosts have some two hundred. */
const kept = 400

const failed = (message: string, cause: unknown) => new SqlError.SqlError({ cause, message })

/** Prepares each text once, and keeps the most recently prepared ones. */
const makePrepare = (db: Database) => {
  const prepared = new Map<string, Prepared>()
  return (text: string): Prepared => {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const statement = db.prepare(text)
    putNewest(prepared, text, statement, kept)
    return statement
  }
}

const makeConnection = (db: Database, isReserved: () => boolean): DirectConnection => {
  const prepare = makePrepare(db)

  /** What a statement returns: its rows, or the driver's result if it has none. */
  const result = (statement: Prepared, parameters: ReadonlyArray<unknown>): unknown =>
    statement.reader ? statement.all(...parameters) : statement.run(...parameters)

  const attempt = <A>(run: () => A): Effect.Effect<A, SqlError.SqlError> =>
    Effect.try({ try: run, catch: (cause) => failed("Failed to execute statement", cause) })

  const query = (text: string, parameters: ReadonlyArray<unknown>): Effect.Effect<unknown, SqlError.SqlError> =>
    Effect.withFiberRuntime(({ currentContext }) =>
      attempt(() =>
        Context.get(currentContext, SqlClient.SafeIntegers)
          ? result(db.prepare(text).safeIntegers(true), parameters)
          : result(prepare(text), parameters)
      )
    )

  const rowsOf = (text: string, parameters: ReadonlyArray<unknown>) =>
    Effect.map(query(text, parameters), (found) => (Array.isArray(found) ? found : []))

  const directly = <A>(run: () => A): A => {
    try {
      return run()
    } catch (cause) {
      throw failed("Failed to execute statement", cause)
    }
  }

  return {
    execute: (text, parameters, transform) =>
      transform === undefined ? rowsOf(text, parameters) : Effect.map(rowsOf(text, parameters), transform),
    executeRaw: query,
    executeValues: (text, parameters) =>
      attempt(() => {
        const statement = prepare(text)
        if (!statement.reader) {
          statement.run(...parameters)
          return []
        }
        try {
          return statement.raw(true).all(...parameters) as ReadonlyArray<ReadonlyArray<unknown>>
        } finally {
          statement.raw(false)
        }
      }),
    executeUnprepared: (text, parameters, transform) =>
      transform === undefined ? rowsOf(text, parameters) : Effect.map(rowsOf(text, parameters), transform),
    isReserved,
    executeStream: () => Effect.dieMessage("this connection does not stream rows"),
    statements: {
      all: <Row>(text: string, parameters: Parameters) =>
        directly(() => prepare(text).all(...parameters) as ReadonlyArray<Row>),
      run: (text, parameters) => directly(() => prepare(text).run(...parameters).changes)
    }
  }
}

/** The statements of a connection that this module opened; undefined for one of another driver. */
export const statementsOf = (connection: Connection): Statements | undefined =>
  "statements" in connection ? (connection as DirectConnection).statements : undefined

/** The connection of a client that this module opened. */
export const connectionOf = (client: SqlClient.SqlClient): DirectConnection | undefined =>
  ConnectionId in client ? (client as { readonly [ConnectionId]: DirectConnection })[ConnectionId] : undefined

export interface Options {
  readonly filename: string
  readonly readonly?: boolean
}

/** Opens the database; the scope closes it. Throws what the driver throws, as a defect, if it cannot be opened. */
export const open = (
  options: Options
): Effect.Effect<
  { readonly client: SqlClient.SqlClient; readonly connection: DirectConnection },
  never,
  Scope.Scope | Reactivity.Reactivity
> =>
  Effect.gen(function* () {
    const db = yield* Effect.acquireRelease(
      Effect.sync(() => openDatabase(options.filename, { readonly: options.readonly ?? false })),
      (opened) =>
        Effect.sync(() => {
          opened.close()
          PrivateFile.closeUnused(options.filename)
        })
    )
    // Fair: a fiber that runs transaction after transaction lets those that wait for the connection go first.
    const lock = FairLock.make()
    const connection = makeConnection(db, lock.isTaken)
    const reserve = acquireRelease(Effect.as(lock.enter(Effect.interruptible), connection), () =>
      Effect.sync(lock.leave)
    )
    const made = yield* SqlClient.make({
      acquirer: reserve,
      compiler: SqlStatement.makeCompilerSqlite(),
      transactionAcquirer: reserve,
      spanAttributes: [["db.system.name", "sqlite"]]
    })
    return { client: Object.assign(made, { [ConnectionId]: connection }), connection }
  })

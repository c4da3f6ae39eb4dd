/**
 * Transactions and synchronous work on a client's connection, and the wait for another process's lock. Every failure of
 * the database is typed. Spec: ST-4, ST-8 in specs/storage.md, CN-19 in specs/log.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Context, Duration, Effect, type Fiber, Option, Predicate, Schedule, Schema } from "effect"
import { forAtMost } from "../support/ForAtMost.ts"
import * as Connection from "./Connection.ts"
import { isPostgres } from "./Dialect.ts"
import { codeOf } from "../support/SystemError.ts"

// Maps the errors of SQLite and PostgreSQL to a few reasons that a caller can act on.

export const StorageReason = Schema.Literal(
  "busy",
  "read-only",
  "disk-full",
  "corrupt",
  "io",
  "closed",
  "away",
  "constraint",
  "unknown"
)
export type StorageReason = typeof StorageReason.Type

const byCode: ReadonlyArray<readonly [string, StorageReason]> = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_READONLY", "read-only"],
  ["SQLITE_FULL", "disk-full"],
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "corrupt"],
  ["SQLITE_IOERR", "io"],
  ["SQLITE_CANTOPEN", "read-only"],
  ["SQLITE_PERM", "read-only"],
  ["SQLITE_CONSTRAINT", "constraint"],
  // Classes of PostgreSQL's codes, longer ones first: a deadlock, a conflict and a lock that took too long pass.
  ["40001", "busy"],
  ["40P01", "busy"],
  ["55P03", "busy"],
  ["25006", "read-only"],
  ["42501", "read-only"],
  ["53100", "disk-full"],
  ["XX001", "corrupt"],
  ["XX002", "corrupt"],
  ["23", "constraint"],
  ["53", "away"],
  ["57", "away"],
  ["08", "away"],
  // Errors of the socket.
  ["ECONN", "away"],
  ["EPIPE", "away"],
  ["ETIMEDOUT", "away"],
  ["ENOTFOUND", "away"],
  ["EAI_AGAIN", "away"],
  ["EHOSTUNREACH", "away"],
  ["ENETUNREACH", "away"]
]

/** What the driver of PostgreSQL says, without a code, when a connection ended or could not be made in time. */
const awayMessage = /^Connection terminated|timeout exceeded when trying to connect|^timeout expired|not queryable/

const causeOf = (error: unknown): unknown => (error instanceof SqlError.SqlError ? error.cause : error)

/** Returns the reason of a driver error, bare or wrapped in a `SqlError`. */
export const reasonOf = (error: unknown): StorageReason => {
  const cause = causeOf(error)
  const code = codeOf(cause, "")
  if (code !== "") return byCode.find(([prefix]) => code.startsWith(prefix))?.[1] ?? "unknown"
  if (!(cause instanceof Error)) return "unknown"
  if (awayMessage.test(cause.message)) return "away"
  return cause instanceof TypeError && cause.message.includes("connection is not open") ? "closed" : "unknown"
}

// Marks work in a transaction of the log's connection: an append there would wait forever for the connection of its
// caller.

/** The client whose transaction surrounds the work. */
export class OwnTransaction extends Context.Tag("@daybook/log/OwnTransaction")<OwnTransaction, SqlClient.SqlClient>() {}

/** Whether the fiber works in a transaction of this client. */
export const isInTransactionOf = (
  sql: SqlClient.SqlClient,
  { currentContext }: Fiber.RuntimeFiber<unknown, unknown>
): boolean => Option.contains(Context.getOption(currentContext, OwnTransaction), sql)

/** The defect of an append there. */
export const insideOwnTransaction: Effect.Effect<never> = Effect.dieMessage(
  "an append inside a transaction of the log would wait for itself: append after it"
)

/**
 * How long work waits for a connection to a database that is away; files are never away. Ten seconds by default, as for appends (PG-8).
 * A server gives its requests less, so that a client gets its answer soon. Spec: PG-16, PG-18.
 */
export class Patience extends Context.Reference<Patience>()("@daybook/log/Patience", {
  defaultValue: (): Duration.Duration => Duration.seconds(10)
}) {}

// Codes of the SQL standard for two failures: no connection to the server could be made in time, and the connection broke
// during a commit, whose outcome is unknown.
const [notReached, outcomeUnknown] = ["08001", "08007"]

/** The same failure with another code. */
const recoded = (error: SqlError.SqlError, code: string): SqlError.SqlError => {
  const said = Predicate.hasProperty(error.cause, "message") ? error.cause.message : error.cause
  return new SqlError.SqlError({
    message: error.message,
    cause: Object.assign(new Error(String(said), { cause: error.cause }), { code })
  })
}

/** The failure of a caller that waited for a connection and got none. */
export const unreached = (error: SqlError.SqlError): SqlError.SqlError => recoded(error, notReached)

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof SqlError.SqlError && codeOf(error.cause) === code

/** Waits for another process's lock: growing pauses from 5 ms, about ten seconds in total (EV-11). */
const busySchedule = Schedule.exponential("5 millis", 1.5).pipe(
  Schedule.union(Schedule.spaced("250 millis")),
  Schedule.jittered,
  forAtMost("10 seconds")
)

export const isBusy = (error: unknown): boolean => error instanceof SqlError.SqlError && reasonOf(error) === "busy"

/** Whether a connection broke, but not during a commit. The pool then waits for another connection. */
const isBroken = (error: unknown): boolean =>
  error instanceof SqlError.SqlError &&
  reasonOf(error) === "away" &&
  !hasCode(error, notReached) &&
  !hasCode(error, outcomeUnknown)

const isPassing = (error: unknown): boolean => isBusy(error) || isBroken(error)

const isInTransaction = ({ currentContext }: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  Option.isSome(Context.getOption(currentContext, SqlClient.TransactionConnection))

/** The first retry is immediate and usually enough. */
const retryWhile =
  (isAgain: (error: unknown) => boolean) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.catchIf(effect, isAgain, (error) =>
      Effect.withFiberRuntime((fiber) =>
        // A statement of a transaction is not repeated alone when its connection broke: the transaction is gone.
        !isBusy(error) && isInTransaction(fiber)
          ? Effect.fail(error)
          : Effect.retry(effect, { schedule: busySchedule, while: isAgain })
      )
    )

/**
 * Runs a read, a transaction, or one statement that may run twice, and again while the database is busy or when the
 * connection broke, for ten seconds. A commit whose outcome is unknown is not repeated (PG-16).
 */
export const retryBusy = retryWhile(isPassing)

/** `retryBusy` of a transaction that may run twice: it is also repeated when the outcome of its commit is unknown. */
export const retryRepeatable = retryWhile((error) => isPassing(error) || hasCode(error, outcomeUnknown))

const failedInside = (error: SqlError.SqlError): boolean =>
  error.cause instanceof Error && error.cause.message.includes("within a transaction")

/**
 * Runs the effect between `begin` and a commit, and rolls back if it fails or is interrupted. Every database failure is
 * typed, including that of the commit: the driver's `withTransaction` turns them into defects, which no retry sees.
 */
const bracketed =
  (sql: SqlClient.SqlClient, begin: string, writes: boolean) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.scoped(
        Effect.flatMap(restore(sql.reserve), (connection) => {
          const run = (statement: string) => connection.executeRaw(statement, [])
          const commit = Effect.mapError(run("COMMIT"), (error) =>
            writes && reasonOf(error) === "away" ? recoded(error, outcomeUnknown) : error
          )
          // After some errors (disk full) SQLite has already ended the transaction, so there is nothing to roll back.
          const undo = Effect.ignore(Effect.retry(run("ROLLBACK"), { times: 1 }))
          // The connection is reserved, so an open transaction is left over from a failed rollback.
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
                  Effect.tapErrorCause(commit, () => undo),
                  value
                )
            })
          )
        })
      )
    )

/**
 * Runs the effect in a savepoint of the current transaction: if it fails, only its own writes are rolled back. If that
 * rollback fails, the error is a `SqlError` and the transaction is lost.
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
  (sql: SqlClient.SqlClient, begin: string, writes: boolean) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.withFiberRuntime(({ currentContext }) => {
      const around = Context.getOption(currentContext, SqlClient.TransactionConnection)
      return Option.isSome(around) ? nested(around.value, effect) : bracketed(sql, begin, writes)(effect)
    })

/**
 * Runs the effect in one write transaction. In SQLite it takes the write lock at its start (`BEGIN IMMEDIATE`): a deferred
 * one cannot upgrade after a second writer's commit. `sql` statements inside join it. Inside another transaction it is a
 * savepoint: if it fails, only its own writes are rolled back.
 */
export const immediately = (sql: SqlClient.SqlClient) =>
  transaction(sql, isPostgres(sql) ? "BEGIN" : "BEGIN IMMEDIATE", true)

/** Runs the reads in one transaction, so that all of them see the same commit. */
export const snapshot = (sql: SqlClient.SqlClient) =>
  transaction(sql, isPostgres(sql) ? "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY" : "BEGIN", false)

const runOn = <A, E>(
  connection: Effect.Effect.Success<SqlClient.SqlClient["reserve"]>,
  work: (statements: Connection.Statements) => A,
  isFailure: ((thrown: unknown) => thrown is E) | undefined
): Effect.Effect<A, SqlError.SqlError | E> => {
  const statements = Connection.statementsOf(connection)
  if (statements === undefined) return Effect.dieMessage("this connection runs no statements directly")
  try {
    return Effect.succeed(work(statements))
  } catch (thrown) {
    return thrown instanceof SqlError.SqlError || isFailure?.(thrown) === true
      ? Effect.fail(thrown)
      : Effect.die(thrown)
  }
}

/** A transaction that is open already is left over from a failed rollback: nothing else uses the connection. */
const begin = (statements: Connection.Statements): void => {
  try {
    statements.run("BEGIN IMMEDIATE", [])
  } catch (thrown) {
    if (!(thrown instanceof SqlError.SqlError && failedInside(thrown))) throw thrown
    statements.run("ROLLBACK", [])
    statements.run("BEGIN IMMEDIATE", [])
  }
}

/** After some errors (disk full) SQLite has already ended the transaction, so there is nothing to roll back. */
const rollBack = (statements: Connection.Statements): void => {
  for (let left = 2; left > 0; left--) {
    try {
      statements.run("ROLLBACK", [])
      return
    } catch {
      // The next transaction rolls this one back if it is still open (ST-16).
    }
  }
}

/** Runs synchronous work in one write transaction. What the work or the commit throws rolls it back. */
export const committed = <A>(statements: Connection.Statements, work: () => A): A => {
  begin(statements)
  try {
    const done = work()
    statements.run("COMMIT", [])
    return done
  } catch (thrown) {
    rollBack(statements)
    throw thrown
  }
}

/** Runs synchronous work in a savepoint of the open transaction. What it throws rolls back only its own writes. */
export const inSavepoint = <A>(statements: Connection.Statements, work: () => A): A => {
  statements.run("SAVEPOINT daybook", [])
  try {
    const done = work()
    statements.run("RELEASE daybook", [])
    return done
  } catch (thrown) {
    statements.run("ROLLBACK TO daybook", [])
    statements.run("RELEASE daybook", [])
    throw thrown
  }
}

/** Whether synchronous work would run at once: no transaction has reserved the client's connection. */
export const isFree = (sql: SqlClient.SqlClient): boolean => Connection.connectionOf(sql)?.isReserved() === false

/**
 * Runs synchronous work on the transaction's connection, or on the client's outside a transaction. A group commit runs
 * dozens of statements, and an effect for each costs more than the statement. A failed statement is a typed failure, and
 * so is what `isFailure` recognizes; anything else that the work throws is a defect.
 */
export const directly = <A, E = never>(
  sql: SqlClient.SqlClient,
  work: (statements: Connection.Statements) => A,
  isFailure?: (thrown: unknown) => thrown is E
): Effect.Effect<A, SqlError.SqlError | E> =>
  Effect.withFiberRuntime(({ currentContext }) => {
    const transaction = Context.getOption(currentContext, SqlClient.TransactionConnection)
    if (Option.isSome(transaction)) return runOn(transaction.value[0], work, isFailure)
    const free = Connection.connectionOf(sql)
    return free !== undefined && !free.isReserved()
      ? runOn(free, work, isFailure)
      : Effect.scoped(Effect.flatMap(sql.reserve, (connection) => runOn(connection, work, isFailure)))
  })

/**
 * Runs synchronous work now, without an effect, if no transaction has reserved the client's connection. None: it has, or a
 * statement failed; `directly` waits, and reports the failure.
 */
export const atOnce = <A>(
  sql: SqlClient.SqlClient,
  work: (statements: Connection.Statements) => A
): Option.Option<A> => {
  const connection = Connection.connectionOf(sql)
  if (connection === undefined || connection.isReserved()) return Option.none()
  try {
    return Option.some(work(connection.statements))
  } catch (thrown) {
    if (thrown instanceof SqlError.SqlError) return Option.none()
    throw thrown
  }
}

export const pragma = (sql: SqlClient.SqlClient, name: string) =>
  Effect.map(sql.unsafe<Record<string, unknown>>(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])

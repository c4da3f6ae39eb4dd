/**
 * Group commit: synchronous writes of all callers of a connection wait in one queue. Once the event loop has read its sockets, what
 * waits is one transaction with one fsync; then each caller is answered:
 *
 *   work -> queue -> the event loop has run -> transaction: each work in turn, in a savepoint of its own -> commit -> answers
 *
 * Work that throws writes nothing, and does not affect the others. Spec: EX-781, EX-782 in specs/execution.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Exit, Runtime } from "effect"
import { connectionOf, type Statements } from "./Connection.ts"
import { committed, directly, inSavepoint, isBusy, reasonOf, retryBusy } from "./Transaction.ts"

/** Work that waits, and its caller. */
interface Waiting {
  readonly runtime: Runtime.Runtime<never>
  /** Runs the work and keeps its result. */
  readonly run: (statements: Statements) => void
  /** Keeps what the work threw as its result. */
  readonly refuse: (thrown: unknown) => void
  readonly answer: (committed: Exit.Exit<void, SqlError.SqlError>) => void
}

type Batch = Arr.NonEmptyReadonlyArray<Waiting>

/** Maximum works per transaction. */
const batchLimit = 256

/** Whether only this work is at fault, so that the transaction can continue. */
const isOwnFault = (thrown: unknown) => !(thrown instanceof SqlError.SqlError) || reasonOf(thrown) === "constraint"

const inTurn = (statements: Statements, batch: Batch): void => {
  for (const { refuse, run } of batch) {
    try {
      inSavepoint(statements, () => run(statements))
    } catch (thrown) {
      if (!isOwnFault(thrown)) throw thrown
      refuse(thrown)
    }
  }
}

const alone = (statements: Statements, { refuse, run }: Waiting): void => {
  try {
    committed(statements, () => run(statements))
  } catch (thrown) {
    if (!isOwnFault(thrown)) throw thrown
    refuse(thrown)
  }
}

/** Commits the works; a failure of the database is that of all. */
const write = (statements: Statements, batch: Batch): Exit.Exit<void, SqlError.SqlError> => {
  try {
    if (batch.length === 1) alone(statements, batch[0])
    else committed(statements, () => inTurn(statements, batch))
    return Exit.void
  } catch (thrown) {
    return thrown instanceof SqlError.SqlError ? Exit.fail(thrown) : Exit.die(thrown)
  }
}

const isBusyExit = (exit: Exit.Exit<void, SqlError.SqlError>): boolean =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" && isBusy(exit.cause.error)

const makeGroup = (sql: SqlClient.SqlClient) => {
  let waiting: Array<Waiting> = []
  let isWriting = false

  const answerAll = (batch: Batch, commit: Exit.Exit<void, SqlError.SqlError>): void => {
    for (const { answer } of batch) answer(commit)
  }

  const next = (): void => {
    isWriting = false
    begin()
  }

  /** Waits while another transaction has the connection, and while the database is busy. */
  const patiently = (batch: Batch): Effect.Effect<void> =>
    Effect.flatMap(
      Effect.exit(retryBusy(Effect.flatten(directly(sql, (statements) => write(statements, batch))))),
      (exit) => settled(batch, exit)
    )

  /** Answers, or writes each alone if several failed. */
  const settled = (batch: Batch, exit: Exit.Exit<void, SqlError.SqlError>): Effect.Effect<void> => {
    if (Exit.isFailure(exit) && batch.length > 1 && !isBusyExit(exit)) {
      return Effect.forEach(batch, (one) => patiently([one]), { discard: true })
    }
    answerAll(batch, exit)
    return Effect.void
  }

  const flush = (): void => {
    const batch = waiting.slice(0, batchLimit)
    waiting = waiting.slice(batchLimit)
    if (!Arr.isNonEmptyArray(batch)) return
    const connection = connectionOf(sql)
    // Without a fiber, if nothing has to wait.
    const exit = connection === undefined || connection.isReserved() ? undefined : write(connection.statements, batch)
    const rest = exit === undefined || isBusyExit(exit) ? patiently(batch) : settled(batch, exit)
    if (rest === Effect.void) return next()
    Runtime.runFork(batch[0].runtime)(Effect.zipRight(Effect.uninterruptible(rest), Effect.sync(next)))
  }

  const begin = (): void => {
    if (isWriting || waiting.length === 0) return
    isWriting = true
    setImmediate(flush)
  }

  return (one: Waiting): void => {
    waiting.push(one)
    begin()
  }
}

const groups = new WeakMap<SqlClient.SqlClient, ReturnType<typeof makeGroup>>()

const groupOf = (sql: SqlClient.SqlClient) => {
  const group = groups.get(sql) ?? makeGroup(sql)
  groups.set(sql, group)
  return group
}

/**
 * Runs synchronous work in the connection's next commit, and returns when it is durable. Not interruptible. A failure of the
 * database is typed, and so is what `isFailure` recognizes of what the work throws; anything else that it throws is a defect. The
 * work may run again.
 */
export const jointly = <A, E = never>(
  sql: SqlClient.SqlClient,
  work: (statements: Statements) => A,
  isFailure?: (thrown: unknown) => thrown is E
): Effect.Effect<A, SqlError.SqlError | E> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) =>
    Effect.uninterruptible(
      Effect.async((resume) => {
        let result: Effect.Effect<A, SqlError.SqlError | E> = Effect.dieMessage("a commit left work unanswered")
        groupOf(sql)({
          runtime,
          run: (statements) => {
            result = Effect.succeed(work(statements))
          },
          refuse: (thrown) => {
            const isTyped = thrown instanceof SqlError.SqlError || isFailure?.(thrown) === true
            result = isTyped ? Effect.fail(thrown) : Effect.die(thrown)
          },
          answer: (commit) => resume(Exit.isSuccess(commit) ? result : Effect.failCause(commit.cause))
        })
      })
    )
  )

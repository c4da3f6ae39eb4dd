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
import type { Statements } from "./Connection.ts"
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

/** Maximum works per transaction. */
const batchLimit = 256

/** Whether only this work is at fault, so that the transaction can continue. */
const isOwnFault = (thrown: unknown): boolean =>
  !(thrown instanceof SqlError.SqlError) || reasonOf(thrown) === "constraint"

const inTurn = (statements: Statements, batch: ReadonlyArray<Waiting>): void => {
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

const makeGroup = (sql: SqlClient.SqlClient) => {
  let waiting: Array<Waiting> = []
  let isWriting = false

  /** Waits while another transaction has the connection, and while the database is busy. */
  const write = (batch: Arr.NonEmptyReadonlyArray<Waiting>): Effect.Effect<void> =>
    retryBusy(
      directly(sql, (statements) =>
        batch.length === 1 ? alone(statements, batch[0]) : committed(statements, () => inTurn(statements, batch))
      )
    ).pipe(
      Effect.matchCauseEffect({
        onSuccess: () => answerAll(batch, Exit.void),
        onFailure: (cause) => {
          const failure = Exit.failCause(cause)
          const isShared = batch.length > 1 && !(cause._tag === "Fail" && isBusy(cause.error))
          return isShared ? Effect.forEach(batch, (one) => write([one]), { discard: true }) : answerAll(batch, failure)
        }
      })
    )

  const answerAll = (batch: ReadonlyArray<Waiting>, committed: Exit.Exit<void, SqlError.SqlError>) =>
    Effect.sync(() => {
      for (const { answer } of batch) answer(committed)
    })

  const next = Effect.sync(() => {
    isWriting = false
    begin()
  })

  const flush = (): void => {
    const batch = waiting.slice(0, batchLimit)
    waiting = waiting.slice(batchLimit)
    if (!Arr.isNonEmptyArray(batch)) return
    Runtime.runFork(batch[0].runtime)(Effect.zipRight(Effect.uninterruptible(write(batch)), next))
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

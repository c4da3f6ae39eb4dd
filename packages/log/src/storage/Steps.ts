/**
 * A write as statements one after the other, each decided by the rows of those before. It is written once and runs in both
 * databases: within SQLite's next commit, where a statement answers at once, and in a transaction of PostgreSQL, where it
 * answers later. Spec: EX-781, PG-2.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Parameters, Statements } from "./Connection.ts"
import { isPostgres, numbered } from "./Dialect.ts"
import { jointly } from "./GroupCommit.ts"
import { immediately, retryRepeatable } from "./Transaction.ts"

interface Statement {
  readonly text: string
  readonly parameters: Parameters
  /** Whether it returns rows. */
  readonly returns: boolean
}

/** The statements of a write, and its result. It may run again, also when its first run was committed (PG-16). */
export type Steps<A> = Generator<Statement, A, ReadonlyArray<unknown>>

/** One statement. `Row` has the columns that the text returns. */
export function* rows<Row>(text: string, parameters: Parameters): Steps<ReadonlyArray<Row>> {
  const found: ReadonlyArray<unknown> = yield { text, parameters, returns: true }
  // The text names the columns.
  return found as ReadonlyArray<Row>
}

/** One statement that returns no rows. */
export function* change(text: string, parameters: Parameters): Steps<void> {
  yield { text, parameters, returns: false }
}

const atOnce = <A>({ all, run }: Statements, steps: Steps<A>): A => {
  let step = steps.next([])
  while (step.done !== true) {
    const { parameters, returns, text } = step.value
    if (!returns) run(text, parameters)
    step = steps.next(returns ? all(text, parameters) : [])
  }
  return step.value
}

const later = <A>(sql: SqlClient.SqlClient, steps: Steps<A>): Effect.Effect<A, SqlError.SqlError> =>
  Effect.gen(function* () {
    let step = steps.next([])
    while (step.done !== true) {
      step = steps.next(yield* sql.unsafe<object>(numbered(step.value.text), step.value.parameters))
    }
    return step.value
  })

/** Runs the write, and returns when it is durable. */
export const written = <A>(sql: SqlClient.SqlClient, steps: () => Steps<A>): Effect.Effect<A, SqlError.SqlError> =>
  isPostgres(sql)
    ? retryRepeatable(immediately(sql)(Effect.suspend(() => later(sql, steps()))))
    : jointly(sql, (statements) => atOnce(statements, steps()))

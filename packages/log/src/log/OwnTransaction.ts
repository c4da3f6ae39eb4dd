/**
 * Marks work in a transaction of the log's own connection. An append there would wait for the connection that its caller
 * holds, for ever, because appends are uninterruptible. Spec: CN-19.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, Option } from "effect"

/** The client whose transaction surrounds the work. */
export class OwnTransaction extends Context.Tag("@daybook/log/OwnTransaction")<OwnTransaction, SqlClient.SqlClient>() {}

/** Runs the append, unless it is called in a transaction of this client: then it is a defect. */
export const outsideOf =
  (sql: SqlClient.SqlClient) =>
  <A, E>(append: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.withFiberRuntime(({ currentContext }) =>
      Option.contains(Context.getOption(currentContext, OwnTransaction), sql)
        ? Effect.dieMessage("an append inside a transaction of the log would wait for itself: append after it")
        : append
    )

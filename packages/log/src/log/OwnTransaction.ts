/**
 * Marks work in a transaction of the log's own connection. An append there would wait for the connection that its caller
 * holds, for ever, because appends are uninterruptible. Spec: CN-19.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Context, Effect, type Fiber, Option } from "effect"

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

/** Tries whether the database can be written. Spec: LG-540. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import { immediately, retryBusy } from "./Transaction.ts"

/** Writes the header of the database as it is. Other connections forget the pages that they have read. */
export const rewriteHeader = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [row] = yield* sql<{ readonly user_version: number }>`PRAGMA user_version`
  yield* sql.unsafe(`PRAGMA user_version = ${row?.user_version ?? 0}`)
})

/** How long a write may wait for other writers. */
const patience = "2 seconds"

const locked = () =>
  new SqlError.SqlError({ cause: Object.assign(new Error("the database is locked"), { code: "SQLITE_BUSY" }) })

/** Commits a write that changes nothing. */
export const probe = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.timeoutFail(retryBusy(immediately(sql)(rewriteHeader(sql))), { duration: patience, onTimeout: locked })

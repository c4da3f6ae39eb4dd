/**
 * Keeps the cursors of consumers in a table of the application's own database, SQLite or PostgreSQL. What `apply` writes there
 * through the same `SqlClient`, and the cursor, are one transaction. Spec: HT-67, HT-80 in specs/http.md.
 *
 * @module @daybook/client/SqlStorage
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Storage } from "./Consumer.ts"

/** A storage in the database, whose table `daybook_cursors` is made if it does not exist. */
export const make: Effect.Effect<Storage<SqlError>, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS daybook_cursors (name TEXT PRIMARY KEY, cursor TEXT NOT NULL)`
  return {
    load: (name) =>
      Effect.map(
        sql<{ readonly cursor: string }>`SELECT cursor FROM daybook_cursors WHERE name = ${name}`,
        ([row]) => row?.cursor
      ),
    store: (name, cursor) =>
      sql`INSERT INTO daybook_cursors (name, cursor) VALUES (${name}, ${cursor})
        ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor`.pipe(Effect.asVoid),
    together: sql.withTransaction
  }
})

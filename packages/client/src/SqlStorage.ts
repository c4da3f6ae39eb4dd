/**
 * Keeps the cursors of consumers in a table of the application's own database, SQLite or PostgreSQL. What `apply` writes there
 * through the same `SqlClient`, and the cursor, are one transaction. If two consumers have one name, the second to store a cursor
 * fails, and its transaction is rolled back. Spec: HT-67, HT-80, HT-81 in specs/http.md.
 *
 * @module @daybook/client/SqlStorage
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { ConsumerReplaced } from "@daybook/log/consumer/ConsumerStore"
import type { Storage } from "./Consumer.ts"

export { ConsumerReplaced }

export const make: Effect.Effect<Storage<SqlError | ConsumerReplaced>, SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE IF NOT EXISTS daybook_cursors (name TEXT PRIMARY KEY, cursor TEXT NOT NULL)`
    return {
      load: (name) =>
        Effect.map(
          sql<{ readonly cursor: string }>`SELECT cursor FROM daybook_cursors WHERE name = ${name}`,
          ([row]) => row?.cursor
        ),
      store: (name, cursor, before) =>
        Effect.flatMap(
          before === undefined
            ? sql`INSERT INTO daybook_cursors (name, cursor) VALUES (${name}, ${cursor})
              ON CONFLICT (name) DO NOTHING RETURNING name`
            : sql`UPDATE daybook_cursors SET cursor = ${cursor}
              WHERE name = ${name} AND cursor = ${before} RETURNING name`,
          (stored) => (stored.length === 0 ? new ConsumerReplaced({ consumer: name }) : Effect.void)
        ),
      together: sql.withTransaction
    }
  }
)

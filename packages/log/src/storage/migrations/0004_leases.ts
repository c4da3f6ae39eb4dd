/**
 * Adds leases that are proven by renewals instead of clocks, and lookup of sessions by title. Spec: specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE event_sequence ADD COLUMN lease_beat INTEGER NOT NULL DEFAULT 0`,
      sql`ALTER TABLE event_sequence ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 15000`,
      sql`CREATE INDEX session_title ON session (title) WHERE title IS NOT NULL`
    ],
    (statement) => statement,
    { discard: true }
  )
)

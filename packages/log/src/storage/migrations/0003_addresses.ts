/** Adds session addresses, withdrawn prompts and session removals. Spec: specs/storage.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE session ADD COLUMN address TEXT`,
      sql`ALTER TABLE session ADD COLUMN root TEXT`,
      sql`CREATE UNIQUE INDEX session_address ON session (address) WHERE address IS NOT NULL`,
      sql`ALTER TABLE session_input ADD COLUMN withdrawn_seq INTEGER`,
      // A removal leaves no event; this table tells consumers that keep copies of sessions.
      sql`CREATE TABLE session_removal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        position INTEGER NOT NULL
      ) STRICT`,
      // An interrupt request may be for one activity only.
      sql`ALTER TABLE event_sequence ADD COLUMN interrupt_activity TEXT`
    ],
    (statement) => statement,
    { discard: true }
  )
)

/** Where sessions are kept for their clients, prompts that were taken back, sessions that were removed. Spec: specs/storage.md. */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE session ADD COLUMN address TEXT`,
      sql`ALTER TABLE session ADD COLUMN root TEXT`,
      sql`CREATE UNIQUE INDEX session_address ON session (address) WHERE address IS NOT NULL`,
      sql`ALTER TABLE session_input ADD COLUMN withdrawn_seq INTEGER`,
      // A removal leaves no event: who keeps copies of sessions hears of it here.
      sql`CREATE TABLE session_removal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        position INTEGER NOT NULL
      ) STRICT`,
      // A request to stop may be for one activity only.
      sql`ALTER TABLE event_sequence ADD COLUMN interrupt_activity TEXT`
    ],
    (statement) => statement,
    { discard: true }
  )
)

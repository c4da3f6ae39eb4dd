/** Adds request frames, budgets and requested compactions. Spec: specs/storage.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE session ADD COLUMN activity_error TEXT`,
      sql`ALTER TABLE session ADD COLUMN frame TEXT`,
      sql`ALTER TABLE session ADD COLUMN pruned_seq INTEGER`,
      sql`ALTER TABLE session ADD COLUMN compaction_requested TEXT`,
      sql`ALTER TABLE session ADD COLUMN compaction_running TEXT`,
      sql`ALTER TABLE session ADD COLUMN budget TEXT`,
      // A child's spending counts for its parents.
      sql`CREATE INDEX session_parent ON session (parent_id) WHERE parent_id IS NOT NULL`,
      sql`CREATE TABLE session_instruction (
        session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        paths TEXT NOT NULL,
        PRIMARY KEY (session_id, seq)
      ) STRICT, WITHOUT ROWID`,
      // A session's todo list is the result of the last call of one tool.
      sql`CREATE INDEX session_part_todo ON session_part (session_id, seq) WHERE name = 'todo'`
    ],
    (statement) => statement,
    { discard: true }
  )
)

/** Removes a table and two columns that nothing uses. Spec: specs/storage.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`DROP TABLE consumer_checkpoint`,
      sql`ALTER TABLE session DROP COLUMN leaf_id`,
      sql`ALTER TABLE session_message DROP COLUMN parent_id`
    ],
    (statement) => statement,
    { discard: true }
  )
)

/**
 * Adds each session's incarnation: the position of its first event, unique to this life of the id. Spec:
 * specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE event_sequence ADD COLUMN incarnation INTEGER`,
      sql`UPDATE event_sequence SET incarnation =
        (SELECT position FROM event WHERE event.session_id = event_sequence.session_id ORDER BY event.seq LIMIT 1)`
    ],
    (statement) => statement,
    { discard: true }
  )
)

/**
 * Derives the context epoch from events: `epoch` is the event that holds the baseline. Baselines that no event holds are
 * dropped, and the next turn renders one. Spec: specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`ALTER TABLE session ADD COLUMN epoch INTEGER`,
      sql`ALTER TABLE session ADD COLUMN baseline_seq INTEGER`,
      // Frames recorded it before.
      sql`UPDATE session SET baseline_seq =
        (SELECT json_extract(data, '$.baselineSeq') FROM event
          WHERE event.session_id = session.id AND type = 'session.next.request.framed.1'
            AND json_extract(data, '$.baselineSeq') IS NOT NULL
          ORDER BY event.seq DESC LIMIT 1)
        WHERE frame IS NOT NULL`,
      sql`DROP TABLE session_context_epoch`
    ],
    (statement) => statement,
    { discard: true }
  )
)

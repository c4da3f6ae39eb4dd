/** A table of a host beside the log, which its consumers write. */
import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"

/** Creates the table. */
export const derivedTable = Layer.effectDiscard(
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    const key = sql.onDialectOrElse({ pg: () => "BIGSERIAL", orElse: () => "INTEGER" })
    return sql.unsafe(`CREATE TABLE IF NOT EXISTS derived (number ${key} PRIMARY KEY, session_id TEXT, seq INTEGER)`)
  })
)

/** Adds an event. */
export const derive = (sessionID: SessionID, seq: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`INSERT INTO derived (session_id, seq) VALUES (${sessionID}, ${seq})`)

/** Deletes the events of a session. */
export const forget = (sessionID: SessionID) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DELETE FROM derived WHERE session_id = ${sessionID}`)

/** The events of a session, in the order in which they were added. */
export const derived = (sessionID: SessionID) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly seq: number }>`SELECT seq FROM derived WHERE session_id = ${sessionID} ORDER BY number`,
      (rows) => rows.map(({ seq }) => seq)
    )
  )

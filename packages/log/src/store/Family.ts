/**
 * Reads a session's ancestors, and what a session and its descendants spent. A session's parent never changes, but
 * reusing a removed id can still form a cycle, so every walk is bounded. Spec: TO-105, TO-106.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { Estimated, Usage } from "../domain/Usage.ts"
import {
  BranchSummarized,
  CompactionEnded,
  CompactionFailed,
  Renamed,
  Retried,
  StepEnded,
  StepFailed
} from "../events/SessionEvents.ts"
import type { SessionRow } from "../projection/Tables.ts"

/** Maximum number of ancestors of a session. */
export const deepestFamily = 32

/** The ancestors, from the parent to the root. */
export const selectAncestors = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<SessionRow>`WITH RECURSIVE line (id, depth) AS (
      SELECT parent_id, 1 FROM session WHERE id = ${sessionID} AND parent_id IS NOT NULL
      UNION ALL
      SELECT s.parent_id, line.depth + 1 FROM line JOIN session s ON s.id = line.id
      WHERE s.parent_id IS NOT NULL AND line.depth < ${deepestFamily}
    )
    SELECT s.* FROM line JOIN session s ON s.id = line.id ORDER BY line.depth`

/** The total of the session and its descendants. UNION includes each session once. */
export const selectTreeUsage = (sql: SqlClient.SqlClient, sessionID: SessionID): Effect.Effect<Usage, SqlFailure> =>
  Effect.map(
    sql<Pick<SessionRow, Summed>>`WITH RECURSIVE tree (id) AS (
        SELECT id FROM session WHERE id = ${sessionID}
        UNION
        SELECT s.id FROM tree JOIN session s ON s.parent_id = tree.id
      )
      SELECT sum(cost) AS cost, sum(tokens_input) AS tokens_input, sum(tokens_output) AS tokens_output,
        sum(tokens_reasoning) AS tokens_reasoning, sum(tokens_cache_read) AS tokens_cache_read,
        sum(tokens_cache_write) AS tokens_cache_write
      FROM tree JOIN session s ON s.id = tree.id`,
    ([row]) => ({
      cost: row?.cost ?? 0,
      tokens: {
        input: row?.tokens_input ?? 0,
        output: row?.tokens_output ?? 0,
        reasoning: row?.tokens_reasoning ?? 0,
        cache: { read: row?.tokens_cache_read ?? 0, write: row?.tokens_cache_write ?? 0 }
      }
    })
  )

/** The estimated part of what the session and its descendants spent. Reads every event of the spending types. */
export const selectTreeEstimated = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID
): Effect.Effect<Estimated, SqlFailure> =>
  Effect.map(
    sql<{ readonly cost: number | null; readonly tokens: number | null }>`WITH RECURSIVE tree (id) AS (
        SELECT id FROM session WHERE id = ${sessionID}
        UNION
        SELECT s.id FROM tree JOIN session s ON s.parent_id = tree.id
      )
      SELECT sum(cost) AS cost, sum(tokens) AS tokens FROM (
        SELECT json_extract(e.data, '$.cost') AS cost,
          json_extract(e.data, '$.tokens.input') + json_extract(e.data, '$.tokens.output') AS tokens
        FROM tree JOIN event_sequence q ON q.session_id = tree.id JOIN event e ON e.session = q.session
          JOIN session s ON s.id = tree.id
        WHERE e.seq > coalesce(s.forked ->> '$.seq', -1) AND e.type IN (SELECT type FROM event_type WHERE ${sql.in("name", spending)}) AND e.seq > q.floor
          AND json_extract(e.data, '$.estimated')
        UNION ALL
        SELECT json_extract(base, '$.estimated.cost'), json_extract(base, '$.estimated.tokens')
        FROM tree JOIN session_floor f ON f.session_id = tree.id WHERE base IS NOT NULL)`,
    ([row]) => ({ cost: row?.cost ?? 0, tokens: row?.tokens ?? 0 })
  )

/** Stored types of the events that record spending. */
const spending = [StepEnded, StepFailed, BranchSummarized, CompactionEnded, CompactionFailed, Renamed, Retried].map(
  ({ type, version }) => `${type}.${version}`
)

type SqlFailure = Effect.Effect.Error<ReturnType<typeof selectAncestors>>
type Summed =
  "cost" | "tokens_input" | "tokens_output" | "tokens_reasoning" | "tokens_cache_read" | "tokens_cache_write"

/**
 * Sessions and those that they started: who stands above one, and what all of them below spent. Parents are fixed at
 * creation; a removed id that comes back can still close a circle, so every walk ends by itself. Spec: TO-105, TO-106.
 */
import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { SessionID } from "../Identifiers.ts"
import type { SessionRow } from "../projection/Tables.ts"
import type { Tokens } from "./Schemas.ts"

/** Parents, their parents and so on, that one session may have. */
export const deepestFamily = 32

/** What requests to providers cost: US dollars, and tokens. */
export interface Usage {
  readonly cost: number
  readonly tokens: Tokens
}

/** The parent first, the root last. */
export const selectAncestors = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  sql<SessionRow>`WITH RECURSIVE line (id, depth) AS (
      SELECT parent_id, 1 FROM session WHERE id = ${sessionID} AND parent_id IS NOT NULL
      UNION ALL
      SELECT s.parent_id, line.depth + 1 FROM line JOIN session s ON s.id = line.id
      WHERE s.parent_id IS NOT NULL AND line.depth < ${deepestFamily}
    )
    SELECT s.* FROM line JOIN session s ON s.id = line.id ORDER BY line.depth`

/** The session and everything below it, in sum. UNION lets each session in once. */
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

type SqlFailure = Effect.Effect.Error<ReturnType<typeof selectAncestors>>
type Summed =
  "cost" | "tokens_input" | "tokens_output" | "tokens_reasoning" | "tokens_cache_read" | "tokens_cache_write"

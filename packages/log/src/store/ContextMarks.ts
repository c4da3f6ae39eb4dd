/**
 * Where the context of a session is in its log: small facts of its rows, read in one statement with the session or alone.
 * Spec: specs/context.md CX-51, CX-53.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import type { SessionID } from "../domain/Identifiers.ts"
import { onPath } from "./PathRows.ts"

export interface ContextMarks {
  /** The session's incarnation: a session removed and created again has another one. */
  readonly incarnation: number | null
  /** Sequence number of the frame that introduced the baseline; null before the first one, and after a move. */
  readonly epoch: number | null
  /** The baseline contains the System messages up to this sequence number, or -1. */
  readonly baselineSeq: number
  /** Sequence number of the latest completed compaction, or -1. */
  readonly compactedSeq: number
  /** Sequence number of the latest System message, or -1. */
  readonly toldSeq: number
  /** Instruction files were discovered on the session's path. */
  readonly discovered: boolean
}

export type MarksRow = {
  readonly incarnation: number | null
  readonly epoch: number | null
  readonly baseline_seq: number | null
  readonly compacted_seq: number | null
  readonly told_seq: number | null
  readonly discovered: number
}

/** The columns of a `MarksRow`, over a row `s` of `session` and its row `q` of `event_sequence`. Each is an index step. */
export const marksColumns = (sql: SqlClient.SqlClient, sessionID: SessionID): Statement.Fragment =>
  sql`q.incarnation, s.epoch, s.baseline_seq,
    (SELECT max(seq) FROM session_message m WHERE m.session = q.session AND m.type = 'compaction') AS compacted_seq,
    (SELECT max(seq) FROM session_message m WHERE m.session = q.session AND m.type = 'system') AS told_seq,
    EXISTS (SELECT 1 FROM session_instruction f WHERE f.session = q.session${onPath(sql, sessionID, sql`f.seq`)})
      AS discovered`

/** The marks of a row. */
export const marksOf = ({ baseline_seq, compacted_seq, discovered, epoch, incarnation, told_seq }: MarksRow) =>
  ({
    incarnation,
    epoch,
    baselineSeq: baseline_seq ?? -1,
    compactedSeq: compacted_seq ?? -1,
    toldSeq: told_seq ?? -1,
    discovered: discovered === 1
  }) satisfies ContextMarks

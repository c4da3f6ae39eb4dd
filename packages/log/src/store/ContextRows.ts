/**
 * Selects the rows that the model is shown now, or was shown at an earlier step, and where the context of a session is
 * in its log. Spec: CP-49 in specs/context.md, RQ-34, CX-26, CX-43, CX-51, CX-53 in specs/context.md (EP-10).
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Array as Arr, Effect, Either } from "effect"
import { between, type HistoryPath, open } from "../domain/HistoryPath.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { InputRow } from "../projection/Tables.ts"
import { assembleOne } from "./Assemble.ts"
import { selectBySeq } from "./Content.ts"
import { onPath, pathOf, selectMessagesIn } from "./PathRows.ts"
import { readingTogether } from "./Reading.ts"
import { selectCheckpoint, selectFramedStep, selectKept, selectTold } from "./RequestRows.ts"
import { withParts } from "./TranscriptRows.ts"
import { spanned } from "../support/Spans.ts"

// Selects the instruction files that a session has discovered on its path.

/** The first `limit` files, in order of discovery. */
export const selectInstructionFiles = (sql: SqlClient.SqlClient, sessionID: SessionID, limit: number) =>
  Effect.gen(function* () {
    const rows = yield* sql<{ readonly seq: number }>`SELECT seq FROM session_instruction
      WHERE session = ${sessionKey(sql, sessionID)}${onPath(sql, sessionID)} ORDER BY seq LIMIT ${limit}`
    const seqs = rows.map(({ seq }) => seq)
    const events = yield* selectBySeq(sql, sessionID, seqs)
    const paths = seqs.flatMap((seq) => {
      const event = events.get(seq)
      return event !== undefined && Either.isRight(event) && event.right.type === "session.next.instructions.discovered"
        ? event.right.data.paths
        : []
    })
    return Arr.dedupe(paths).slice(0, limit)
  })

// Where the context of a session is in its log: small facts of its rows, read in one statement with the session or
// alone.

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

export const marksOf = ({ baseline_seq, compacted_seq, discovered, epoch, incarnation, told_seq }: MarksRow) =>
  ({
    incarnation,
    epoch,
    baselineSeq: baseline_seq ?? -1,
    compactedSeq: compacted_seq ?? -1,
    toldSeq: told_seq ?? -1,
    discovered: discovered === 1
  }) satisfies ContextMarks

type Head = { readonly seq: number; readonly incarnation: number | null; readonly path: string | null }

const selectShown = (sql: SqlClient.SqlClient, sessionID: SessionID, path: HistoryPath, baselineSeq: number) =>
  Effect.gen(function* () {
    const boundary = yield* selectCheckpoint(sql, sessionID, path, Number.MAX_SAFE_INTEGER)
    const from = boundary?.seq ?? 0
    const earlier = yield* selectTold(sql, sessionID, path, { baselineSeq, checkpoint: from })
    const kept = yield* selectKept(sql, sessionID, path, boundary)
    const shown = yield* selectMessagesIn(sql, sessionID, between(path, from, open))
    const checkpoint = shown.slice(0, boundary === undefined ? 0 : 1)
    const since = shown.slice(checkpoint.length).filter(({ seq, type }) => type !== "system" || seq > baselineSeq)
    return [...earlier, ...checkpoint, ...kept, ...since]
  })

export const contextRows = (sql: SqlClient.SqlClient) =>
  spanned(
    "SessionStore.contextRows",
    Effect.fnUntraced(function* (sessionID: SessionID, baselineSeq: number) {
      return yield* readingTogether(sql)(
        Effect.gen(function* () {
          const [head] = yield* sql<Head>`SELECT q.seq, q.incarnation, s.path
          FROM event_sequence q LEFT JOIN session s ON s.id = q.session_id WHERE q.session_id = ${sessionID}`
          const path = pathOf(head?.path)
          const shown = yield* selectShown(sql, sessionID, path, baselineSeq)
          // Waiting inputs too: later events that promote them are folded over these rows.
          const waiting = yield* sql<InputRow>`SELECT *, ${sessionID} AS session_id FROM session_input
          WHERE session = ${sessionKey(sql, sessionID)} AND promoted_seq IS NULL`
          const rows = yield* withParts(sql, sessionID, shown, path, waiting)
          return {
            cursor: head?.seq ?? -1,
            incarnation: head?.incarnation ?? 0,
            ...rows
          }
        })
      )
    })
  )

export const stepAt = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.stepAt")(function* (sessionID: SessionID, at: number) {
    const found = yield* readingTogether(sql)(selectFramedStep(sql, sessionID, at))
    if (found === undefined) return undefined
    const message = yield* assembleOne(sessionID, found.row, [], undefined, found.events)
    return message.type === "assistant" ? { ...found, message } : undefined
  })

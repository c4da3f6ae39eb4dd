/** Selects the rows that the model is shown now, and what it was shown at an earlier step. Spec: EP-10, CP-49, RQ-34. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { between, type HistoryPath, open } from "../domain/HistoryPath.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { InputRow } from "../projection/Tables.ts"
import { assembleOne } from "./Assemble.ts"
import { pathOf, selectMessagesIn } from "./PathRows.ts"
import { readingTogether } from "./Reading.ts"
import { selectCheckpoint, selectFramedStep, selectKept, selectTold } from "./RequestRows.ts"
import { withParts } from "./TranscriptRows.ts"

type Head = { readonly seq: number; readonly incarnation: number | null; readonly path: string | null }

/** The messages on the path that the model is shown: around the last checkpoint, and all that follow it. */
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
  Effect.fn("SessionStore.contextRows")(function* (sessionID: SessionID, baselineSeq: number) {
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

export const stepAt = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.stepAt")(function* (sessionID: SessionID, at: number) {
    const found = yield* readingTogether(sql)(selectFramedStep(sql, sessionID, at))
    if (found === undefined) return undefined
    const message = yield* assembleOne(sessionID, found.row, [], undefined, found.events)
    return message.type === "assistant" ? { ...found, message } : undefined
  })

/** Selects the instruction files that a session has discovered on its path. Spec: specs/context.md CX-26, CX-43. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Array as Arr, Effect, Either } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import { selectBySeq } from "./EventsBySeq.ts"
import { onPath } from "./PathRows.ts"

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

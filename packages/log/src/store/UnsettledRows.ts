/** Selects what a dead process left open in a session: calls without a result, a step without an end. Spec: TU-2. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, Schema } from "effect"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { PartRow } from "../projection/Tables.ts"
import { type EventsBySeq, selectBySeq } from "./EventsBySeq.ts"
import { MessageUnreadable, reading } from "./StoreError.ts"
import { message } from "./TranscriptRows.ts"

/** A call whose process died before the call ended. */
export interface UnsettledTool {
  readonly messageID: MessageID
  readonly callID: string
  readonly called: boolean
  readonly executed: boolean
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

const unsettled = (
  sessionID: string,
  { called, key, message_id }: PartRow,
  events: EventsBySeq
): Either.Either<UnsettledTool, MessageUnreadable> => {
  const call = called === null ? undefined : events.get(called)
  return Either.all({
    messageID: Schema.decodeUnknownEither(MessageID)(message_id),
    call: call ?? Either.right(undefined)
  }).pipe(
    Either.filterOrLeft(
      ({ call }) => called === null || call?.type === "session.next.tool.called",
      () => new Error(`event ${called ?? ""}, which holds its call, is missing`)
    ),
    Either.mapBoth({
      onLeft: ({ message }) => new MessageUnreadable({ sessionID, messageID: message_id, details: message }),
      onRight: ({ call, messageID }) => {
        const provider = call?.type === "session.next.tool.called" ? call.data.provider : undefined
        return {
          messageID,
          callID: key,
          called: called !== null,
          executed: provider?.executed ?? false,
          metadata: provider?.metadata
        }
      }
    })
  )
}

export const unsettledTools = (sql: SqlClient.SqlClient) => (sessionID: SessionID) =>
  reading(
    Effect.gen(function* () {
      const rows = yield* sql<PartRow>`SELECT *, ${sessionID} AS session_id FROM session_part
        WHERE session = ${sessionKey(sql, sessionID)} AND settled IS NULL AND kind = 'tool' ORDER BY seq`
      const seqs = rows.flatMap(({ called }) => (called === null ? [] : [called]))
      const events = yield* selectBySeq(sql, sessionID, seqs)
      return yield* Either.all(rows.map((row) => unsettled(sessionID, row, events)))
    })
  )

/** Turns are sequential, so only the last step can be open. */
export const openStep = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (sessionID: SessionID) {
    const [row] = yield* reading(
      sql<{ readonly id: string; readonly settled: number | null }>`SELECT id, settled FROM session_message
        WHERE session = ${sessionKey(sql, sessionID)} AND type = 'assistant' ORDER BY seq DESC LIMIT 1`
    )
    if (row?.settled !== null) return undefined
    const step = yield* message(sql)(sessionID, MessageID.make(row.id))
    return step?.type === "assistant" ? step : undefined
  })

/** Selects what a dead process left open in a session: calls without a result, a step without an end. Spec: TU-2. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, Schema } from "effect"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import type { PartRow } from "../projection/Tables.ts"
import { reading } from "./Reading.ts"
import { MessageUnreadable } from "./StoreError.ts"
import { message } from "./TranscriptRows.ts"

/** A call whose process died before the call ended. */
export interface UnsettledTool {
  readonly messageID: MessageID
  readonly callID: string
  readonly called: boolean
  readonly executed: boolean
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

const Called = Schema.parseJson(
  Schema.Struct({
    provider: Schema.Struct({
      executed: Schema.Boolean,
      metadata: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
    })
  })
)

const unsettled = (sessionID: string, row: PartRow): Either.Either<UnsettledTool, MessageUnreadable> =>
  Either.all({
    messageID: Schema.decodeUnknownEither(MessageID)(row.message_id),
    called: row.called === null ? Either.right(undefined) : Schema.decodeUnknownEither(Called)(row.called)
  }).pipe(
    Either.mapBoth({
      onLeft: ({ message }) => new MessageUnreadable({ sessionID, messageID: row.message_id, details: message }),
      onRight: ({ called, messageID }) => ({
        messageID,
        callID: row.key,
        called: called !== undefined,
        executed: called?.provider.executed ?? false,
        metadata: called?.provider.metadata
      })
    })
  )

export const unsettledTools = (sql: SqlClient.SqlClient) => (sessionID: SessionID) =>
  reading(
    sql<PartRow>`SELECT * FROM session_part WHERE session_id = ${sessionID} AND settled IS NULL ORDER BY seq`
  ).pipe(
    Effect.flatMap((rows) =>
      Either.all(rows.filter(({ kind }) => kind === "tool").map((row) => unsettled(sessionID, row)))
    )
  )

/** Turns are sequential, so only the last step can be open. */
export const openStep = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (sessionID: SessionID) {
    const [row] = yield* reading(
      sql<{ readonly id: string; readonly settled: string | null }>`SELECT id, settled FROM session_message
        WHERE session_id = ${sessionID} AND type = 'assistant' ORDER BY seq DESC LIMIT 1`
    )
    if (row?.settled !== null) return undefined
    const step = yield* message(sql)(sessionID, MessageID.make(row.id))
    return step?.type === "assistant" ? step : undefined
  })

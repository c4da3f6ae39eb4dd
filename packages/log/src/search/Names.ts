/** Finds the tool and the model of documents: their own events do not repeat them. Spec: SE-11. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Effect, Either } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import { sessionKey } from "../log/EventRow.ts"
import { selectBySeq } from "../store/EventsBySeq.ts"
import type { Document } from "./Document.ts"

interface Row {
  readonly key: number
  readonly tool: string | null
  readonly step: number | null
}

/** The names in one session: the tool of each call, and the message's step, which names the model. */
const ofSession = (sql: SqlClient.SqlClient, sessionID: SessionID, documents: ReadonlyArray<Document>) =>
  Effect.gen(function* () {
    const asked = JSON.stringify(documents.map(({ callID, messageID }) => [messageID ?? null, callID ?? null]))
    const rows = yield* sql<Row>`SELECT j.key,
        (SELECT name FROM session_part WHERE session = ${sessionKey(sql, sessionID)}
          AND message_id = j.value ->> 0 AND kind = 'tool' AND key = j.value ->> 1) AS tool,
        (SELECT seq FROM session_message WHERE id = j.value ->> 0 AND session = ${sessionKey(sql, sessionID)}) AS step
      FROM json_each(${asked}) j`
    const steps = yield* selectBySeq(
      sql,
      sessionID,
      Arr.filterMap(rows, ({ step }) => Arr.head(step === null ? [] : [step]))
    )
    const modelOf = (seq: number | null) => {
      const found = seq === null ? undefined : steps.get(seq)
      if (found === undefined || Either.isLeft(found) || found.right.type !== "session.next.step.started") return ""
      const { id, providerID } = found.right.data.model
      return `${providerID}/${id}`
    }
    return documents.map((document, at) => ({
      ...document,
      tool: document.tool ?? rows[at]?.tool ?? "",
      model: modelOf(rows[at]?.step ?? null)
    }))
  })

/** The documents with the names of their tools and models; empty for those that have none. */
export const withNames = (
  sql: SqlClient.SqlClient,
  documents: ReadonlyArray<Document>
): Effect.Effect<ReadonlyArray<Document & { readonly tool: string; readonly model: string }>, SqlError.SqlError> =>
  Effect.map(
    Effect.forEach(Object.values(Arr.groupBy(documents, ({ sessionID }) => sessionID)), (some) =>
      ofSession(sql, some[0].sessionID, some)
    ),
    Arr.flatten
  )

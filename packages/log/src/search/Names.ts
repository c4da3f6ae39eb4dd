/** Finds the tool and the model of documents: their own events do not repeat them. Spec: SE-11. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Option } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { selectEvents, toEvent } from "../log/EventRow.ts"
import { type Blocks, makeBlocks, selectKeptParts } from "../store/Content.ts"
import { selectBySeq } from "../store/EventsBySeq.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { Document } from "./Document.ts"

/** A document with the names of its tool and its model; empty if it has none. */
export type Named = Document & { readonly tool: string; readonly model: string }

interface Row {
  readonly tool: string | null
  readonly messageID: string | null
  /** The event that made the message: its sequence number, and its position, null if it was pruned. */
  readonly seq: number | null
  readonly position: number | null
}

const selectRows = (sql: SqlClient.SqlClient, documents: ReadonlyArray<Document>) => {
  const asked = documents.map(({ callID, messageID, sessionID }) => [sessionID, messageID ?? null, callID ?? null])
  return sql<Row>`SELECT p.name AS tool, j.value ->> 1 AS "messageID", m.seq, e.position
    FROM json_each(${JSON.stringify(asked)}) j
      LEFT JOIN event_sequence q ON q.session_id = j.value ->> 0
      LEFT JOIN session_part p ON p.session = q.session AND p.message_id = j.value ->> 1 AND p.kind = 'tool'
        AND p.key = j.value ->> 2
      LEFT JOIN session_message m ON m.id = j.value ->> 1 AND m.session = q.session
      LEFT JOIN event e ON e.session = m.session AND e.seq = m.seq
    ORDER BY j.key`
}

const modelOf = (event: SessionEvent): string =>
  event.type === "session.next.step.started" ? `${event.data.model.providerID}/${event.data.model.id}` : ""

/** The blocks of a session. */
type BlocksOf = (sessionID: SessionID) => Blocks

/** The models of messages, by message, and the tools of calls whose rows are in blocks, by message and call. */
const selectNames = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  documents: ReadonlyArray<Document>,
  rows: ReadonlyArray<Row>,
  blocksOf: BlocksOf
) {
  const [models, tools] = [new Map<string, string>(), new Map<string, string>()]
  const add = (event: Either.Either<SessionEvent, unknown>) => {
    if (Either.isLeft(event) || event.right.type !== "session.next.step.started") return
    models.set(event.right.data.assistantMessageID, modelOf(event.right))
  }
  const positions = [...new Set(rows.flatMap(({ position }) => (position === null ? [] : [position])))]
  if (positions.length > 0) {
    const found = yield* selectEvents(
      sql,
      sql`WHERE e.position IN (SELECT value FROM json_each(${JSON.stringify(positions)}))`
    )
    for (const row of found) {
      const event = toEvent(row)
      if (Option.isSome(event)) add(event.value)
    }
  }
  const pruned = new Map<string, Map<number, string>>()
  rows.forEach(({ messageID, position, seq }, at) => {
    const id = documents[at]?.sessionID
    if (id === undefined || position !== null || seq === null || messageID === null) return
    pruned.set(id, (pruned.get(id) ?? new Map<number, string>()).set(seq, messageID))
  })
  for (const [id, messages] of pruned) {
    const sessionID = SessionID.make(id, { disableValidation: true })
    const blocks = blocksOf(sessionID)
    for (const event of (yield* selectBySeq(sql, sessionID, messages.keys(), blocks)).values()) add(event)
    for (const { key, message, name } of yield* selectKeptParts(blocks, [...messages.keys()])) {
      if (name !== null) tools.set(`${messages.get(message)} ${key}`, name)
    }
  }
  return { models, tools }
})

/** The documents with the names of their tools and models. */
export const withNames = (
  sql: SqlClient.SqlClient,
  documents: ReadonlyArray<Document>,
  blocksOf: BlocksOf = (sessionID) => makeBlocks(sql, sessionID)
): Effect.Effect<ReadonlyArray<Named>, SqlError.SqlError> =>
  documents.length === 0
    ? Effect.succeed([])
    : Effect.gen(function* () {
        const rows = yield* selectRows(sql, documents)
        const { models, tools } = yield* selectNames(sql, documents, rows, blocksOf)
        return documents.map((document, at) => ({
          ...document,
          tool: document.tool ?? rows[at]?.tool ?? tools.get(`${document.messageID} ${document.callID}`) ?? "",
          model: models.get(document.messageID ?? "") ?? ""
        }))
      })

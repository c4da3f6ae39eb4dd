/**
 * Moves the rows of parts from `session_part` into blocks and back. No later event changes a part of a message up to the
 * floor, and a read of such a message opens its block for the content anyway. Edits of the context keep their rows: they
 * may be later than the floor that their message is below (CP-444). Spec: ST-37, RT-7, RT-24.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { DurableType } from "../events/SessionEvents.ts"
import { sessionKey } from "../log/EventRow.ts"
import { joinInOrder } from "../storage/Dialect.ts"
import * as Content from "../store/Content.ts"
import type { KeptPart } from "../store/ContentBlock.ts"
import { questionTool } from "../store/QuestionStore.ts"

// Says which events stay although no row refers to them: a later reader needs them for requests above the floor and for
// the list of decisions.

/** The types whose events are always kept. */
const kept: ReadonlySet<string> = new Set([
  // Names the agent that the session was created for.
  "session.created",
  // What a resume continues is read from them (RQ-45).
  "session.next.activity.started",
  "session.next.activity.settled",
  // The frame of a request above the floor, and the epoch, are folded from them (RQ-34).
  "session.next.request.framed",
  "session.next.context.updated",
  "session.next.context.pruned",
  // It may be later than the floor that its message is below.
  "session.next.context.edited",
  "session.next.part.withheld",
  "session.next.permission.decided",
  "session.next.permission.revoked"
] satisfies ReadonlyArray<DurableType>)

/** Whether an event of this type is kept without a row that refers to it. */
export const isKept = (type: DurableType): boolean => kept.has(type)

/** The events that `permissions audit` lists, over all sessions. */
export const isDecision = (type: DurableType): boolean => type.startsWith("session.next.permission.")

/** The tools whose calls are selected by their names: their parts keep their rows (ST-37). */
const toolsWithRows: ReadonlyArray<string> = ["todo", questionTool]

type Sql = SqlClient.SqlClient

/** The rows of the parts of the messages made in a range, in the order of their messages. */
export const select = (sql: Sql, sessionID: SessionID, { from, through }: Content.Range) =>
  sql<KeptPart>`SELECT m.seq AS message, p.kind, p.key, p.seq, p.name, p.status, p.opened, p.raw, p.called,
      p.progress, p.settled, p.time_created
    FROM session_message m ${joinInOrder(sql)} session_part p
      ON p.session = m.session AND p.message_id = coalesce(m.call_id, m.id) AND p.kind <> 'edit'
    WHERE m.session = ${sessionKey(sql, sessionID)} AND m.seq > ${from} AND m.seq <= ${through} ORDER BY m.seq, p.seq`

/** Messages per step of deleting their parts. */
const stepMessages = 128

/** Deletes the parts of the next messages after `after`. Returns the last of these messages; the floor at the end. */
export const deleteStep = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, after: number, floor: number) {
  const session = sessionKey(sql, sessionID)
  const rows = yield* sql<{ readonly seq: number }>`SELECT seq FROM session_message
    WHERE session = ${session} AND seq > ${after} AND seq <= ${floor} ORDER BY seq LIMIT ${stepMessages}`
  const last = rows.length < stepMessages ? floor : (rows.at(-1)?.seq ?? floor)
  yield* sql`DELETE FROM session_part WHERE session = ${session} AND coalesce(name, '') NOT IN ${sql.in(toolsWithRows)}
    AND kind <> 'edit'
    AND message_id IN (SELECT coalesce(call_id, id) FROM session_message
      WHERE session = ${session} AND seq > ${after} AND seq <= ${last})`
  return last
})

/** Inserts the rows of a block's parts again. A row that is there stays. */
const insert = (sql: Sql, sessionID: SessionID, parts: ReadonlyArray<KeptPart>) =>
  Effect.forEach(
    parts,
    (part) =>
      sql`INSERT INTO session_part (session, message_id, kind, key, seq, name, status, opened, raw, called, progress,
          settled, time_created)
        SELECT session, coalesce(call_id, id), ${part.kind}, ${part.key}, ${part.seq}, ${part.name}, ${part.status},
          ${part.opened}, ${part.raw}, ${part.called}, ${part.progress}, ${part.settled}, ${part.time_created}
        FROM session_message WHERE session = ${sessionKey(sql, sessionID)} AND seq = ${part.message}
        ON CONFLICT DO NOTHING`,
    { discard: true }
  )

const stepParts = 256

/** Puts the parts of a range of messages back, step by step. A damaged block is logged; a rebuild mends it. */
export const putBack = Effect.fnUntraced(function* <E>(
  sql: Sql,
  sessionID: SessionID,
  { from, through }: Content.Range,
  write: (step: Effect.Effect<void, SqlError.SqlError>) => Effect.Effect<void, E>
) {
  const blocks = Content.makeBlocks(sql, sessionID)
  for (let after = from; after < through;) {
    const block = yield* blocks.next({ from: after, through })
    if (block === undefined) return
    if (Either.isLeft(block.content)) {
      yield* Effect.logWarning(`${sessionID}: parts are missing until a rebuild: ${block.content.left}`)
    } else {
      const parts = block.content.right.parts()
      for (let at = 0; at < parts.length; at += stepParts) {
        yield* write(insert(sql, sessionID, parts.slice(at, at + stepParts)))
      }
    }
    after = block.last
  }
})

/**
 * Reads a session's history path, and restricts statements to it. A session whose leaf never moved has no path in its row:
 * its statements are those of a session without branches. Spec: HP-1, HP-5, HP-10.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Schema } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import type { SessionID } from "../domain/Identifiers.ts"
import { EventUnreadable } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import type { MessageRow } from "../projection/Tables.ts"
import * as Dialect from "../storage/Dialect.ts"
import { selectBySeq } from "./Content.ts"

const parse = Schema.decodeUnknownSync(Schema.parseJson(HistoryPath.Ranges))

/** The path in a session's row. Only the fold writes it, so another text is a broken invariant. */
export const pathOf = (text: string | null | undefined) => (typeof text === "string" ? parse(text) : HistoryPath.linear)

export interface Move {
  readonly seq: number
  readonly message_id: string | null
}

/** The last move of the leaf before an event. */
export const selectMove = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.map(
    sql<Move>`SELECT seq, message_id FROM session_leaf
      WHERE session = ${sessionKey(sql, sessionID)} AND seq < ${before} ORDER BY seq DESC LIMIT 1`,
    ([row]) => row
  )

/** The path that continues after a move. */
export const selectMoved = (sql: SqlClient.SqlClient, sessionID: SessionID, move: Move | undefined) =>
  Effect.gen(function* () {
    if (move === undefined) return HistoryPath.linear
    const found = (yield* selectBySeq(sql, sessionID, [move.seq])).get(move.seq)
    const event = found === undefined ? undefined : yield* found
    if (event?.type === "session.next.leaf.moved") return HistoryPath.moved(event.data.path, move.seq)
    const type = "session.next.leaf.moved"
    return yield* new EventUnreadable({ sessionID, seq: move.seq, type, details: "the move of the leaf is missing" })
  })

/** The path just before an event. */
export const selectPathBefore = (sql: SqlClient.SqlClient, sessionID: SessionID, before: number) =>
  Effect.flatMap(selectMove(sql, sessionID, before), (move) => selectMoved(sql, sessionID, move))

/** Restricts a statement to rows whose `column` is on this path. */
export const within = (
  sql: SqlClient.SqlClient,
  path: HistoryPath.HistoryPath,
  column: Statement.Fragment = sql`seq`
): Statement.Fragment =>
  HistoryPath.isLinear(path)
    ? sql``
    : sql` AND EXISTS (SELECT 1 FROM ${Dialect.ranges(sql, sql`${JSON.stringify(path)}`)}
        WHERE ${Dialect.inRange(sql, column)})`

/** Restricts a statement to rows whose `column` is on the session's present path, without reading the path first. */
export const onPath = (
  sql: SqlClient.SqlClient,
  sessionID: SessionID,
  column: Statement.Fragment = sql`seq`
): Statement.Fragment => {
  const path = sql`(SELECT path FROM session WHERE id = ${sessionID})`
  return sql` AND (${path} IS NULL OR EXISTS (SELECT 1 FROM ${Dialect.ranges(sql, path)}
    WHERE ${Dialect.inRange(sql, column)}))`
}

/** The messages in a part of a path, in order. Each range is read by key: what lies between them is not read. */
export const selectMessagesIn = (sql: SqlClient.SqlClient, sessionID: SessionID, part: HistoryPath.HistoryPath) => {
  const [first, ...others] = part
  if (first === undefined) return Effect.succeed([])
  if (others.length === 0) {
    const [from, to] = first
    const end = to === HistoryPath.open ? sql`` : sql` AND seq <= ${to}`
    return sql<MessageRow>`SELECT *, ${sessionID} AS session_id FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND seq >= ${from}${end} ORDER BY seq`
  }
  return sql<MessageRow>`SELECT m.*, ${sessionID} AS session_id FROM ${Dialect.ranges(sql, sql`${JSON.stringify(part)}`)}
    CROSS JOIN session_message m WHERE m.session = ${sessionKey(sql, sessionID)}
    AND ${Dialect.inRange(sql, sql`m.seq`)} ORDER BY m.seq`
}

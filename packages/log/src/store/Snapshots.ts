/** Selects the state of sessions at their floors, for readers whose events were pruned. Spec: RT-13, RT-14. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Effect, Either } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import { SessionNotFound } from "../log/EventLog.ts"
import * as SessionBase from "../projection/SessionBase.ts"
import { sessionOf } from "./Assemble.ts"
import { reading } from "./Reading.ts"
import type { SessionSnapshot } from "./SessionStore.ts"
import { MessageUnreadable } from "./StoreError.ts"

const pageSize = 100

type Row = {
  readonly session_id: string
  readonly floor: number
  readonly incarnation: number
  readonly base: string | null
}

const select = (sql: SqlClient.SqlClient, rest: Statement.Fragment) =>
  reading(
    sql<Row>`SELECT h.session_id, h.floor, coalesce(h.incarnation, 0) AS incarnation, f.base
      FROM event_sequence h LEFT JOIN session_floor f ON f.session_id = h.session_id WHERE h.seq >= 0 AND ${rest}`
  )

const snapshotOf = ({ base, floor, incarnation, session_id }: Row) => {
  const sessionID = SessionID.make(session_id, { disableValidation: true })
  if (floor < 0) return Either.right({ sessionID, session: undefined, incarnation, floor })
  return SessionBase.decode(base).pipe(
    Either.mapLeft(({ message }) => new MessageUnreadable({ sessionID, messageID: "", details: message })),
    Either.flatMap(({ row }) => sessionOf(row)),
    Either.map((session): SessionSnapshot => ({ sessionID, session, incarnation, floor }))
  )
}

export const snapshot = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.snapshot")(function* (sessionID: SessionID) {
    const [row] = yield* select(sql, sql`h.session_id = ${sessionID}`)
    return row === undefined ? yield* new SessionNotFound({ sessionID }) : yield* snapshotOf(row)
  })

export const snapshots = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.snapshots")(function* (after: string = "") {
    const rows = yield* select(sql, sql`h.session_id > ${after} ORDER BY h.session_id LIMIT ${pageSize}`)
    return yield* Either.all(rows.map(snapshotOf))
  })

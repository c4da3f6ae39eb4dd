/** Says to a reader whose events were pruned where it starts again. Spec: HT-43 in specs/http.md. */
import { Effect } from "effect"
import * as Cursor from "@daybook/api/wire/Cursor"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { CursorExpired, type EventLog } from "@daybook/log/log/EventLog"

/** Adds the floor as a cursor, and the path of a snapshot. */
export const restarting =
  (at: (position: number) => string, snapshot: string) =>
  ({ cursor, floor }: CursorExpired): Cursor.Expired =>
    new Cursor.Expired({ cursor, floor, floorCursor: at(floor), snapshot })

/** The path of a session's snapshot. */
export const snapshotOf = (sessionID: SessionID): string => `/sessions/${sessionID}/snapshot`

/** Work that reads events of a session, in its present life. */
export const expiring =
  ({ head, identity }: typeof EventLog.Service, sessionID: SessionID) =>
  <A, E, R>(work: Effect.Effect<A, E | CursorExpired, R>) =>
    Effect.catchIf(
      work,
      (error): error is CursorExpired => error instanceof CursorExpired,
      (expired) =>
        Effect.flatMap(head(sessionID), ({ incarnation }) => {
          const at = (position: number) => Cursor.format({ database: identity, incarnation, position })
          return restarting(at, snapshotOf(sessionID))(expired)
        })
    )

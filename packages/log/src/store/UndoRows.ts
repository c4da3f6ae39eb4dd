/**
 * Selects what an undo takes back: the last prompt of the history path, and the changes of files that its turns stored.
 * Spec: UN-13.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import { type EventOfType, FilesChanged } from "../events/SessionEvents.ts"
import { sessionKey } from "../log/EventRow.ts"
import { onPath } from "./PathRows.ts"
import { readingTogether } from "./Reading.ts"
import { selectOfTypes } from "./RequestRows.ts"
import { type Place, selectLeaf, selectPlace } from "./TreeRows.ts"

/** The last prompt and what its turns changed. */
export interface Undoable {
  readonly place: Place
  /** Where history continues now. */
  readonly leafID: MessageID | undefined
  /** Oldest first. */
  readonly changes: ReadonlyArray<EventOfType<"session.next.files.changed">>
}

/** Events per statement. */
const portion = 100

const selectPrompt = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.map(
    sql<{ readonly id: string }>`SELECT id FROM session_message
      WHERE session = ${sessionKey(sql, sessionID)} AND type = 'user' ${onPath(sql, sessionID)}
      ORDER BY seq DESC LIMIT 1`,
    ([row]) => (row === undefined ? undefined : MessageID.make(row.id, { disableValidation: true }))
  )

const selectChanges = (sql: SqlClient.SqlClient, sessionID: SessionID, after: number, path: HistoryPath.HistoryPath) =>
  Effect.gen(function* () {
    const changes: Array<EventOfType<"session.next.files.changed">> = []
    for (let before = HistoryPath.open; ;) {
      const page = yield* selectOfTypes(sql, sessionID, [FilesChanged], before, portion)
      for (const event of page) {
        if (event.type !== "session.next.files.changed" || event.seq <= after) continue
        if (HistoryPath.contains(path, event.seq)) changes.unshift(event)
      }
      const last = page.at(-1)
      if (last === undefined || page.length < portion || last.seq <= after) return changes
      before = last.seq
    }
  })

export const undoable = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.undoable")((sessionID: SessionID) =>
    readingTogether(sql)(
      Effect.gen(function* () {
        const prompt = yield* selectPrompt(sql, sessionID)
        const place = prompt === undefined ? undefined : yield* selectPlace(sql, sessionID, prompt)
        if (place === undefined) return undefined
        const { messageID: leafID, path } = yield* selectLeaf(sql, sessionID)
        return { place, leafID, changes: yield* selectChanges(sql, sessionID, place.seq, path) } satisfies Undoable
      })
    )
  )

/** Selects what an undo takes back: the last prompt, and the changes of files of its turns. Spec: UN-13, UN-50. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import * as HistoryPath from "../domain/HistoryPath.ts"
import { MessageID, type SessionID } from "../domain/Identifiers.ts"
import { type EventOfType, FilesChanged, FilesRestored } from "../events/SessionEvents.ts"
import { sessionKey } from "../log/EventRow.ts"
import { onPath, selectPathBefore } from "./PathRows.ts"
import { selectOfTypes } from "./RequestRows.ts"
import { readingTogether } from "./Reading.ts"
import { type TreePlace, selectLeaf, selectPlace } from "./TreeRows.ts"

// Selects the last undo of a session that was not taken back, and whether the session went on since.

/** An undo that can be taken back. */
export interface Redoable {
  readonly undo: EventOfType<"session.next.files.restored">
  readonly path: HistoryPath.HistoryPath
  /** Where history continues now. */
  readonly leafID: MessageID | undefined
  /** Whether messages or other moves of the leaf follow the undo. */
  readonly wentOn: boolean
}

/** The last undo that no later redo took back, and how many undos and redos there are from it on. */
const selectUndo = (sql: SqlClient.SqlClient, sessionID: SessionID) =>
  Effect.gen(function* () {
    const redone = new Set<number>()
    let count = 0
    for (let before = HistoryPath.open; ;) {
      const page = yield* selectOfTypes(sql, sessionID, [FilesRestored], before, portion)
      for (const event of page) {
        if (event.type !== "session.next.files.restored") continue
        count += 1
        if (event.data.redoes !== undefined) redone.add(event.data.redoes)
        else if (!redone.has(event.seq)) return { undo: event, count }
      }
      const last = page.at(-1)
      if (last === undefined || page.length < portion) return undefined
      before = last.seq
    }
  })

/** Whether more follows an undo than the moves of this many undos and redos. */
const selectWentOn = (sql: SqlClient.SqlClient, sessionID: SessionID, seq: number, moves: number) =>
  Effect.map(
    sql<{ readonly messages: number; readonly moves: number }>`SELECT
      EXISTS (SELECT 1 FROM session_message WHERE session = ${sessionKey(sql, sessionID)} AND seq > ${seq}) AS messages,
      (SELECT count(*) FROM session_leaf WHERE session = ${sessionKey(sql, sessionID)} AND seq > ${seq}) AS moves`,
    ([row]) => row === undefined || row.messages === 1 || row.moves !== moves
  )

export const redoable = (sql: SqlClient.SqlClient) =>
  Effect.fn("SessionStore.redoable")((sessionID: SessionID) =>
    readingTogether(sql)(
      Effect.gen(function* () {
        const found = yield* selectUndo(sql, sessionID)
        if (found === undefined) return undefined
        const { count, undo } = found
        const path = HistoryPath.until(yield* selectPathBefore(sql, sessionID, undo.seq), undo.seq - 1)
        const { messageID: leafID } = yield* selectLeaf(sql, sessionID)
        const wentOn = yield* selectWentOn(sql, sessionID, undo.seq, count)
        return { undo, path, leafID, wentOn } satisfies Redoable
      })
    )
  )

/** The last prompt and what its turns changed. */
export interface Undoable {
  readonly place: TreePlace
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

/** Implements the questions on SQL. Contract: `QuestionStore.ts`. */
import { Effect, Either, Layer, Option } from "effect"
import { QuestionClosed, type QuestionRef, type SessionID } from "../domain/Identifiers.ts"
import { type Draft, draft } from "../events/SessionEvents.ts"
import { type CommitHook, EventLog } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import * as SqlHook from "../log/SqlHook.ts"
import type { Parameters } from "../storage/Connection.ts"
import { ReadSql } from "../storage/Database.ts"
import { type EventsBySeq, selectBySeq } from "./Content.ts"
import { type OpenQuestion, questionTool, QuestionStore } from "./QuestionStore.ts"
import { reading } from "./Reading.ts"

/** The part of a `question` call. */
type CallRow = { readonly message_id: string; readonly key: string; readonly seq: number }

type AskedRow = CallRow & { readonly called: number }

/** The question of a call; none if its event cannot be read. */
const questionOf = (sessionID: SessionID, row: AskedRow, events: EventsBySeq): ReadonlyArray<OpenQuestion> => {
  const called = Option.getOrUndefined(Option.flatMap(Option.fromNullable(events.get(row.called)), Either.getRight))
  if (called?.type !== "session.next.tool.called") return []
  const { assistantMessageID: messageID, input } = called.data
  return [{ sessionID, messageID, callID: row.key, input, askedAt: called.created }]
}

/** The parameters of `closings`. */
const closingsOf = (sessionID: SessionID, { key, message_id, seq }: CallRow): Parameters => [
  sessionID,
  seq,
  message_id,
  key
]

/** Counts the answers and dismissals of one call in the log, of any version: `/` is the character after `.`. */
const closings = `SELECT count(*) AS total FROM event e
  WHERE e.session = (SELECT session FROM event_sequence WHERE session_id = ?) AND e.seq > ?
  AND e.type IN (SELECT type FROM event_type
    WHERE name >= 'session.next.question.' AND name < 'session.next.question/')
  AND json_extract(data, '$.assistantMessageID') = ?
  AND json_extract(data, '$.callID') = ?`

type Total = { readonly total: number }

const running = `SELECT message_id, key, seq FROM session_part
  WHERE session = (SELECT session FROM event_sequence WHERE session_id = ?) AND message_id = ? AND kind = 'tool'
  AND key = ? AND name = ? AND status = 'running' AND settled IS NULL`

/** Refuses a closing event unless it is the first one of an open question. */
const wasOpen = ({ callID, messageID, sessionID }: QuestionRef): CommitHook<QuestionClosed> =>
  SqlHook.check((statements) => {
    const [row] = statements.all<CallRow>(running, [sessionID, messageID, callID, questionTool])
    const [closed] = row === undefined ? [] : statements.all<Total>(closings, closingsOf(sessionID, row))
    return closed?.total === 1 ? undefined : new QuestionClosed({ sessionID, messageID, callID })
  })

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const log = yield* EventLog

  const close = (question: QuestionRef, event: Draft) =>
    Effect.asVoid(log.append(question.sessionID, [event], { commit: wasOpen(question) }))

  return QuestionStore.of({
    open: (sessionID) =>
      reading(
        Effect.gen(function* () {
          const asked = yield* sql<AskedRow>`SELECT message_id, key, seq, called FROM session_part
            WHERE session = ${sessionKey(sql, sessionID)} AND settled IS NULL AND name = ${questionTool} AND kind = 'tool'
            AND status = 'running' ORDER BY seq`
          const open = yield* Effect.filter(asked, (row) =>
            Effect.map(sql.unsafe<Total>(closings, closingsOf(sessionID, row)), ([closed]) => closed?.total === 0)
          )
          const events = yield* selectBySeq(
            sql,
            sessionID,
            open.map(({ called }) => called)
          )
          return open.flatMap((row) => questionOf(sessionID, row, events))
        })
      ),
    cursorOf: ({ callID, messageID, sessionID }) =>
      Effect.map(
        reading(
          sql<{ readonly seq: number }>`SELECT seq FROM session_part WHERE session = ${sessionKey(sql, sessionID)}
            AND message_id = ${messageID} AND kind = 'tool' AND key = ${callID}`
        ),
        ([row]) => row?.seq ?? -1
      ),
    answer: (question, answers) => {
      const { callID, messageID: assistantMessageID } = question
      return close(question, draft("session.next.question.answered", { assistantMessageID, callID, answers }))
    },
    dismiss: (question) => {
      const { callID, messageID: assistantMessageID } = question
      return close(question, draft("session.next.question.dismissed", { assistantMessageID, callID }))
    }
  })
})

/** Questions over the event log and `ReadSql`. */
export const layer = Layer.effect(QuestionStore, make)

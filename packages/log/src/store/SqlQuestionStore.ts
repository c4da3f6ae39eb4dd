/** Implements the questions on SQL. Contract: `QuestionStore.ts`. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Either, Layer, Option } from "effect"
import { QuestionClosed, type QuestionRef, type SessionID } from "../domain/Identifiers.ts"
import { type Draft, draft } from "../events/SessionEvents.ts"
import { type CommitHook, EventLog } from "../log/EventLog.ts"
import { sessionKey } from "../log/EventRow.ts"
import * as SqlHook from "../log/SqlHook.ts"
import { ReadSql } from "../storage/Database.ts"
import { placed, textIn } from "../storage/Dialect.ts"
import { type EventsBySeq, selectBySeq } from "./Content.ts"
import { type OpenQuestion, questionTool, QuestionStore } from "./QuestionStore.ts"
import { reading } from "./Reading.ts"

/** The part of a `question` call, and how many events close it. */
type AskedRow = {
  readonly message_id: string
  readonly key: string
  readonly seq: number
  readonly called: number
  readonly closings: number
}

/** The question of a call; none if its event cannot be read. */
const questionOf = (sessionID: SessionID, row: AskedRow, events: EventsBySeq): ReadonlyArray<OpenQuestion> => {
  const called = Option.getOrUndefined(Option.flatMap(Option.fromNullable(events.get(row.called)), Either.getRight))
  if (called?.type !== "session.next.tool.called") return []
  const { assistantMessageID: messageID, input } = called.data
  return [{ sessionID, messageID, callID: row.key, input, askedAt: called.created }]
}

/**
 * The calls of questions that run, and how many answers and dismissals of any version the log has for each: `/` is the
 * character after `.`. `rest` goes on about calls `p`.
 */
const asked = (sql: SqlClient.SqlClient, rest: string): string =>
  `SELECT p.message_id, p.key, p.seq, p.called, (SELECT count(*) FROM event e
    WHERE e.session = p.session AND e.seq > p.seq
    AND e.type IN (SELECT type FROM event_type
      WHERE name >= 'session.next.question.' AND name < 'session.next.question/')
    AND ${textIn(sql, "e.data", "assistantMessageID")} = p.message_id
    AND ${textIn(sql, "e.data", "callID")} = p.key) AS closings
  FROM session_part p WHERE p.session = (SELECT session FROM event_sequence WHERE session_id = ?)
    AND p.settled IS NULL AND p.name = ? AND p.kind = 'tool' AND p.status = 'running' ${rest}`

/** Refuses a closing event unless it is the first one of an open question. */
const wasOpen = (
  sql: SqlClient.SqlClient,
  { callID, messageID, sessionID }: QuestionRef
): CommitHook<QuestionClosed> => {
  const text = asked(sql, "AND p.message_id = ? AND p.key = ?")
  return SqlHook.asking({
    query: () => ({ text, parameters: [sessionID, questionTool, messageID, callID] }),
    refusalOf: ([call]: ReadonlyArray<AskedRow>) =>
      call?.closings === 1 ? undefined : new QuestionClosed({ sessionID, messageID, callID })
  })
}

const make = Effect.gen(function* () {
  const sql = yield* ReadSql
  const log = yield* EventLog

  const close = (question: QuestionRef, event: Draft) =>
    Effect.asVoid(log.append(question.sessionID, [event], { commit: wasOpen(sql, question) }))

  return QuestionStore.of({
    open: (sessionID) =>
      reading(
        Effect.gen(function* () {
          const calls = yield* sql.unsafe<AskedRow>(placed(sql, asked(sql, "ORDER BY p.seq")), [
            sessionID,
            questionTool
          ])
          const open = calls.filter(({ closings }) => closings === 0)
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

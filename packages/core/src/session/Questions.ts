/**
 * Manages questions: open from the moment the call is on disk until it is answered, dismissed or settled. All state is
 * in the log: an answer is an event and the waiting call follows the session, so another process's answer arrives like
 * a local one. The transaction that closes a question decides whether it is still open. Spec: TO-81..TO-86.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { validate } from "@daybook/log/domain/Validate"
import { type Draft, draft, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type LogUnavailable, type ReadError } from "@daybook/log/log/EventLog"
import { unavailable } from "@daybook/log/log/EventRow"
import * as SqlHook from "@daybook/log/log/SqlHook"
import { ReadSql, retryBusy } from "@daybook/log/storage/Database"
import { Answers, type PendingQuestion, QuestionClosed, QuestionItems, type QuestionRef } from "../domain/Question.ts"
import { decodeInput } from "../tool/LenientInput.ts"

/** The name of the tool that asks. */
export const questionTool = "question"

/** How a question ended. */
export type Outcome =
  { readonly _tag: "Answered"; readonly answers: ReadonlyArray<string> } | { readonly _tag: "Dismissed" }

/** Lists, closes and awaits questions. */
export class Questions extends Context.Tag("@daybook/core/Questions")<
  Questions,
  {
    /** The open questions of a session with a living owner, oldest first. */
    readonly pending: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<PendingQuestion>, LogUnavailable>
    /** Records the answers, one per question. */
    readonly answer: (
      options: QuestionRef & { readonly answers: ReadonlyArray<string> }
    ) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    /** Records that the question will not be answered. */
    readonly dismiss: (options: QuestionRef) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    /** Waits for the end of a question. */
    readonly outcome: (question: QuestionRef) => Effect.Effect<Outcome, ReadError>
  }
>() {}

type AskedRow = {
  readonly message_id: string
  readonly key: string
  readonly seq: number
  readonly called: string
  readonly time_ran: number
}

const Ref = Schema.Struct({ sessionID: SessionID, messageID: MessageID, callID: Schema.NonEmptyString })

const decodeCalled = Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ input: Schema.Unknown })))
/** The log holds the model's raw input; decoded as the tool decodes it (TO-17). */
const decodeAsked = decodeInput(questionTool, Schema.Struct({ questions: QuestionItems }))
const decodeMessageID = Schema.decodeUnknown(MessageID)

/** The question of a waiting call; none if the tool rejects its input. */
const pendingIn = (sessionID: SessionID, row: AskedRow): Effect.Effect<Option.Option<PendingQuestion>> =>
  Effect.option(
    Effect.gen(function* () {
      const { input } = yield* decodeCalled(row.called)
      const { questions } = yield* decodeAsked(input)
      const messageID = yield* decodeMessageID(row.message_id)
      return { sessionID, messageID, callID: row.key, questions, askedAt: row.time_ran }
    })
  )

/** Counts the answers and dismissals of one call in the log, of any version: `/` is the character after `.`. */
const closings = (sql: SqlClient.SqlClient, sessionID: SessionID, row: Pick<AskedRow, "key" | "message_id" | "seq">) =>
  Effect.map(
    sql<{ readonly total: number }>`SELECT count(*) AS total FROM event
      WHERE session_id = ${sessionID} AND seq > ${row.seq}
      AND type >= 'session.next.question.' AND type < 'session.next.question/'
      AND json_extract(data, '$.assistantMessageID') = ${row.message_id}
      AND json_extract(data, '$.callID') = ${row.key}`,
    ([found]) => found?.total ?? 0
  )

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const owners = yield* SessionOwner
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql

  const read = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.mapError(retryBusy(effect), unavailable("read"))

  const open = (sessionID: SessionID) =>
    read(
      Effect.gen(function* () {
        const asked = yield* readSql<AskedRow>`SELECT message_id, key, seq, called, time_ran FROM session_part
          WHERE session_id = ${sessionID} AND settled IS NULL AND name = ${questionTool} AND kind = 'tool'
          AND status = 'running' ORDER BY seq`
        return yield* Effect.filter(asked, (row) => Effect.map(closings(readSql, sessionID, row), (n) => n === 0))
      })
    )

  const pending = Effect.fn("Questions.pending")(function* (sessionID: SessionID) {
    const asked = yield* open(sessionID)
    // Without a living owner the call will be failed, and an answer would reach no one (TU-2).
    if (asked.length === 0 || !(yield* owners.isOwned(sessionID))) return []
    return Arr.getSomes(yield* Effect.forEach(asked, (row) => pendingIn(sessionID, row)))
  })

  /** Runs in the transaction that stores the closing event, so that only one of two closings succeeds. */
  const stillOpen = ({ callID, messageID, sessionID }: QuestionRef) =>
    Effect.gen(function* () {
      const [row] = yield* sql<Pick<AskedRow, "key" | "message_id" | "seq">>`SELECT message_id, key, seq
        FROM session_part WHERE session_id = ${sessionID} AND message_id = ${messageID} AND kind = 'tool'
        AND key = ${callID} AND name = ${questionTool} AND status = 'running' AND settled IS NULL`
      if (row === undefined || (yield* closings(sql, sessionID, row)) !== 1) {
        return yield* new QuestionClosed({ sessionID, messageID, callID })
      }
    })

  const find = Effect.fnUntraced(function* (ref: QuestionRef) {
    const found = (yield* pending(ref.sessionID)).find(
      ({ callID, messageID }) => callID === ref.callID && messageID === ref.messageID
    )
    return found ?? (yield* new QuestionClosed(ref))
  })

  const checked = ({ callID, messageID, sessionID }: QuestionRef) =>
    validate("question", Ref, { sessionID, messageID, callID })

  const close = (ref: QuestionRef, event: Draft) =>
    Effect.asVoid(log.append(ref.sessionID, [event], { commit: SqlHook.make(() => stillOpen(ref)) }))

  /** The call's part precedes its closing event, so following from the part misses nothing. */
  const askedAfter = ({ callID, messageID, sessionID }: QuestionRef) =>
    Effect.map(
      read(
        readSql<{ readonly seq: number }>`SELECT seq FROM session_part WHERE session_id = ${sessionID}
          AND message_id = ${messageID} AND kind = 'tool' AND key = ${callID}`
      ),
      ([row]) => row?.seq ?? -1
    )

  return Questions.of({
    pending,
    answer: Effect.fn("Questions.answer")(function* (options) {
      const ref = yield* checked(options)
      const answers = yield* validate("answers", Answers, options.answers)
      const { questions } = yield* find(ref)
      if (answers.length !== questions.length) {
        return yield* new InvalidInput({
          field: "answers",
          details: `expected ${questions.length}, one for each question, got ${answers.length}`
        })
      }
      const { callID, messageID: assistantMessageID } = ref
      yield* close(ref, draft("session.next.question.answered", { assistantMessageID, callID, answers }))
    }),
    dismiss: Effect.fn("Questions.dismiss")(function* (options) {
      const ref = yield* checked(options)
      yield* find(ref)
      const { callID, messageID: assistantMessageID } = ref
      yield* close(ref, draft("session.next.question.dismissed", { assistantMessageID, callID }))
    }),
    outcome: Effect.fn("Questions.outcome")(function* (ref) {
      const ended = Stream.filterMap(
        log.tail({ sessionID: ref.sessionID, after: yield* askedAfter(ref) }),
        outcomeFor(ref)
      )
      // A tail ends only by failing.
      return Option.getOrThrow(yield* Stream.runHead(ended))
    })
  })
})

const outcomeFor =
  ({ callID, messageID }: QuestionRef) =>
  (event: SessionEvent): Option.Option<Outcome> => {
    if (event.type !== "session.next.question.answered" && event.type !== "session.next.question.dismissed") {
      return Option.none()
    }
    if (event.data.assistantMessageID !== messageID || event.data.callID !== callID) return Option.none()
    return event.type === "session.next.question.answered"
      ? Option.some({ _tag: "Answered", answers: event.data.answers })
      : Option.some({ _tag: "Dismissed" })
  }

/** Questions over the event log. */
export const layer = Layer.effect(Questions, make)

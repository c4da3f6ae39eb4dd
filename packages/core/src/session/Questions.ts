/**
 * The life of a question: open from the moment its call is on disk until it is answered, dismissed or settled. The log
 * is all there is: an answer is an event, whoever waits follows the session, so that an answer of another process
 * arrives like one of this. Which calls are open is decided in the transaction that closes them. Spec: TO-81..TO-86.
 */
import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { draft, type Draft, type SessionEvent } from "../events/SessionEvents.ts"
import { MessageID, SessionID } from "../Identifiers.ts"
import { EventLog, type AppendError, type LogUnavailable, type ReadError } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { ReadSql, retryBusy } from "../storage/Database.ts"
import { decodeInput } from "../tool/LenientInput.ts"
import { Answers, QuestionClosed, QuestionItems, type PendingQuestion, type QuestionRef } from "./Question.ts"
import { SessionOwner } from "./SessionOwner.ts"
import { InvalidInput } from "./Sessions.ts"
import { validate } from "./Validate.ts"

/** The name of the tool that asks. */
export const questionTool = "question"

/** What became of a question. */
export type Outcome =
  { readonly _tag: "Answered"; readonly answers: ReadonlyArray<string> } | { readonly _tag: "Dismissed" }

/** Where questions wait, and how they end. */
export class Questions extends Context.Tag("@daybook/core/Questions")<
  Questions,
  {
    /** The open questions of a session that somebody works on, the oldest first. */
    readonly pending: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<PendingQuestion>, LogUnavailable>
    /** Records the answers, one for each question. */
    readonly answer: (
      options: QuestionRef & { readonly answers: ReadonlyArray<string> }
    ) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    /** Records that nobody will answer. */
    readonly dismiss: (options: QuestionRef) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    /** Waits for the end of a question that has been asked. */
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
/** The log holds the input as the model gave it; the tool reads it in the same way (TO-17). */
const decodeAsked = decodeInput(questionTool, Schema.Struct({ questions: QuestionItems }))
const decodeMessageID = Schema.decodeUnknown(MessageID)

/** The question in a call that waits; none when the tool refuses its input. */
const pendingIn = (sessionID: SessionID, row: AskedRow): Effect.Effect<Option.Option<PendingQuestion>> =>
  Effect.option(
    Effect.gen(function* () {
      const { input } = yield* decodeCalled(row.called)
      const { questions } = yield* decodeAsked(input)
      const messageID = yield* decodeMessageID(row.message_id)
      return { sessionID, messageID, callID: row.key, questions, askedAt: row.time_ran }
    })
  )

/** Answers and dismissals of one call that are in the log, in whatever version: `/` follows `.`. */
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
    // The process that asked is gone: its call is to be failed, and an answer would reach nobody (TU-2).
    if (asked.length === 0 || !(yield* owners.isOwned(sessionID))) return []
    return Arr.getSomes(yield* Effect.forEach(asked, (row) => pendingIn(sessionID, row)))
  })

  /** In the transaction, with the new event in it: of two that close a question, one is refused. */
  const stillOpen = ({ callID, messageID, sessionID }: QuestionRef) =>
    Effect.gen(function* () {
      const [row] = yield* sql<Pick<AskedRow, "key" | "message_id" | "seq">>`SELECT message_id, key, seq
        FROM session_part WHERE session_id = ${sessionID} AND message_id = ${messageID} AND kind = 'tool'
        AND key = ${callID} AND name = ${questionTool} AND status = 'running' AND settled IS NULL`
      if (row === undefined || (yield* closings(sql, sessionID, row)) !== 1) {
        return yield* new QuestionClosed({ sessionID, messageID, callID })
      }
    }).pipe(Effect.catchTag("SqlError", (error) => unavailable("check that the question is open")(error)))

  const find = Effect.fnUntraced(function* (ref: QuestionRef) {
    const found = (yield* pending(ref.sessionID)).find(
      ({ callID, messageID }) => callID === ref.callID && messageID === ref.messageID
    )
    return found ?? (yield* new QuestionClosed(ref))
  })

  const checked = ({ callID, messageID, sessionID }: QuestionRef) =>
    validate("question", Ref, { sessionID, messageID, callID })

  const close = (ref: QuestionRef, event: Draft) =>
    Effect.asVoid(log.append(ref.sessionID, [event], { commit: () => stillOpen(ref) }))

  /** Any place before the call's own event will do to follow from. */
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

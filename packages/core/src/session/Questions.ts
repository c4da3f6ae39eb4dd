/**
 * Manages questions: open from the moment the call is on disk until it is answered, dismissed or settled. All state is
 * in the log: an answer is an event and the waiting call follows the session, so another process's answer arrives like
 * a local one. The rows are the log's (`QuestionStore`). Spec: TO-81..TO-86.
 */
import { Array as Arr, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type LogUnavailable, type ReadError } from "@daybook/log/log/EventLog"
import { type OpenQuestion, questionTool, QuestionStore } from "@daybook/log/store/QuestionStore"
import { Answers, type PendingQuestion, QuestionClosed, QuestionItems, QuestionRef } from "../domain/Question.ts"
import { decodeInput } from "../tool/LenientInput.ts"

export type Outcome =
  { readonly _tag: "Answered"; readonly answers: ReadonlyArray<string> } | { readonly _tag: "Dismissed" }

/** Lists, closes and awaits questions. */
export class Questions extends Context.Tag("@daybook/core/Questions")<
  Questions,
  {
    /** The open questions of a session with a living owner, oldest first. */
    readonly pending: (sessionID: SessionID) => Effect.Effect<ReadonlyArray<PendingQuestion>, LogUnavailable>
    readonly answer: (
      options: QuestionRef & { readonly answers: ReadonlyArray<string> }
    ) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    readonly dismiss: (options: QuestionRef) => Effect.Effect<void, InvalidInput | QuestionClosed | AppendError>
    /** Waits for the end of a question. */
    readonly outcome: (question: QuestionRef) => Effect.Effect<Outcome, ReadError>
  }
>() {}

/** The log holds the model's raw input; decoded as the tool decodes it (TO-17). */
const decodeAsked = decodeInput(questionTool, Schema.Struct({ questions: QuestionItems }))

/** None if the tool rejects the call's input. */
const pendingIn = ({ input, ...ref }: OpenQuestion): Effect.Effect<Option.Option<PendingQuestion>> =>
  Effect.option(Effect.map(decodeAsked(input), ({ questions }) => ({ ...ref, questions })))

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const owners = yield* SessionOwner
  const store = yield* QuestionStore

  const pending = Effect.fn("Questions.pending")(function* (sessionID: SessionID) {
    const open = yield* store.open(sessionID)
    // Without a living owner the call will be failed, and an answer would reach no one (TU-2).
    if (open.length === 0 || !(yield* owners.isOwned(sessionID))) return []
    return Arr.getSomes(yield* Effect.forEach(open, pendingIn))
  })

  const find = Effect.fnUntraced(function* (ref: QuestionRef) {
    const found = (yield* pending(ref.sessionID)).find(
      ({ callID, messageID }) => callID === ref.callID && messageID === ref.messageID
    )
    return found ?? (yield* new QuestionClosed(ref))
  })

  const checked = ({ callID, messageID, sessionID }: QuestionRef) =>
    validate("question", QuestionRef, { sessionID, messageID, callID })

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
      yield* store.answer(ref, answers)
    }),
    dismiss: Effect.fn("Questions.dismiss")(function* (options) {
      const ref = yield* checked(options)
      yield* find(ref)
      yield* store.dismiss(ref)
    }),
    outcome: Effect.fn("Questions.outcome")(function* (ref) {
      const ended = Stream.filterMap(
        log.tail({ sessionID: ref.sessionID, after: yield* store.cursorOf(ref) }),
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

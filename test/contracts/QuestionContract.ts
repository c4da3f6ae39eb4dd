/** The questions of models to people (TO-81, TO-82, TO-83, TO-84, TO-85). */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Struct } from "effect"
import { type MessageID, QuestionClosed, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { questionTool, QuestionStore } from "../../packages/log/src/store/QuestionStore.ts"
import type { ReadModel } from "./ReadModel.ts"
import { begin, call, message, readAll, session, step } from "./Samples.ts"

const input = { questions: [{ question: "Which one?" }] }

/** Stores a step that asks one question, and returns the question. */
const ask = Effect.fnUntraced(function* (sessionID: SessionID, callID = "call_1", messageID: MessageID = message()) {
  const log = yield* EventLog
  yield* log.append(sessionID, [step(messageID), ...call({ messageID, callID, tool: questionTool, input })])
  return { sessionID, messageID, callID }
})

/** A session with one open question. */
const asked = Effect.gen(function* () {
  const id = session()
  yield* begin(id)
  return yield* ask(id)
})

const settled = (question: { readonly messageID: MessageID; readonly callID: string }) =>
  draft("session.next.tool.failed", {
    assistantMessageID: question.messageID,
    callID: question.callID,
    error: { type: "interrupted", message: "stopped" },
    provider: { executed: false }
  })

const closed = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) && exit.cause._tag === "Fail" && exit.cause.error instanceof QuestionClosed

/** Registers every test of the contract of `QuestionStore`. */
export const questionStoreContract = <E>({ layer, name }: ReadModel<QuestionStore, E>): void =>
  it.layer(layer)(`questions, ${name}`, (it) => {
    it.effect("TO-81: a question is open from its call on, with the input that the model wrote", () =>
      Effect.gen(function* () {
        const [questions, log, id, messageID] = [yield* QuestionStore, yield* EventLog, session(), message()]
        yield* begin(id)
        const [started, ...called] = call({ messageID, callID: "call_1", tool: questionTool, input })
        yield* log.append(id, [step(messageID), started])
        assert.deepStrictEqual(yield* questions.open(id), [])
        for (const event of called) yield* log.append(id, [event])
        const askedAt = (yield* readAll(id)).at(-1)?.created ?? -1
        assert.deepStrictEqual(yield* questions.open(id), [
          { sessionID: id, messageID, callID: "call_1", input, askedAt }
        ])
      })
    )

    it.effect("TO-85: the open questions of a session come oldest first, without other tools' calls and sessions", () =>
      Effect.gen(function* () {
        const [questions, log, first] = [yield* QuestionStore, yield* EventLog, yield* asked]
        const { sessionID } = first
        const other = call({ messageID: first.messageID, callID: "call_2", tool: "read", input: {} })
        yield* log.append(sessionID, other)
        const second = yield* ask(sessionID)
        yield* asked
        const open = yield* questions.open(sessionID)
        assert.deepStrictEqual(
          open.map(({ callID, messageID }) => ({ callID, messageID, sessionID })),
          [first, second]
        )
      })
    )

    it.effect("TO-82: an answer is one event with the texts in order, and closes the question", () =>
      Effect.gen(function* () {
        const [questions, question] = [yield* QuestionStore, yield* asked]
        yield* questions.answer(question, ["blue", "red\ngreen"])
        const last = (yield* readAll(question.sessionID)).at(-1)
        assert.strictEqual(last?.type, "session.next.question.answered")
        assert.deepStrictEqual(last?.data, {
          assistantMessageID: question.messageID,
          callID: question.callID,
          answers: ["blue", "red\ngreen"]
        })
        assert.deepStrictEqual(yield* questions.open(question.sessionID), [])
      })
    )

    it.effect("TO-83: a dismissal is one event, and closes the question", () =>
      Effect.gen(function* () {
        const [questions, question] = [yield* QuestionStore, yield* asked]
        yield* questions.dismiss(question)
        const last = (yield* readAll(question.sessionID)).at(-1)
        assert.strictEqual(last?.type, "session.next.question.dismissed")
        assert.deepStrictEqual(last?.data, { assistantMessageID: question.messageID, callID: question.callID })
        assert.deepStrictEqual(yield* questions.open(question.sessionID), [])
      })
    )

    it.effect(
      "TO-84: of concurrent answers and dismissals one is stored, and the others fail with QuestionClosed",
      () =>
        Effect.gen(function* () {
          const [questions, question] = [yield* QuestionStore, yield* asked]
          const before = (yield* readAll(question.sessionID)).length
          const outcomes = yield* Effect.forEach(
            Array.from({ length: 12 }, (_, index) => index),
            (index) =>
              Effect.exit(index % 2 === 0 ? questions.answer(question, [`${index}`]) : questions.dismiss(question)),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(outcomes.filter(Exit.isSuccess).length, 1)
          assert.strictEqual(outcomes.filter(closed).length, 11)
          assert.strictEqual((yield* readAll(question.sessionID)).length, before + 1)
        })
    )

    it.effect("TO-84: a call that has ended, another tool's call and an unknown call are no open questions", () =>
      Effect.gen(function* () {
        const [questions, log, question] = [yield* QuestionStore, yield* EventLog, yield* asked]
        const { messageID, sessionID } = question
        yield* log.append(sessionID, call({ messageID, callID: "call_read", tool: "read", input: {} }))
        yield* log.append(sessionID, [settled(question)])
        const before = (yield* readAll(sessionID)).length
        for (const callID of [question.callID, "call_read", "call_unknown"]) {
          const refused = yield* Effect.flip(questions.answer({ ...question, callID }, ["late"]))
          assert.deepInclude(refused, { _tag: "QuestionClosed", sessionID, messageID, callID })
          assert.strictEqual((yield* Effect.flip(questions.dismiss({ ...question, callID })))._tag, "QuestionClosed")
        }
        assert.strictEqual((yield* readAll(sessionID)).length, before)
        assert.deepStrictEqual(yield* questions.open(sessionID), [])
      })
    )

    it.effect("TU-10: an answer closes the question of its message only, when a call id repeats", () =>
      Effect.gen(function* () {
        const [questions, first] = [yield* QuestionStore, yield* asked]
        const second = yield* ask(first.sessionID, first.callID)
        yield* questions.answer(second, ["the second"])
        assert.deepStrictEqual((yield* questions.open(first.sessionID)).map(Struct.get("messageID")), [first.messageID])
        yield* questions.answer(first, ["the first"])
        assert.deepStrictEqual(yield* questions.open(first.sessionID), [])
      })
    )

    it.effect("TO-82: the cursor of a question lies before its end, and is -1 for an unknown call", () =>
      Effect.gen(function* () {
        const [questions, question] = [yield* QuestionStore, yield* asked]
        const asking = (yield* readAll(question.sessionID)).length
        yield* questions.answer(question, ["yes"])
        const cursor = yield* questions.cursorOf(question)
        assert.isAtLeast(cursor, 0)
        assert.isBelow(cursor, asking)
        assert.include(
          (yield* readAll(question.sessionID, cursor)).map(({ type }) => type),
          "session.next.question.answered"
        )
        assert.strictEqual(yield* questions.cursorOf({ ...question, messageID: message() }), -1)
      })
    )
  })

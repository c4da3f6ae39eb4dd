/** The tool `question` from the facade down: what the model asks, who answers, and every way in which it ends. */
import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Either, Stream, Struct } from "effect"
import { type PendingQuestion, QuestionClosed } from "../../packages/core/src/domain/Question.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { dataOf, resultsIn } from "../runner/support/Runs.ts"
import { answerTo, eventTypes, newSession, open, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import { hastily } from "../support/HastyClock.ts"
import { giveFileTo, goneOwner } from "../support/Owners.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const colour = { question: "Which colour?", header: "Colour", options: [{ label: "red" }, { label: "blue" }] }
const name = { question: "Which name?" }

/** A session whose model has just asked. */
const asking = Effect.fnUntraced(function* (...questions: ReadonlyArray<unknown>) {
  const { id, model, sessions } = yield* scene()
  yield* model.answer(calls(callParts("q", "question", { questions })))
  yield* say(id, "go")
  yield* model.request
  const called = sessions.events({ sessionID: id }).pipe(
    Stream.filter(({ type }) => type === "session.next.tool.called"),
    Stream.runHead
  )
  yield* called
  return id
})

const first = (sessionID: SessionID) =>
  Effect.flatMap(Sessions, (sessions) =>
    Effect.flatMap(sessions.questions(sessionID), ([pending]) =>
      pending === undefined ? Effect.dieMessage("nothing is asked") : Effect.succeed(pending)
    )
  )

const refOf = ({ callID, messageID, sessionID }: PendingQuestion) => ({ sessionID, messageID, callID })

const asked = <A, E>(test: Effect.Effect<A, E, Effect.Effect.Context<ReturnType<typeof asking>> | EventLog>) =>
  Effect.provide(test, runtime({ questions: true }))

it.effect("TO-81: the call itself is the question, with all that was asked, and open until it is answered", () =>
  asked(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const id = yield* asking(colour, name)
      const pending = yield* sessions.questions(id)
      assert.deepStrictEqual(
        pending.map(({ callID, questions }) => [callID, questions]),
        [["q", [colour, name]]]
      )
      const types = yield* eventTypes(id)
      assert.include(types, "session.next.tool.called")
      assert.notInclude(types, "session.next.tool.success")
    })
  )
)

it.effect("TO-82: the answers are an event, then the call's result, and the model goes on with them", () =>
  asked(
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const id = yield* asking(colour, name)
      const ref = refOf(yield* first(id))
      yield* model.answer(says("thanks"))
      yield* sessions.answer({ ...ref, answers: ["blue", "Ada"] })
      const results = resultsIn(yield* model.request)
      const answers = [
        { question: "Which colour?", answer: "blue" },
        { question: "Which name?", answer: "Ada" }
      ]
      assert.deepStrictEqual(
        results.map(([callID, result]) => [callID, typeof result === "string" ? JSON.parse(result) : result]),
        [["q", { answers }]]
      )
      yield* sessions.wait(id)
      const types = yield* eventTypes(id)
      const [answered, settled] = ["session.next.question.answered", "session.next.tool.success"]
      assert.isBelow(types.indexOf(answered ?? ""), types.indexOf(settled ?? ""))
      assert.deepStrictEqual(yield* dataOf(id, "session.next.question.answered"), [
        { assistantMessageID: ref.messageID, callID: "q", answers: ["blue", "Ada"] }
      ])
      assert.deepStrictEqual(yield* sessions.questions(id), [])
    })
  )
)

it.scopedLive("TO-82: an answer that another process on the same database gives reaches the one that waits", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const [here, there] = [yield* open({ filename, questions: true }), yield* open({ filename })]
    const id = yield* Effect.provide(asking(colour), here)
    yield* Effect.provide(
      Effect.gen(function* () {
        const sessions = yield* Sessions
        yield* sessions.answer({ ...refOf(yield* first(id)), answers: ["red"] })
      }),
      there
    )
    const model = Context.get(here, ScriptedModel)
    yield* model.answer(says("thanks"))
    const [[, result] = []] = resultsIn(yield* model.request)
    assert.include(JSON.stringify(result), "red")
    yield* Context.get(here, Sessions).wait(id)
  }).pipe(hastily)
)

it.effect("TO-5: a dismissed question stops the run, and nothing more is asked of the model", () =>
  asked(
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const id = yield* asking(colour)
      const ref = refOf(yield* first(id))
      yield* sessions.dismissQuestion(ref)
      const { activity } = yield* sessions.wait(id)
      assert.deepStrictEqual([activity?.state, activity?.error?.type], ["interrupted", "declined"])
      assert.strictEqual(yield* model.pending, 0)
      assert.deepStrictEqual(
        (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.message),
        ["Tool execution interrupted"]
      )
      assert.deepStrictEqual(yield* dataOf(id, "session.next.question.dismissed"), [
        { assistantMessageID: ref.messageID, callID: "q" }
      ])
      assert.deepStrictEqual(yield* sessions.questions(id), [])
    })
  )
)

it.effect("TO-83: an interrupt ends the waiting and closes the question", () =>
  asked(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const id = yield* asking(colour)
      const ref = refOf(yield* first(id))
      yield* sessions.interrupt(id)
      assert.deepStrictEqual(yield* sessions.questions(id), [])
      const late = yield* Effect.flip(sessions.answer({ ...ref, answers: ["red"] }))
      assert.strictEqual(late._tag, "QuestionClosed")
      assert.deepStrictEqual(yield* dataOf(id, "session.next.question.answered"), [])
    })
  )
)

it.effect("TO-84: of answers and dismissals that come at once, one is taken and the others are refused", () =>
  asked(
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const id = yield* asking(colour)
      const ref = refOf(yield* first(id))
      yield* model.answer(says("thanks"))
      const came = yield* Effect.all(
        ["a", "b", "c"].map((answer) => Effect.either(sessions.answer({ ...ref, answers: [answer] }))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(came.filter(Either.isRight).length, 1)
      assert.deepStrictEqual(
        came.filter(Either.isLeft).map(({ left }) => left._tag),
        ["QuestionClosed", "QuestionClosed"]
      )
      const dismissed = yield* Effect.either(sessions.dismissQuestion(ref))
      assert.isTrue(Either.isLeft(dismissed) && dismissed.left instanceof QuestionClosed)
      assert.strictEqual((yield* dataOf(id, "session.next.question.answered")).length, 1)
      assert.deepStrictEqual(yield* dataOf(id, "session.next.question.dismissed"), [])
    })
  )
)

it.scopedLive("TO-84: two processes that answer at once: one is taken, and the model reads that one", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const [here, there] = [yield* open({ filename, questions: true }), yield* open({ filename })]
    const id = yield* Effect.provide(asking(colour), here)
    const ref = refOf(yield* Effect.provide(first(id), here))
    const model = Context.get(here, ScriptedModel)
    yield* model.answer(says("thanks"))
    const came = yield* Effect.all(
      [here, there].map((process, index) =>
        Effect.either(Context.get(process, Sessions).answer({ ...ref, answers: [`answer-${index}`] }))
      ),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(came.filter(Either.isRight).length, 1)
    const [[, result] = []] = resultsIn(yield* model.request)
    assert.include(JSON.stringify(result), `answer-${came.findIndex(Either.isRight)}`)
    yield* Context.get(here, Sessions).wait(id)
  }).pipe(hastily)
)

it.effect("TO-85: answers have to be as many as the questions, and within their bounds; the question stays open", () =>
  asked(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const id = yield* asking(colour, name)
      const ref = refOf(yield* first(id))
      const cases: ReadonlyArray<readonly [answers: ReadonlyArray<string>, field: string]> = [
        [[], "answers"],
        [["red"], "answers"],
        [["red", "Ada", "more"], "answers"],
        [["red", "x".repeat(10_001)], "answers.1"]
      ]
      for (const [answers, expected] of cases) {
        const refused = yield* Effect.flip(sessions.answer({ ...ref, answers }))
        assert.deepStrictEqual([refused._tag, "field" in refused && refused.field], ["InvalidInput", expected])
      }
      assert.strictEqual((yield* sessions.questions(id)).length, 1)
      assert.deepStrictEqual(yield* dataOf(id, "session.next.question.answered"), [])
    })
  )
)

it.effect("TO-85: what is no open question cannot be answered, and a session that is not there has none", () =>
  asked(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const id = yield* asking(colour)
      const ref = refOf(yield* first(id))
      const other = yield* Effect.flip(sessions.answer({ ...ref, callID: "another", answers: ["red"] }))
      assert.strictEqual(other._tag, "QuestionClosed")
      const missing = SessionID.make("ses_missing")
      const nowhere = yield* Effect.flip(sessions.answer({ ...ref, sessionID: missing, answers: ["red"] }))
      assert.strictEqual(nowhere._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(sessions.questions(missing)))._tag, "SessionNotFound")
    })
  )
)

it.effect("TO-86: without a host that answers there is no such tool, and asking is told to be unknown", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(callParts("q", "question", { questions: [name] })))
    yield* model.answer(says("I see."))
    yield* say(id, "go")
    const request = yield* model.request
    assert.notInclude(request.tools.map(Struct.get("name")), "question")
    yield* sessions.wait(id)
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
      ["tool.unknown"]
    )
  }).pipe(Effect.provide(runtime()))
)

it.effect("TO-86: malformed questions are a result that the model reads, and nobody is asked", () =>
  asked(
    Effect.gen(function* () {
      const model = yield* ScriptedModel
      for (const questions of [[], [name, name, name, name, name], [{ question: "" }], [{ question: 1 }]]) {
        const { id } = yield* newSession()
        yield* model.answer(calls(callParts("q", "question", { questions })))
        yield* answerTo(id, "go", "I see.")
        assert.deepStrictEqual(
          (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
          ["tool.input"]
        )
      }
    })
  )
)

it.scopedLive(
  "TU-2: a question whose process died is closed at once, and its call failed before the next request",
  () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [filename, left] = [join(folder, "daybook.db"), join(folder, "left.db")]
      const here = yield* open({ filename, questions: true })
      const id = yield* Effect.provide(asking(colour), here)
      const ref = refOf(yield* Effect.provide(first(id), here))
      // What is on disk while the model waits is what a process that dies now leaves behind.
      for (const suffix of ["", "-wal"]) {
        if (existsSync(filename + suffix)) copyFileSync(filename + suffix, left + suffix)
      }
      yield* giveFileTo(left, goneOwner)
      yield* Effect.provide(
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          assert.deepStrictEqual(yield* sessions.questions(id), [])
          const late = yield* Effect.flip(sessions.answer({ ...ref, answers: ["red"] }))
          assert.strictEqual(late._tag, "QuestionClosed")
          yield* model.answer(says("never mind"))
          yield* sessions.resume(id)
          assert.deepStrictEqual(resultsIn(yield* model.request), [["q", "Tool execution interrupted"]])
          assert.deepStrictEqual(yield* sessions.questions(id), [])
          assert.strictEqual((yield* Effect.flip(sessions.answer({ ...ref, answers: ["red"] })))._tag, "QuestionClosed")
        }),
        yield* open({ filename: left, questions: true })
      )
    })
)

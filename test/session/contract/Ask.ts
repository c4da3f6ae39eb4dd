/** Prompting for the settled answer: IB-50..IB-56 in specs/sessions.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber } from "effect"
import { PromptUnanswered } from "../../../packages/core/src/session/Answer.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { PromptInput } from "../../../packages/log/src/domain/Values.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import {
  eventTypes,
  leaveFile,
  newSession,
  type Runtimes,
  say,
  scene,
  temporaryFolder,
  userTexts
} from "../../support/Harness.ts"
import { giveFileTo, goneOwner } from "../../support/Owners.ts"
import { callParts, calls, finish, ref, says, ScriptedModel, streams, textParts } from "../../support/ScriptedModel.ts"

export const asking = ({ give = giveFileTo, leave = leaveFile, open, runtime }: Runtimes) => {
  const ask = (
    sessionID: SessionID,
    prompt: PromptInput,
    options: { id?: string; delivery?: "steer" | "queue" } = {}
  ) => Effect.flatMap(Sessions, (sessions) => sessions.ask({ sessionID, prompt, ...options }))

  const refused = (sessionID: SessionID, text: string, id?: string) =>
    Effect.flip(ask(sessionID, { text }, id === undefined ? {} : { id }))

  it.scopedLive("IB-50, IB-51: the answer is the last text of the activity, with its message", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* model.answer(calls(callParts("c1", "missing", {})))
      yield* model.answer(says("forty-two"))
      const answer = yield* ask(id, { text: "What is it?" }, { id: "msg_q" })
      assert.strictEqual(answer.text, "forty-two")
      assert.strictEqual(answer.messageID as string, "msg_q")
      assert.deepStrictEqual(answer.message, yield* sessions.message(id, answer.message?.id ?? answer.messageID))
      assert.strictEqual((yield* sessions.get(id)).activity?.id, answer.activityID)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-620: an answer that is not whole says what it lacks beside its text", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(streams(...textParts("t", "forty-"), finish("length")))
      const answer = yield* ask(id, { text: "What is it?" })
      assert.strictEqual(answer.text, "forty-")
      assert.deepStrictEqual(answer.error, {
        type: "answer.cut",
        message: "The answer was cut off at the model's output limit, after 5 tokens."
      })
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-50: a steer is answered by the activity that it joins, a queued prompt by its own", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      const first = yield* Effect.fork(ask(id, { text: "first" }))
      yield* model.request
      yield* say(id, "queued", { id: "msg_q", delivery: "queue" })
      yield* say(id, "steer", { id: "msg_s" })
      const queued = yield* Effect.fork(ask(id, { text: "queued" }, { id: "msg_q", delivery: "queue" }))
      const steer = yield* Effect.fork(ask(id, { text: "steer" }, { id: "msg_s" }))
      yield* model.answer(says("one"))
      assert.deepStrictEqual(userTexts(yield* model.request), ["first", "steer"])
      yield* model.answer(says("both"))
      yield* model.request
      yield* model.answer(says("alone"))
      const [a, b, c] = yield* Effect.all([Fiber.join(first), Fiber.join(steer), Fiber.join(queued)])
      assert.deepStrictEqual([a.text, b.text, c.text], ["both", "both", "alone"])
      assert.strictEqual(a.activityID, b.activityID)
      assert.notStrictEqual(a.activityID, c.activityID)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-51: a structured answer is returned as its value", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] }
      yield* model.answer(calls(callParts("w", "structured_output", { age: "old" })))
      yield* model.answer(calls(callParts("o", "structured_output", { age: 36 })))
      const answer = yield* ask(id, { text: "How old?", output: { schema } })
      assert.deepStrictEqual(answer.output, { age: 36 })
      assert.isTrue(answer.message?.content.some((part) => part.type === "tool" && part.id === "o"))
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-52: the same id gets the same answer in another process, later, and nothing runs for it", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const { id } = yield* Effect.provide(newSession(), one)
      const before = yield* Effect.gen(function* () {
        const model = yield* ScriptedModel
        yield* model.answer(says("yes"))
        const answer = yield* ask(id, { text: "Is it?" }, { id: "msg_q" })
        yield* model.answer(says("later"))
        yield* ask(id, { text: "And now?" })
        return answer
      }).pipe(Effect.provide(one))
      yield* Effect.gen(function* () {
        const stored = yield* eventTypes(id)
        assert.deepStrictEqual(yield* ask(id, { text: "Is it?" }, { id: "msg_q" }), before)
        assert.strictEqual((yield* refused(id, "Is it not?", "msg_q"))._tag, "PromptConflictError")
        assert.deepStrictEqual(yield* eventTypes(id), stored)
      }).pipe(Effect.provide(two))
    })
  )

  it.scopedLive("IB-52, IB-56: a repeated prompt that another process is answering waits for that answer", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const { id } = yield* Effect.provide(newSession(), one)
      const first = yield* Effect.fork(Effect.provide(ask(id, { text: "hi" }, { id: "msg_q" }), one))
      yield* Context.get(one, ScriptedModel).request
      const again = yield* Effect.fork(Effect.provide(ask(id, { text: "hi" }, { id: "msg_q" }), two))
      const idle = Effect.flatMap(Sessions, (sessions) => sessions.wait(id))
      yield* Effect.provide(idle, two)
      yield* Context.get(one, ScriptedModel).answer(says("hello"))
      assert.deepStrictEqual(yield* Fiber.join(again), yield* Fiber.join(first))
    })
  )

  it.scopedLive("IB-56: what a dead process was answering is settled as interrupted", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [filename, copy] = [join(folder, "daybook.db"), join(folder, "left.db")]
      const process = yield* open({ filename })
      const id = yield* Effect.gen(function* () {
        const { id } = yield* newSession()
        yield* say(id, "hi", { id: "msg_q" })
        yield* (yield* ScriptedModel).request
        yield* leave(filename, copy)
        return id
      }).pipe(Effect.provide(process))
      yield* give(copy, goneOwner)
      const lost = yield* Effect.provide(refused(id, "hi", "msg_q"), runtime({ filename: copy }))
      assert.deepInclude(lost, { _tag: "PromptUnanswered", reason: "interrupted" })
      assert.strictEqual(lost instanceof PromptUnanswered ? lost.error?.type : undefined, "process.ended")
    })
  )

  it.scopedLive("IB-53: a failed or interrupted activity, or a withdrawn prompt, is PromptUnanswered, again too", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const asking = yield* Effect.fork(refused(id, "stop", "msg_i"))
      yield* model.request
      yield* sessions.interrupt(id)
      const interrupted = yield* Fiber.join(asking)
      assert.deepInclude(interrupted, { _tag: "PromptUnanswered", reason: "interrupted" })
      yield* say(id, "back", { id: "msg_w", resume: false })
      yield* sessions.withdraw(id, MessageID.make("msg_w"))
      assert.deepInclude(yield* refused(id, "back", "msg_w"), { _tag: "PromptUnanswered", reason: "withdrawn" })
      // A model that is not there any more.
      const gone = draft("session.next.model.switched", {
        messageID: MessageID.make("msg_gone"),
        model: { ...ref, id: "gone" }
      })
      yield* (yield* EventLog).append(id, [gone])
      const failed = yield* refused(id, "fail", "msg_f")
      assert.isTrue(failed instanceof PromptUnanswered && failed.reason === "failed")
      assert.strictEqual(failed instanceof PromptUnanswered ? failed.error?.type : undefined, "ModelNotFound")
      for (const [text, messageID, error] of [
        ["stop", "msg_i", interrupted] as const,
        ["fail", "msg_f", failed] as const
      ]) {
        assert.strictEqual((yield* refused(id, text, messageID)).message, error.message)
      }
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive(
    "IB-54: a run that fails before it takes the prompt fails with the run's error, and the prompt waits",
    () =>
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "daybook.db")
        const agents = [
          { name: "build", permissions: [] },
          { name: "mine", permissions: [] }
        ]
        const [one, two] = [yield* open({ filename, agents }), yield* open({ filename, agents: agents.slice(0, 1) })]
        const { id } = yield* Effect.provide(newSession(), one)
        yield* Context.get(one, Sessions).switchAgent(id, "mine")
        yield* Effect.gen(function* () {
          assert.deepInclude(yield* refused(id, "hi", "msg_q"), { _tag: "AgentNotFound", agent: "mine" })
          const waiting = yield* Effect.flatMap(Sessions, (sessions) => sessions.inbox(id))
          assert.deepStrictEqual(
            waiting.map((input) => input.id as string),
            ["msg_q"]
          )
        }).pipe(Effect.provide(two))
      })
  )

  it.scopedLive("IB-55: interrupting the caller leaves the prompt and its activity alone", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const asking = yield* Effect.fork(ask(id, { text: "go on" }, { id: "msg_q" }))
      yield* model.request
      yield* Fiber.interrupt(asking)
      assert.strictEqual((yield* sessions.get(id)).activity?.state, "running")
      yield* model.answer(says("done"))
      assert.strictEqual((yield* ask(id, { text: "go on" }, { id: "msg_q" })).text, "done")
    }).pipe(Effect.provide(runtime()))
  )
}

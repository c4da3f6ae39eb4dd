/** What the model is reminded of: durable, once, and in its place. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "../../packages/core/src/agent/BuiltinAgents.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { dataOf, failureOf, gatedTool, tool } from "../runner/support/Runs.ts"
import { allUserTexts, answerTo, newSession, open, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const isReminder = (text: string): boolean => text.startsWith("<reminder>")
const worker = (name: string, more: object = {}) => ({
  ...build,
  name,
  prompt: `You are ${name}.`,
  permissions: [{ permission: "*", resource: "*", verdict: "allow" as const }],
  ...more
})

it.scoped("RQ-24: prompts that arrive during the work are followed by a reminder; the first ones are not", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const look = yield* gatedTool("look")
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says("Done."))
    yield* say(id, "first")
    yield* look.begun
    yield* say(id, "also this")
    yield* say(id, "and that")
    yield* look.open
    yield* sessions.wait(id)
    assert.deepStrictEqual(allUserTexts(yield* model.request), ["first"])
    const [first, ...rest] = allUserTexts(yield* model.request)
    assert.strictEqual(first, "first")
    assert.deepStrictEqual(rest.slice(0, 2), ["also this", "and that"])
    assert.match(rest[2] ?? "", /^<reminder>\nThe 2 messages above arrived while you were working\./)
    assert.strictEqual(rest.length, 3)
  }).pipe(Effect.provide(runtime({ agents: [worker("build")] })))
)

it.scopedLive("RQ-24: a reminder is durable: it is shown again in its place, in every later turn and process", () =>
  Effect.gen(function* () {
    const options = { filename: `${yield* temporaryFolder}/daybook.db`, agents: [worker("build")] }
    const [id, before] = yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          const look = yield* gatedTool("look")
          const { id } = yield* newSession()
          yield* model.answer(calls(callParts("c", "look", {})))
          yield* model.answer(says("Done."))
          yield* say(id, "first")
          yield* look.begun
          yield* say(id, "also this")
          yield* look.open
          yield* sessions.wait(id)
          yield* model.request
          return [id, allUserTexts(yield* model.request)] as const
        }).pipe(Effect.scoped, Effect.provide(services))
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          const model = yield* ScriptedModel
          yield* answerTo(id, "later", "Later.")
          const texts = allUserTexts(yield* model.request)
          assert.deepStrictEqual(texts, [...before, "later"])
          assert.strictEqual(texts.filter(isReminder).length, 1)
        }).pipe(Effect.provide(services))
      )
    )
  })
)

it.scoped("RQ-24: before the last turn that an activity may have, the model is told that it is the last", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* tool("look", () => Effect.succeed("seen"))
    const { id } = yield* newSession()
    for (const name of ["a", "b", "c"]) yield* model.answer(calls(callParts(name, "look", {})))
    yield* say(id, "go", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "TurnLimitExceeded")
    const reminders = (yield* Effect.replicateEffect(model.request, 3)).map(
      (request) => allUserTexts(request).filter(isReminder).length
    )
    assert.deepStrictEqual(reminders, [0, 0, 1])
    const [{ text = "" } = {}] = yield* dataOf(id, "session.next.synthetic")
    assert.include(text, "This is the last answer before you are stopped")
  }).pipe(Effect.provide(runtime({ agents: [worker("build", { turnLimit: 3 })] })))
)

it.scoped("RQ-24: an agent that may have one turn only is told nothing, and each activity is told anew", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* tool("look", () => Effect.succeed("seen"))
    const { id } = yield* newSession()
    yield* sessions.switchAgent(id, "once")
    yield* answerTo(id, "one", "One.")
    assert.deepStrictEqual(yield* dataOf(id, "session.next.synthetic"), [])
    yield* sessions.switchAgent(id, "twice")
    for (const nth of [1, 2]) {
      yield* model.answer(calls(callParts(`c${nth}`, "look", {})))
      yield* answerTo(id, "more", "Done.")
      assert.strictEqual((yield* dataOf(id, "session.next.synthetic")).length, nth)
    }
  }).pipe(Effect.provide(runtime({ agents: [worker("once", { turnLimit: 1 }), worker("twice", { turnLimit: 2 })] })))
)

it.scoped(
  "RQ-54, RQ-24: a switch says what the one agent leaves with and the other begins with, and nothing to itself",
  () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* sessions.switchAgent(id, "careful")
      yield* sessions.switchAgent(id, "careful")
      yield* sessions.switchAgent(id, "bold")
      yield* answerTo(id, "go", "Done.")
      assert.deepStrictEqual(allUserTexts(yield* model.request), [
        "<reminder>\nBe careful now.\n</reminder>",
        "<reminder>\nNo more care.\n</reminder>",
        "go"
      ])
    }).pipe(
      Effect.provide(
        runtime({
          agents: [
            worker("build"),
            worker("careful", { enterReminder: "Be careful now.", leaveReminder: "No more care." }),
            worker("bold")
          ]
        })
      )
    )
)

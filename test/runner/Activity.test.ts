/** Activities: their turns, their limit, their end, and what a drain does with nothing to do (TU-1, TU-3, TU-4, TU-13). */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { answerTo, newSession, runtime, say, scene, userTexts } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf, tool } from "./support/Runs.ts"

const limited = (turnLimit: number) => ({ agents: [{ name: "short", permissions: [], turnLimit }] })

/** An answer that calls the tool `more` once more. */
const more = (turn: number) => calls(callParts(`c${turn}`, "more", {}))

const answers = (count: number) =>
  Effect.flatMap(ScriptedModel, (model) =>
    Effect.forEach(
      Array.from({ length: count }, (_, index) => more(index)),
      model.answer,
      { discard: true }
    )
  )

it.scoped("TU-1: a drain that finds nothing eligible asks no provider and writes nothing", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("Hello."))
    const { id: messageID } = yield* say(id, "Hi")
    yield* sessions.wait(id)
    const before = yield* eventsOf(id)
    yield* say(id, "Hi", { id: messageID })
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* eventsOf(id), before)
    yield* model.request
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-3: an activity goes on while the model has results to read, then the next queued one opens", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    yield* tool("more", () => Effect.succeed("more"))
    const { id } = yield* newSession()
    yield* answers(2)
    yield* model.answer(says("done with the first"))
    yield* model.answer(says("done with the second"))
    yield* say(id, "first", { resume: false })
    yield* say(id, "second", { delivery: "queue", resume: false })
    yield* sessions.resume(id)
    const requests = yield* Effect.replicateEffect(model.request, 4)
    assert.deepStrictEqual(requests.map(userTexts), [["first"], ["first"], ["first"], ["first", "second"]])
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.activity.settled")).map(({ outcome }) => outcome),
      ["completed", "completed"]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-4: an activity has 25 turns, and fails when work remains after them", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    yield* tool("more", () => Effect.succeed("more"))
    const { id } = yield* newSession()
    yield* answers(26)
    yield* say(id, "go", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "TurnLimitExceeded")
    assert.strictEqual(yield* model.pending, 25)
    const [settled] = yield* dataOf(id, "session.next.activity.settled")
    assert.strictEqual(settled?.outcome, "failed")
    assert.strictEqual(settled?.error?.type, "TurnLimitExceeded")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-4: an activity whose 25th turn ends it is fine", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    yield* tool("more", () => Effect.succeed("more"))
    const { id } = yield* newSession()
    yield* answers(24)
    yield* model.answer(says("done"))
    yield* say(id, "go", { resume: false })
    yield* sessions.resume(id)
    assert.strictEqual(yield* model.pending, 25)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-4: an agent has a limit of its own, and each activity counts anew", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    yield* tool("more", () => Effect.succeed("more"))
    const { id } = yield* newSession()
    yield* sessions.switchAgent(id, "short")
    // Two turns each: fine for both, and four in one activity would not be.
    for (const text of ["first", "second"]) {
      yield* answers(1)
      yield* model.answer(says("done"))
      yield* say(id, text, { delivery: "queue", resume: false })
    }
    yield* sessions.resume(id)
    assert.strictEqual(yield* model.pending, 4)
    yield* answers(3)
    yield* say(id, "third", { resume: false })
    const failure = yield* Effect.flip(sessions.resume(id))
    assert.strictEqual(failure._tag, "TurnLimitExceeded")
    assert.include(failure.message, "2 turns")
    assert.strictEqual(yield* model.pending, 6)
    // An explicit run gives it as many again: the answer that is left, and the end.
    yield* model.answer(says("done"))
    yield* sessions.resume(id)
    assert.strictEqual(yield* model.pending, 8)
  }).pipe(Effect.provide(runtime(limited(2))))
)

it.scoped("TU-4: a steer that waits after the last turn is work that remains", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* sessions.switchAgent(id, "short")
    yield* tool("more", () =>
      Effect.as(Effect.provideService(say(id, "steer"), Sessions, sessions), "more").pipe(Effect.orDie)
    )
    yield* answers(1)
    yield* say(id, "go", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "TurnLimitExceeded")
    // The wake of the steer is answered by an execution after the failed one.
    yield* model.answer(says("to the steer"))
    yield* sessions.wait(id)
    yield* model.request
    assert.deepStrictEqual(userTexts(yield* model.request), ["go", "steer"])
  }).pipe(Effect.provide(runtime(limited(1))))
)

it.scoped("TU-13: resume goes on from the projected history, without a new input", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* answerTo(id, "Hi", "Hello.")
    yield* model.request
    yield* model.answer(says("Once more."))
    yield* sessions.resume(id)
    const { prompt } = yield* model.request
    assert.deepStrictEqual(prompt.content.map(Struct.get("role")), ["system", "system", "user", "assistant", "user"])
  }).pipe(Effect.provide(runtime()))
)

/** One turn: its order, what it shows the model, and that a call is on disk before it runs (TU-5..TU-10, CR-4, CR-6). */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Ref, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { answerTo, eventTypes, newSession, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import {
  callParts,
  calls,
  finish,
  held,
  otherRef,
  ref,
  says,
  ScriptedModel,
  textParts
} from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, gatedTool, resultsIn, systemTexts, tool, transcript } from "./support/Runs.ts"

const standard = runtime({
  agents: [
    { name: "careful", prompt: "Be careful.", permissions: [] },
    { name: "mute", permissions: [{ permission: "echo", resource: "*", verdict: "deny" }] }
  ]
})

it.scoped("2.2: one plain text turn has its events in the documented order", () =>
  Effect.gen(function* () {
    const { id } = yield* scene()
    yield* answerTo(id, "Hi", "Hello.")
    assert.deepStrictEqual(yield* eventTypes(id), [
      "session.created",
      "session.next.prompt.admitted",
      "session.next.activity.started",
      "session.next.prompt.promoted",
      "session.next.request.framed",
      "session.next.step.started",
      "session.next.text.started",
      "session.next.text.ended",
      "session.next.step.ended",
      "session.next.activity.settled"
    ])
  }).pipe(Effect.provide(standard))
)

it.scoped("EX-560: a turn that a defect of the host's model ended names the defect", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(Stream.die(new TypeError("boom in my model")))
    yield* say(id, "Hi")
    yield* Effect.exit(sessions.wait(id))
    const [settled] = yield* dataOf(id, "session.next.activity.settled")
    assert.deepInclude(settled, {
      outcome: "failed",
      error: { type: "defect", message: "TypeError: boom in my model" }
    })
  }).pipe(Effect.provide(standard))
)

it.scoped("TU-7: the request is the agent's prompt, the baseline, and the history in its order", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const folder = yield* temporaryFolder
    const { id } = yield* newSession(folder)
    yield* sessions.switchAgent(id, "careful")
    yield* model.answer(says("Hello."))
    yield* answerTo(id, "Hi", "Bye.")
    yield* say(id, "So long")
    yield* sessions.wait(id)
    const [agent, baseline, ...rest] = systemTexts(yield* model.request)
    assert.strictEqual(agent, "Be careful.")
    assert.include(baseline, "You work in the folder")
    assert.deepStrictEqual(rest, [])
    const second = yield* model.request
    assert.deepStrictEqual(
      second.prompt.content.map(({ role }) => role),
      ["system", "system", "user", "assistant", "user"]
    )
  }).pipe(Effect.provide(standard))
)

it.scoped("CR-4: a switch during a turn is for the next one; the turn and the baseline stay as they are", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    yield* tool("echo", () => Effect.succeed("echo"))
    yield* model.answer(held([], gate, [...callParts("c1", "echo", {}), finish("tool-calls")]))
    yield* say(id, "go")
    const first = yield* model.request
    yield* sessions.switchAgent(id, "careful")
    yield* sessions.switchModel(id, otherRef)
    yield* Deferred.succeed(gate, undefined)
    yield* model.answer(says("done"))
    const second = yield* model.request
    yield* sessions.wait(id)
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.step.started")).map((step) => [step.agent, step.model.id]),
      [
        ["build", ref.id],
        ["careful", otherRef.id]
      ]
    )
    assert.deepStrictEqual([first.model, second.model], [ref.id, otherRef.id])
    assert.deepStrictEqual(systemTexts(second), ["Be careful.", ...systemTexts(first).slice(1)])
  }).pipe(Effect.provide(standard))
)

it.scoped("CR-6: a session without an agent behaves as `build`, and may do what `build` may", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    yield* tool("echo", () => Effect.succeed("echo"))
    yield* tool("other", () => Effect.succeed("other"))
    const { id } = yield* newSession()
    yield* answerTo(id, "Hi", "Hello.")
    const request = yield* model.request
    assert.strictEqual(systemTexts(request)[0], "You build.")
    const offered = request.tools.map(({ name }) => name)
    assert.include(offered, "other")
    assert.notInclude(offered, "echo")
    assert.strictEqual((yield* dataOf(id, "session.next.step.started"))[0]?.agent, "build")
  }).pipe(
    Effect.provide(
      runtime({
        agents: [
          {
            name: "build",
            prompt: "You build.",
            permissions: [{ permission: "echo", resource: "*", verdict: "deny" }]
          }
        ]
      })
    )
  )
)

it.scoped("TU-8: a call is on disk before its side effect starts, which is while the answer still streams", () =>
  Effect.gen(function* () {
    const { id, log, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    const seen = yield* Deferred.make<ReadonlyArray<string>>()
    yield* tool("look", () =>
      eventsOf(id).pipe(
        Effect.provideService(EventLog, log),
        Effect.orDie,
        Effect.flatMap((events) =>
          Deferred.succeed(
            seen,
            events.map(({ type }) => type)
          )
        ),
        Effect.as("looked")
      )
    )
    yield* model.answer(held(callParts("c1", "look", {}), gate, [...textParts("t", "and so on"), finish("tool-calls")]))
    yield* model.answer(says("done"))
    yield* say(id, "go")
    // The stream is held open: the tool has to have run by now.
    const types = yield* Deferred.await(seen)
    assert.strictEqual(types.at(-1), "session.next.tool.called")
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.strictEqual((yield* dataOf(id, "session.next.tool.success")).length, 1)
  }).pipe(Effect.provide(standard))
)

it.scoped("TU-9: five tools run at the same time, and all five results are stored before the one next request", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gated = yield* gatedTool("wait")
    const ids = ["c1", "c2", "c3", "c4", "c5"]
    yield* model.answer(calls(...ids.map((callID) => callParts(callID, "wait", {}))))
    yield* model.answer(says("done"))
    yield* say(id, "go")
    yield* model.request
    // None has ended when the last has begun.
    assert.deepStrictEqual(yield* Effect.replicateEffect(gated.begun, 5), ids)
    assert.deepStrictEqual(yield* dataOf(id, "session.next.tool.success"), [])
    assert.strictEqual(yield* model.pending, 0)
    yield* gated.open
    const second = yield* model.request
    yield* sessions.wait(id)
    assert.deepStrictEqual(
      resultsIn(second).map(([callID]) => callID),
      ids
    )
    const types = yield* eventTypes(id)
    assert.isBelow(types.lastIndexOf("session.next.tool.success"), types.lastIndexOf("session.next.step.started"))
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(standard))
)

it.scoped("TU-9: a local tool's result is in the second request", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "a.txt"), "alpha\n")
    const { id } = yield* newSession(folder)
    yield* model.answer(calls(callParts("c1", "read", { path: "a.txt" })))
    yield* model.answer(says("It says alpha."))
    yield* say(id, "read a.txt")
    yield* model.request
    const second = yield* model.request
    yield* sessions.wait(id)
    assert.include(JSON.stringify(resultsIn(second)), "alpha")
  }).pipe(Effect.provide(standard))
)

it.scoped("TU-9, EX-T44: input that never became a call is failed, and the answer without a call is asked again", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* tool("echo", () => Effect.succeed("echo"))
    const unfinished = callParts("c1", "echo", {}).slice(0, 2)
    yield* model.answer(calls(unfinished))
    yield* answerTo(id, "go", "done")
    assert.strictEqual(yield* model.pending, 2)
    assert.deepStrictEqual((yield* dataOf(id, "session.next.tool.failed")).map(Struct.get("callID")), ["c1"])
    assert.isUndefined((yield* dataOf(id, "session.next.activity.settled"))[0]?.error)
  }).pipe(Effect.provide(standard))
)

it.scoped("TU-10: one call id in two turns settles in the message that made the call", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    const count = yield* Ref.make(0)
    yield* tool("count", () =>
      Effect.map(
        Ref.updateAndGet(count, (n) => n + 1),
        String
      )
    )
    yield* model.answer(calls(callParts("same", "count", {})))
    yield* model.answer(calls(callParts("same", "count", {})))
    yield* answerTo(id, "go", "done")
    const [, first, second] = (yield* dataOf(id, "session.next.step.started")).map((step) => step.assistantMessageID)
    assert.strictEqual(new Set([first, second]).size, 2)
    const results = (yield* transcript(id)).flatMap((message) =>
      message.type === "assistant"
        ? message.content.flatMap((part) => (part.type === "tool" ? [JSON.stringify(part.content)] : []))
        : []
    )
    assert.deepStrictEqual(results, ['[{"type":"text","text":"1"}]', '[{"type":"text","text":"2"}]'])
  }).pipe(Effect.provide(standard))
)

it.scoped("TO-10: an interrupt that comes as soon as the step is open closes it", () =>
  Effect.gen(function* () {
    const { id, log, model, sessions } = yield* scene()
    const [opened, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    yield* log.listen((events) =>
      events.some(({ type }) => type === "session.next.step.started")
        ? Effect.zipRight(Deferred.succeed(opened, undefined), Deferred.await(goOn))
        : Effect.void
    )
    yield* say(id, "go")
    yield* Deferred.await(opened)
    const interrupt = yield* Effect.fork(sessions.interrupt(id))
    yield* Effect.replicateEffect(Effect.yieldNow(), 50)
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.join(interrupt)
    assert.strictEqual((yield* dataOf(id, "session.next.step.failed"))[0]?.error.type, "aborted")
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(standard))
)

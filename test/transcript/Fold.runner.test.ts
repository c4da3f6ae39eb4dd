/** The fold over what the real runner writes, and over what it leaves when its process is gone. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import * as Fold from "../../packages/transcript/src/Fold.ts"
import type { EventRow } from "../../packages/transcript/src/row/Rows.ts"
import { folded } from "../files/support/Logs.ts"
import { eventsOf, gatedTool, tool } from "../runner/support/Runs.ts"
import { newSession, runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, failure, finish, held, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"

const filesOf = (sessionID: SessionID) => Effect.map(eventsOf(sessionID), (events) => folded(events))

const told = (events: ReadonlyArray<EventRow>): ReadonlyArray<string> =>
  events.flatMap((row) => (row.type === "state" ? [] : [row.type === "done" ? `done ${row.status}` : row.type]))

it.scoped("FR-7: a run of two steps with parallel calls: its rows, its order, its text", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const slow = yield* gatedTool("slow")
    yield* tool("quick", ({ callID }) => Effect.as(slow.open, `quick ${callID} is done`))
    const { id } = yield* newSession()
    yield* model.answer(
      calls(textParts("t", "I will ", "look."), callParts("c1", "slow", {}), callParts("c2", "quick", {}))
    )
    yield* model.answer(says("All is well."))
    yield* say(id, "go", { resume: false, delivery: "queue" })
    yield* sessions.resume(id)
    const { events, latest, messages, state } = yield* filesOf(id)
    assert.deepStrictEqual(told(events).slice(0, 3), ["start", "tool_call", "tool_call"])
    assert.deepStrictEqual(told(events).slice(-2), ["message", "done ok"])
    assert.deepStrictEqual(
      messages.flatMap((row) =>
        row.role === "system" ? [] : [[row.role, row.id.split(":")[1] ?? ""].join(" ").trim()]
      ),
      ["user", "assistant", "tool c1", "tool c2", "assistant"]
    )
    assert.strictEqual(latest, "I will look.\n\nAll is well.")
    assert.strictEqual(state.word, "done")
    assert.isTrue(Fold.isQuiet(state))
  }).pipe(Effect.provide(runtime()))
)

it.scoped("FI-620: the message of a run whose answer is not whole has the sentence that says so", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(Stream.fromIterable([...textParts("t", "Half of it"), finish("content-filter")]))
    yield* say(id, "go")
    yield* sessions.wait(id)
    const { events } = yield* filesOf(id)
    assert.deepStrictEqual(told(events), ["start", "message", "done ok"])
    assert.deepStrictEqual(
      events.flatMap((row) => (row.type === "message" ? [row.problem] : [])),
      ["The provider's filter withheld the rest of the answer."]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("FR-11: an interrupted run keeps what was said and ends as cancelled", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const never = yield* Deferred.make<void>()
    const slow = yield* gatedTool("slow")
    const { id } = yield* newSession()
    yield* model.answer(held([...textParts("t", "I begin."), ...callParts("c1", "slow", {})], never))
    yield* say(id, "go", { resume: false })
    const running = yield* Effect.fork(sessions.resume(id))
    yield* slow.begun
    const open = yield* filesOf(id)
    assert.strictEqual(open.state.word, "active")
    assert.isFalse(Fold.isQuiet(open.state))
    yield* sessions.interrupt(id)
    yield* Fiber.await(running)
    const { events, messages, state } = yield* filesOf(id)
    assert.deepStrictEqual(told(events), ["start", "tool_call", "error", "done cancelled"])
    const assistant = messages.find(({ role }) => role === "assistant")
    assert.deepInclude(assistant, { error: { code: "EIO", message: "interrupted" } })
    assert.isTrue(messages.some((row) => row.role === "tool"))
    assert.strictEqual(state.word, "idle")
    assert.isUndefined(state.latest)
    assert.isTrue(Fold.isQuiet(state))
  }).pipe(Effect.provide(runtime()))
)

it.scoped("FI-32: a run whose provider failed says so, once, as its end", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(Stream.fail(failure("the line is dead")))
    yield* say(id, "go", { resume: false })
    yield* Effect.ignore(sessions.resume(id))
    const { events, messages, state } = yield* filesOf(id)
    assert.deepStrictEqual(told(events), ["start", "error", "done error"])
    assert.isFalse(messages.some(({ role }) => role === "assistant"))
    assert.strictEqual(state.word, "error")
  }).pipe(Effect.provide(runtime()))
)

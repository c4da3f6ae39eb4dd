/** When an input becomes visible, and in what order (PR-1..PR-8, IN-12). */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Struct } from "effect"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { answerTo, newSession, runtime, say, scene, userTexts } from "../support/Harness.ts"
import { callParts, calls, finish, held, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf, tool, transcript } from "./support/Runs.ts"

const settled = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, runtime())

it.scoped("PR-1: event, message and inbox row of a promotion are one transaction; one seq is theirs", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* newSession()
    // A message insert that fails must take the promotion event and the inbox row with it.
    yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON session_message WHEN NEW.type = 'user'
      BEGIN SELECT RAISE(ABORT, 'no users today'); END`
    const input = yield* say(id, "Hi", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "EventRefused")
    assert.deepStrictEqual(yield* dataOf(id, "session.next.prompt.promoted"), [])
    assert.deepStrictEqual((yield* sessions.inbox(id)).map(Struct.get("id")), [input.id])
    yield* sql`DROP TRIGGER refuse`
    yield* model.answer(says("Hello."))
    yield* sessions.resume(id)
    const promoted = (yield* eventsOf(id)).find(({ type }) => type === "session.next.prompt.promoted")
    const [message] = yield* transcript(id)
    const [row] = yield* sql`SELECT promoted_seq FROM session_input WHERE id = ${input.id}`
    assert.strictEqual(message?.seq, promoted?.seq)
    assert.strictEqual(row?.["promoted_seq"], promoted?.seq)
  }).pipe(settled)
)

it.scoped("PR-2: a queued input is promoted first, then the steers that came up to the boundary", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const host = yield* HostContext
    const { id, model } = yield* scene()
    yield* say(id, "queued", { delivery: "queue", resume: false })
    // The context is observed after the queued input was chosen and before the boundary.
    const load = Effect.as(
      Effect.orDie(Effect.provideService(say(id, "steer", { id: "msg_s", resume: false }), Sessions, sessions)),
      SystemContext.absent
    )
    yield* host.register(SystemContext.textSource("test/late", () => load))
    yield* model.answer(says("Yes."))
    yield* sessions.resume(id)
    assert.deepStrictEqual(userTexts(yield* model.request), ["queued", "steer"])
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(settled)
)

it.scoped("PR-3: three steers during a turn are in the next request of the same drain, in admission order", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held([], gate, [...textParts("t", "one"), finish()]))
    yield* model.answer(says("two"))
    yield* say(id, "start")
    yield* model.request
    yield* Effect.forEach(["a", "b", "c"], (text) => say(id, text), { discard: true })
    yield* Deferred.succeed(gate, undefined)
    const second = yield* model.request
    yield* sessions.wait(id)
    assert.deepStrictEqual(userTexts(second), ["start", "a", "b", "c"])
    assert.strictEqual(yield* model.pending, 0)
    assert.strictEqual((yield* dataOf(id, "session.next.activity.started")).length, 1)
  }).pipe(settled)
)

it.scoped("PR-4: queued inputs stay invisible until the activity settles, then open one each, first in first out", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held([], gate, [...textParts("t", "one"), finish()]))
    yield* say(id, "start")
    yield* model.request
    yield* say(id, "q1", { delivery: "queue" })
    yield* say(id, "q2", { delivery: "queue" })
    yield* Deferred.succeed(gate, undefined)
    yield* model.answer(says("two"))
    yield* model.answer(says("three"))
    assert.deepStrictEqual(userTexts(yield* model.request), ["start", "q1"])
    assert.deepStrictEqual(userTexts(yield* model.request), ["start", "q1", "q2"])
    yield* sessions.wait(id)
    const order = (yield* eventsOf(id)).map(({ type }) => type)
    assert.deepStrictEqual(
      order.filter((type) => type.includes(".activity.") || type.endsWith(".promoted")),
      [
        "session.next.activity.started",
        "session.next.prompt.promoted",
        "session.next.activity.settled",
        "session.next.activity.started",
        "session.next.prompt.promoted",
        "session.next.activity.settled",
        "session.next.activity.started",
        "session.next.prompt.promoted",
        "session.next.activity.settled"
      ]
    )
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.activity.started")).map(({ trigger }) => trigger),
      ["steer", "queue", "queue"]
    )
  }).pipe(settled)
)

it.scoped("PR-4: an activity of several turns promotes no second queued input", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    yield* tool("echo", () => Effect.succeed("echo"))
    const { id } = yield* newSession()
    yield* say(id, "q1", { delivery: "queue", resume: false })
    yield* say(id, "q2", { delivery: "queue", resume: false })
    yield* model.answer(calls(callParts("c1", "echo", {})))
    yield* model.answer(says("one"))
    yield* model.answer(says("two"))
    yield* sessions.resume(id)
    const requests = yield* Effect.replicateEffect(model.request, 3)
    assert.deepStrictEqual(requests.map(userTexts), [["q1"], ["q1"], ["q1", "q2"]])
  }).pipe(settled)
)

it.scoped("PR-5: a waiting steer is visible before an older queued input", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* say(id, "queued", { delivery: "queue", resume: false })
    yield* say(id, "steer", { resume: false })
    yield* model.answer(says("to the steer"))
    yield* model.answer(says("to the queued"))
    yield* sessions.resume(id)
    assert.deepStrictEqual(userTexts(yield* model.request), ["steer"])
    assert.deepStrictEqual(userTexts(yield* model.request), ["steer", "queued"])
  }).pipe(settled)
)

it.scoped("PR-6: a wake with only promoted work asks no provider; resume asks at least once", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("Hello."))
    const input = yield* say(id, "Hi")
    yield* sessions.wait(id)
    yield* model.request
    yield* say(id, "Hi", { id: input.id })
    yield* sessions.wait(id)
    assert.strictEqual(yield* model.pending, 0)
    yield* model.answer(says("Again."))
    yield* sessions.resume(id)
    assert.strictEqual(yield* model.pending, 1)
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.activity.started")).map(({ trigger }) => trigger),
      ["steer", "resume"]
    )
  }).pipe(settled)
)

it.scoped("PR-7: the transcript follows promotion, whatever ids say; a message keeps the time of its admission", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const ids = ["msg_zzz", "msg_aaa", "msg_mmm"]
    const inputs = yield* Effect.forEach(ids, (messageID) => say(id, messageID, { id: messageID, resume: false }))
    yield* model.answer(says("Yes."))
    yield* sessions.resume(id)
    const messages = (yield* transcript(id)).filter(({ type }) => type === "user")
    assert.deepStrictEqual(
      messages.map((message) => message.id as string),
      ids
    )
    assert.deepStrictEqual(
      messages.map(({ createdAt }) => createdAt),
      inputs.map(({ createdAt }) => createdAt)
    )
    const first = yield* sessions.messages({ sessionID: id, limit: 2 })
    assert.deepStrictEqual(
      first.items.map((message) => message.id as string),
      ["msg_zzz", "msg_aaa"]
    )
  }).pipe(settled)
)

it.scoped("PR-8: a fault while promoting leaves the input waiting, and a later wake promotes it", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* newSession()
    yield* sql`CREATE TRIGGER refuse BEFORE UPDATE OF promoted_seq ON session_input
      BEGIN SELECT RAISE(ABORT, 'not now'); END`
    yield* say(id, "Hi")
    yield* sessions.wait(id)
    assert.strictEqual((yield* sessions.inbox(id)).length, 1)
    assert.strictEqual(yield* model.pending, 0)
    yield* sql`DROP TRIGGER refuse`
    yield* answerTo(id, "More", "Hello.")
    assert.deepStrictEqual(userTexts(yield* model.request), ["Hi", "More"])
  }).pipe(settled)
)

it.scoped("PR-8: a listener that breaks on a promotion does not strand the input", () =>
  Effect.gen(function* () {
    const { id, log, model } = yield* scene()
    yield* log.listen((events) =>
      events.some(({ type }) => type === "session.next.prompt.promoted") ? Effect.dieMessage("listener") : Effect.void
    )
    yield* answerTo(id, "Hi", "Hello.")
    assert.deepStrictEqual(userTexts(yield* model.request), ["Hi"])
    assert.strictEqual((yield* transcript(id)).length, 2)
  }).pipe(settled)
)

it.scoped("IN-12: one boundary takes a bounded batch of steers; the rest follow at the next, none is lost", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* Effect.forEach(["a", "b", "c", "d", "e"], (text) => say(id, text, { resume: false }))
    yield* Effect.forEach(["1", "2", "3"], (text) => model.answer(says(text)))
    const run = yield* Effect.fork(sessions.resume(id))
    assert.deepStrictEqual(userTexts(yield* model.request), ["a", "b"])
    assert.deepStrictEqual(userTexts(yield* model.request), ["a", "b", "c", "d"])
    assert.deepStrictEqual(userTexts(yield* model.request), ["a", "b", "c", "d", "e"])
    yield* Fiber.join(run)
    assert.strictEqual((yield* dataOf(id, "session.next.activity.started")).length, 1)
  }).pipe(Effect.provide(runtime({ steerBatchLimit: 2 })))
)

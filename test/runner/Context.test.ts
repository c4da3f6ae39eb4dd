/** The context that a turn is given: the first observation, what changed since, and what cannot be read (TU-5, TU-6, EP-3..EP-9). */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, runtime, say, userTexts } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf, systemTexts } from "./support/Runs.ts"

const { absent, text, textSource, unavailable } = SystemContext

/** A host source whose state the test sets. */
const source = Effect.fnUntraced(function* (
  first: SystemContext.Observation<SystemContext.TextValue>,
  key = "test/rules"
) {
  const host = yield* HostContext
  const now = yield* Ref.make(first)
  yield* host.register(textSource(key, () => Ref.get(now)))
  return (next: SystemContext.Observation<SystemContext.TextValue>) => Ref.set(now, next)
})

/** Prompts, runs, and returns the request. */
const turn = Effect.fnUntraced(function* (sessionID: Parameters<typeof say>[0], prompt: string) {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  yield* model.answer(says("yes"))
  yield* say(sessionID, prompt, { resume: false })
  yield* sessions.resume(sessionID)
  return yield* model.request
})

it.scoped("TU-6: while the first context is unavailable nothing is promoted, and a retry works", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const set = yield* source(unavailable)
    const { id } = yield* newSession()
    const input = yield* say(id, "Hi", { resume: false })
    const failure = yield* Effect.flip(sessions.resume(id))
    assert.deepInclude(failure, { _tag: "InitializationBlocked", keys: ["test/rules"] })
    assert.deepStrictEqual(
      (yield* sessions.inbox(id)).map((waiting) => waiting.id),
      [input.id]
    )
    assert.deepStrictEqual(
      (yield* eventsOf(id)).map(({ type }) => type),
      ["session.created", "session.next.prompt.admitted"]
    )
    yield* set(text("Be brief."))
    yield* model.answer(says("Hello."))
    yield* say(id, "Hi", { id: input.id })
    yield* sessions.wait(id)
    const request = yield* model.request
    assert.deepStrictEqual(userTexts(request), ["Hi"])
    assert.include(systemTexts(request)[1], "Be brief.")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-3: the baseline needs one complete look at every source; its seq is the latest at that time", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* source(text("Rule one."), "test/b")
    yield* source(text("Rule zero."), "test/a")
    yield* source(absent, "test/nothing")
    const { id } = yield* newSession()
    const request = yield* turn(id, "Hi")
    const [, baseline] = systemTexts(request)
    // In the order of the keys, joined by a blank line; `daybook/` sorts before `test/`.
    assert.isTrue(baseline?.endsWith("\n\nRule zero.\n\nRule one."))
    const [row] = yield* sql`SELECT baseline, baseline_seq FROM session_context_epoch WHERE session_id = ${id}`
    // Creation and admission came before.
    assert.deepStrictEqual(row, { baseline, baseline_seq: 1 })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-5: what changed is one chronological message after the promoted input; the baseline stays", () =>
  Effect.gen(function* () {
    const a = yield* source(text("A is 1."), "test/a")
    const b = yield* source(text("B is 1.", "B no longer holds."), "test/b")
    const { id } = yield* newSession()
    const first = yield* turn(id, "one")
    yield* a(text("A is 2."))
    yield* b(absent)
    const second = yield* turn(id, "two")
    const third = yield* turn(id, "three")
    const updates = yield* dataOf(id, "session.next.context.updated")
    assert.strictEqual(updates.length, 1)
    assert.include(updates[0]?.text, "A is 2.")
    assert.include(updates[0]?.text, "B no longer holds.")
    assert.deepStrictEqual(systemTexts(second), systemTexts(first))
    assert.deepStrictEqual(systemTexts(third), systemTexts(first))
    const [, two, update] = userTexts(second)
    assert.strictEqual(two, "two")
    assert.include(update, "A is 2.")
    assert.strictEqual(userTexts(third).length, 4)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-5: message and snapshot are one transaction: a fault leaves neither, the next turn tells it", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const sql = yield* SqlClient.SqlClient
    const set = yield* source(text("A is 1."))
    const { id } = yield* newSession()
    yield* turn(id, "one")
    yield* set(text("A is 2."))
    yield* sql`CREATE TRIGGER refuse BEFORE UPDATE ON session_context_epoch BEGIN SELECT RAISE(ABORT, 'no'); END`
    yield* say(id, "two", { resume: false })
    assert.isDefined(yield* failureOf(sessions.resume(id)))
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.updated"), [])
    const [row] = yield* sql`SELECT snapshot FROM session_context_epoch WHERE session_id = ${id}`
    assert.include(row?.["snapshot"], "A is 1.")
    yield* sql`DROP TRIGGER refuse`
    yield* turn(id, "three")
    assert.strictEqual((yield* dataOf(id, "session.next.context.updated")).length, 1)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-4: a source that cannot be read now keeps what was said, and nothing is said about it", () =>
  Effect.gen(function* () {
    const set = yield* source(text("A is 1."))
    const { id } = yield* newSession()
    const first = yield* turn(id, "one")
    yield* set(unavailable)
    const second = yield* turn(id, "two")
    yield* set(text("A is 1."))
    yield* turn(id, "three")
    assert.deepStrictEqual(systemTexts(second), systemTexts(first))
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.updated"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-8: what cannot be revoked in words waits for a complete look, then the baseline is fresh", () =>
  Effect.gen(function* () {
    const gone = yield* source(text("A is 1."), "test/a")
    const other = yield* source(text("B is 1."), "test/b")
    const { id } = yield* newSession()
    const first = yield* turn(id, "one")
    yield* gone(absent)
    yield* other(unavailable)
    // The input is promoted by now: the turn goes on with the baseline it has.
    assert.deepStrictEqual(systemTexts(yield* turn(id, "two")), systemTexts(first))
    yield* other(text("B is 1."))
    const [, baseline = ""] = systemTexts(yield* turn(id, "three"))
    assert.notInclude(baseline, "A is 1.")
    assert.include(baseline, "B is 1.")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-9: a stored snapshot that does not decode is a typed error, and the prompt stays pending", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const sql = yield* SqlClient.SqlClient
    const { id } = yield* newSession()
    yield* turn(id, "one")
    yield* sql`UPDATE session_context_epoch SET snapshot = '{"a":1}' WHERE session_id = ${id}`
    yield* say(id, "two", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "ContextSnapshotUnreadable")
    assert.strictEqual((yield* sessions.inbox(id)).length, 1)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-5: a turn goes through its stations in order: context, epoch, promotion, update, model, step", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const log = yield* EventLog
    const sql = yield* SqlClient.SqlClient
    const host = yield* HostContext
    const { id } = yield* newSession()
    const seen = yield* Ref.make<ReadonlyArray<string>>([])
    const value = yield* Ref.make(1)
    // At each look: how many events there are, and whether the epoch is there.
    const load = Effect.gen(function* () {
      const latest = yield* log.latest(id)
      const epochs = yield* sql`SELECT 1 FROM session_context_epoch WHERE session_id = ${id}`
      yield* Ref.update(seen, (all) => [...all, `looked at ${latest}, ${epochs.length} epochs`])
      return text(`A is ${yield* Ref.get(value)}.`)
    })
    yield* host.register(textSource("test/a", () => load))
    yield* turn(id, "one")
    yield* Ref.set(value, 2)
    yield* turn(id, "two")
    // The model is resolved after promotion and update: its failure finds both in the log, and no step.
    yield* sessions.switchModel(id, { providerID: "scripted", id: "nine" })
    yield* Ref.set(value, 3)
    yield* say(id, "three", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "ModelNotFound")
    assert.deepStrictEqual((yield* Ref.get(seen)).slice(0, 2), ["looked at 1, 0 epochs", "looked at 10, 1 epochs"])
    const types = (yield* eventsOf(id)).map(({ type }) => type.replace("session.next.", ""))
    assert.deepStrictEqual(types.slice(10, 14), [
      "prompt.admitted",
      "activity.started",
      "prompt.promoted",
      "context.updated"
    ])
    assert.deepStrictEqual(types.slice(-4), [
      "activity.started",
      "prompt.promoted",
      "context.updated",
      "activity.settled"
    ])
  }).pipe(Effect.provide(runtime()))
)

/** The context that a turn is given: the first observation, what changed since, and what cannot be read (TU-5, TU-6, EP-3..EP-9). */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Ref, Schema, Struct } from "effect"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { HostRequests } from "../../packages/core/src/request/HostRequests.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { EpochStore } from "../../packages/log/src/store/EpochStore.ts"
import * as SqlEpochStore from "../../packages/log/src/store/SqlEpochStore.ts"
import { newSession, runtime, say, scene, userTexts } from "../support/Harness.ts"
import { contents, storeAs } from "../support/Logs.ts"
import { otherRef, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf, systemTexts, toUnknownModel } from "./support/Runs.ts"

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

const epochOf = (sessionID: SessionID) =>
  Effect.provide(
    Effect.flatMap(EpochStore, (epochs) => epochs.get(sessionID)),
    SqlEpochStore.layer
  )

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
    assert.deepStrictEqual((yield* sessions.inbox(id)).map(Struct.get("id")), [input.id])
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
    yield* source(text("Rule one."), "test/b")
    yield* source(text("Rule zero."), "test/a")
    yield* source(absent, "test/nothing")
    const { id } = yield* newSession()
    const request = yield* turn(id, "Hi")
    const [, baseline] = systemTexts(request)
    // In the order of the keys, joined by a blank line; `daybook/` sorts before `test/`.
    assert.isTrue(baseline?.endsWith("\n\nRule zero.\n\nRule one."))
    // Creation and admission came before.
    const epoch = yield* epochOf(id)
    assert.deepStrictEqual([epoch?.baseline, epoch?.baselineSeq], [baseline, 1])
    assert.sameMembers(
      Object.keys(epoch?.snapshot ?? {}).filter((key) => key.startsWith("test/")),
      ["test/a", "test/b"]
    )
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
    yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON session_message WHEN NEW.type = 'system'
      BEGIN SELECT RAISE(ABORT, 'no'); END`
    yield* say(id, "two", { resume: false })
    assert.isDefined(yield* failureOf(sessions.resume(id)))
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.updated"), [])
    assert.include(JSON.stringify((yield* epochOf(id))?.snapshot), "A is 1.")
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
    const { id, sessions } = yield* scene()
    yield* turn(id, "one")
    const [framed] = (yield* eventsOf(id)).filter(({ type }) => type === "session.next.request.framed")
    assert.isDefined(framed)
    const data = JSON.stringify({ ...framed?.data, context: { baseline: 9, snapshot: { told: {} } } })
    yield* storeAs(id, framed?.seq ?? 0, { type: "session.next.request.framed.1", data })
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
      const [epoch] = yield* sql`SELECT epoch FROM session WHERE id = ${id}`
      yield* Ref.update(seen, (all) => [...all, `looked at ${latest}, epoch of ${String(epoch?.["epoch"])}`])
      return text(`A is ${yield* Ref.get(value)}.`)
    })
    yield* host.register(textSource("test/a", () => load))
    yield* turn(id, "one")
    yield* Ref.set(value, 2)
    yield* turn(id, "two")
    // The model is resolved after promotion and update: its failure finds both in the log, and no step.
    yield* toUnknownModel(id)
    yield* Ref.set(value, 3)
    yield* say(id, "three", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "ModelNotFound")
    assert.deepStrictEqual((yield* Ref.get(seen)).slice(0, 2), [
      "looked at 1, epoch of null",
      "looked at 10, epoch of 4"
    ])
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

it.scoped("CX-51: a baseline that no request shows is not stored, and the next turn renders one of its own", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const set = yield* source(text("A is 1."), "test/a")
    const { id } = yield* newSession()
    yield* toUnknownModel(id)
    yield* say(id, "one", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "ModelNotFound")
    assert.isUndefined(yield* epochOf(id))
    yield* set(text("A is 2."))
    yield* sessions.switchModel(id, otherRef)
    const [, baseline] = systemTexts(yield* turn(id, "two"))
    assert.include(baseline, "A is 2.")
    assert.strictEqual((yield* epochOf(id))?.baseline, baseline)
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.updated"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("CX-52: the database holds the long texts of a baseline once, and an update repeats none of them", () =>
  Effect.gen(function* () {
    const [one, two] = ["one ".repeat(100), "two ".repeat(100)]
    const host = yield* HostContext
    const files = yield* Ref.make<ReadonlyArray<string>>([one])
    yield* host.register(
      SystemContext.source({
        key: "test/files",
        schema: Schema.Array(Schema.String),
        load: () => Effect.map(Ref.get(files), SystemContext.available),
        baseline: (all) => all.join("\n"),
        update: (before, all) => `Added: ${all.slice(before.length).join("\n")}`
      })
    )
    const { id } = yield* newSession()
    const times = (text: string) => Effect.map(contents, (rows) => JSON.stringify(rows).split(text.trim()).length - 1)
    yield* turn(id, "Hi")
    assert.strictEqual(yield* times(one), 1)
    yield* Ref.set(files, [one, two])
    yield* turn(id, "Again")
    assert.strictEqual(yield* times(one), 1)
    assert.strictEqual(yield* times(two), 1)
    assert.deepStrictEqual((yield* epochOf(id))?.snapshot["test/files"], { value: [one, two] })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("CX-51: a baseline that a hook changed in its request is stored as it was rendered", () =>
  Effect.gen(function* () {
    const hooks = yield* HostRequests
    yield* source(text("A is 1."), "test/a")
    yield* hooks.register({
      name: "shout",
      request: ({ settings, system }) => Effect.succeed({ settings, system: system.map((text) => text.toUpperCase()) })
    })
    const { id } = yield* newSession()
    const first = yield* turn(id, "one")
    const baseline = (yield* epochOf(id))?.baseline
    assert.include(baseline, "A is 1.")
    assert.strictEqual(systemTexts(first)[1], baseline?.toUpperCase())
    assert.deepStrictEqual(systemTexts(yield* turn(id, "two")), systemTexts(first))
    assert.strictEqual((yield* dataOf(id, "session.next.request.framed")).length, 1)
  }).pipe(Effect.provide(runtime()))
)
